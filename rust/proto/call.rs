// SPDX-License-Identifier: GPL-2.0

//! A Call that passed all checks.
//!
//! [`Call`] is a view on the received bytes; [`CallShape`] is what is left of it without them: small,
//! `Copy`, offsets only. The context of the RPC stores the shape while RDMA Reads run, and whichever
//! thread finishes the Call makes the view again in constant time.

use super::{
    assembly::Assembly,
    fixed::{
        procedure,
        Fixed,
        FIXED_LEN, //
    },
    parse::Direction,
    read_chunks::{
        ReadChunk,
        ReadChunks,
        ReadList,
        READ_ENTRY_LEN, //
    },
    reject::{
        Reason,
        Reject, //
    },
    reply_lists::ReplyLists,
    upper_layer::check_reducible,
    wire::pad, //
};

/// How the reassembled Call is presented to sunrpc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// No byte of the Call is remote: the head is the payload, there are no pages.
    Inline,
    /// Exactly one Read chunk with bytes in an RDMA_MSG: the head is `payload[..position]`, the
    /// pages hold the chunk, rounded up with zeroes, the tail is `payload[position..]`.
    Single {
        /// Bytes of inline payload in front of the chunk.
        position: u32,
        /// Bytes in the chunk, without roundup; not 0.
        chunk_len: u32,
    },
    /// Anything else: the whole Call is laid out from offset 0 of the first page.
    Stream,
}

/// A [`Call`] without its bytes.
#[derive(Clone, Copy)]
pub(crate) struct CallShape {
    fixed: Fixed,
    msg_len: usize,
    header_len: usize,
    /// Offset of the Write list.
    reply_lists: usize,
    /// Offset behind the last Read segment.
    read_end: usize,
    base_len: u32,
    call_len: u32,
    inv_rkey: Option<u32>,
    chunks: ReadChunks,
}

/// A valid Call.
///
/// # Invariants
///
/// - `28 <= header_len <= msg.len()`, version 1, RDMA_MSG or RDMA_NOMSG.
/// - RDMA_NOMSG if and only if there is a Position Zero Read chunk; then `base_len`, its length, is
///   not 0. Else `base_len` is the length of the payload.
/// - The chunks are placed: positions strictly increase and are multiples of four, `base_off` does
///   not decrease and is at most `base_len`.
/// - `call_len` is `base_len` plus all chunks with their roundup, and within the limit.
/// - No segment wraps.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    msg: &'a [u8],
    shape: CallShape,
}

impl<'a> Call<'a> {
    /// Checks the form of the message and the place of its chunks.
    pub(super) fn new(
        msg: &'a [u8],
        fixed: Fixed,
        payload: &'a [u8],
        read_list: ReadList,
        reply_lists: &ReplyLists<'_>,
        inv_rkey: Option<u32>,
        max_call_bytes: u32,
    ) -> Result<Self, Reason> {
        let base_len = if fixed.proc_ == procedure::RDMA_NOMSG {
            if !read_list.has_call_chunk {
                return Err(Reason::NomsgWithoutCallChunk);
            }
            if !payload.is_empty() {
                return Err(Reason::NomsgTrailingBytes);
            }
            if read_list.call_chunk_len == 0 {
                return Err(Reason::EmptyCallChunk);
            }
            read_list.call_chunk_len
        } else {
            if read_list.has_call_chunk {
                return Err(Reason::MsgWithCallChunk);
            }
            u32::try_from(payload.len()).map_err(|_| Reason::CallTooLarge)?
        };

        let mut chunks = read_list.chunks;
        let call_len = chunks.place(base_len)?;
        if call_len > u64::from(max_call_bytes) {
            return Err(Reason::CallTooLarge);
        }

        let header_len = msg.len().saturating_sub(payload.len());
        let read_len = usize::try_from(read_list.segments)
            .ok()
            .and_then(|segments| segments.checked_mul(READ_ENTRY_LEN))
            .ok_or(Reason::TooManySegments)?;
        // INVARIANT: Established by the checks above and by the readers of the lists.
        Ok(Self {
            msg,
            shape: CallShape {
                fixed,
                msg_len: msg.len(),
                header_len,
                reply_lists: header_len.saturating_sub(reply_lists.wire().len()),
                read_end: FIXED_LEN.saturating_add(read_len),
                base_len,
                call_len: u32::try_from(call_len).map_err(|_| Reason::CallTooLarge)?,
                inv_rkey,
                chunks,
            },
        })
    }

    /// What to keep of the Call while its bytes stay elsewhere.
    pub(crate) fn shape(&self) -> CallShape {
        self.shape
    }

    /// Makes the view again. `msg` must be the message that `shape` was taken from; [`None`] if it
    /// has another length.
    pub(crate) fn from_shape(msg: &'a [u8], shape: CallShape) -> Option<Self> {
        // INVARIANT: The same message has the same properties. Should the bytes differ after all,
        // every accessor is still bounded by `msg` and by the lengths in `shape`.
        (msg.len() == shape.msg_len).then_some(Self { msg, shape })
    }

    /// The fixed header.
    pub(crate) fn fixed(&self) -> Fixed {
        self.shape.fixed
    }

    /// Bytes of transport header.
    pub(crate) fn header_len(&self) -> usize {
        self.shape.header_len
    }

    /// The inline payload; empty for RDMA_NOMSG.
    pub(crate) fn payload(&self) -> &'a [u8] {
        self.msg.get(self.shape.header_len..).unwrap_or_default()
    }

    /// Bytes of the whole RPC Call after reassembly.
    pub(crate) fn call_len(&self) -> u32 {
        self.shape.call_len
    }

    /// Whether RDMA Reads are needed.
    ///
    /// A Read list of empty segments only needs none. Its positions were checked all the same, and
    /// an empty chunk has no roundup, so the payload is the Call.
    pub(crate) fn has_read_chunks(&self) -> bool {
        self.layout() != Layout::Inline
    }

    /// The handle that a Send with Invalidate may name: the only one in the message, and not 0.
    pub(crate) fn inv_rkey(&self) -> Option<u32> {
        self.shape.inv_rkey
    }

    /// The bytes of the Write list and the Reply chunk, for [`ReplyLists::from_wire`].
    pub(crate) fn reply_lists_wire(&self) -> &'a [u8] {
        self.msg
            .get(self.shape.reply_lists..self.shape.header_len)
            .unwrap_or_default()
    }

    /// How to present the Call to sunrpc.
    pub(crate) fn layout(&self) -> Layout {
        let mut full = self.chunks().iter().filter(|chunk| chunk.len != 0);

        match (self.is_nomsg(), full.next(), full.next()) {
            (false, None, _) => Layout::Inline,
            (false, Some(chunk), None) => Layout::Single {
                position: chunk.base_off,
                chunk_len: chunk.len,
            },
            _ => Layout::Stream,
        }
    }

    /// The pieces that the whole Call is made of.
    pub(crate) fn assembly(&self) -> Assembly<'a> {
        Assembly::new(*self)
    }

    /// Checks that what the Read chunks carry may be reduced. `rpc` is the begin of the RPC
    /// message, [`Call::payload`] or what the Reads of an RDMA_NOMSG brought.
    pub(crate) fn check_reducible(&self, rpc: &[u8]) -> Result<(), Reject> {
        let mut filled = self.chunks().iter().filter(|chunk| chunk.len > 0);
        let Some(first) = filled.next() else {
            return Ok(());
        };
        check_reducible(rpc, first, filled.count().saturating_add(1))
            .map_err(|reason| Reject::new(reason, self.shape.fixed))
    }

    /// Checks the RPC message that the Reads of an RDMA_NOMSG brought, as [`parse`](super::parse)
    /// did for an inline one. `rpc` is its begin; eight bytes are enough.
    pub(crate) fn check_assembled(&self, rpc: &[u8]) -> Result<(), Reject> {
        let reason = match Direction::of(rpc, self.shape.fixed) {
            Ok(Direction::Call) => return Ok(()),
            Ok(Direction::Reply) => Reason::ReverseReplyWithChunks,
            Err(reason) => reason,
        };
        Err(Reject::new(reason, self.shape.fixed))
    }

    pub(super) fn is_nomsg(&self) -> bool {
        self.shape.fixed.proc_ == procedure::RDMA_NOMSG
    }

    /// Length of the base stream, into which the chunks are inserted.
    pub(super) fn base_len(&self) -> u32 {
        self.shape.base_len
    }

    pub(super) fn chunks(&self) -> &[ReadChunk] {
        self.shape.chunks.as_slice()
    }

    /// The Read list without its terminator.
    pub(super) fn read_entries(&self) -> &'a [u8] {
        self.msg
            .get(FIXED_LEN..self.shape.read_end)
            .unwrap_or_default()
    }
}

/// Bytes that a chunk takes in the pages: its own, rounded up.
pub(super) fn padded(chunk_len: u32) -> u32 {
    chunk_len.saturating_add(pad(chunk_len))
}
