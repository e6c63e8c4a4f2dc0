// SPDX-License-Identifier: GPL-2.0

//! The plan of a reply: which bytes go inline, which go to which chunk, and what form the header has
//! (RFC 8166 sections 3.5, 4.3).
//!
//! A reply goes inline if it fits. The Reply chunk is the way out for one that does not, so that a
//! peer which always offers one (as some do) does not pay an RDMA Write for each small reply.

use super::{
    payloads::{
        Payload,
        Payloads, //
    },
    reply_lists::ReplyLists,
    MAX_WRITE_CHUNKS, //
};

/// Header bytes in front of the Write list: the fixed header and the Read list, which is empty.
const BEFORE_LISTS: usize = 20;

/// Why a reply cannot be sent. The peer gets ERR_CHUNK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyError {
    /// A result does not fit its Write chunk.
    WriteChunkTooSmall,
    /// The reply does not fit the Reply chunk.
    ReplyChunkTooSmall,
    /// The reply does not fit inline, and there is no Reply chunk.
    NoReplyChunk,
    /// The header alone does not fit inline.
    HeaderTooLarge,
    /// A result payload that is not an XDR item.
    BadPayload,
}

/// How the part of the reply travels that is in no Write chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyForm {
    /// Behind the header: RDMA_MSG.
    Inline,
    /// In the Reply chunk: RDMA_NOMSG.
    ReplyChunk,
}

/// A run of bytes of the XDR reply stream; its length is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Offset in the stream.
    pub(crate) off: u32,
    /// Number of bytes.
    pub(crate) len: u32,
}

/// The plan of one reply.
///
/// # Invariants
///
/// - `header_len` is what [`ReplyPlan::encode`] writes for the lists the plan was made with. It is
///   not longer than the header of the Call was.
/// - The payloads are inside `xdr_len` bytes, ascending, disjoint, and fit their chunks.
/// - The reduced stream fits where `form` says.
#[derive(Clone, Copy)]
pub(crate) struct ReplyPlan {
    form: ReplyForm,
    header_len: usize,
    xdr_len: u32,
    reduced_len: u32,
    payloads: [Payload; MAX_WRITE_CHUNKS],
}

/// Plans a reply of `xdr_len` bytes that may occupy `inline_max` bytes of a Send.
///
/// # Errors
///
/// Everything in [`ReplyError`] but what [`Payloads::push`] finds.
pub(crate) fn plan_reply(
    lists: &ReplyLists<'_>,
    payloads: &Payloads,
    xdr_len: u32,
    inline_max: u32,
) -> Result<ReplyPlan, ReplyError> {
    let inline_max = u64::from(inline_max);
    let header_len = BEFORE_LISTS.saturating_add(lists.wire().len());
    let header = u64::try_from(header_len).unwrap_or(u64::MAX);
    if header > inline_max {
        return Err(ReplyError::HeaderTooLarge);
    }

    let payloads = payloads.within(xdr_len);
    let reduced_len =
        Ranges::new(payloads, xdr_len).fold(0, |sum: u32, range| sum.saturating_add(range.len));
    let reduced = u64::from(reduced_len);

    let form = if header.saturating_add(reduced) <= inline_max {
        ReplyForm::Inline
    } else {
        match lists.reply_chunk() {
            Some(chunk) if chunk.capacity() >= reduced => ReplyForm::ReplyChunk,
            Some(chunk) if !chunk.is_empty() => return Err(ReplyError::ReplyChunkTooSmall),
            _ => return Err(ReplyError::NoReplyChunk),
        }
    };
    // INVARIANT: Established above and by the invariants of `Payloads`.
    Ok(ReplyPlan {
        form,
        header_len,
        xdr_len,
        reduced_len,
        payloads,
    })
}

impl ReplyPlan {
    /// The form of the reply.
    pub(crate) fn form(&self) -> ReplyForm {
        self.form
    }

    /// Bytes of transport header.
    pub(crate) fn header_len(&self) -> usize {
        self.header_len
    }

    /// Bytes of the Send.
    pub(crate) fn wire_len(&self) -> usize {
        match self.form {
            ReplyForm::Inline => self
                .header_len
                .saturating_add(usize::try_from(self.reduced_len).unwrap_or(usize::MAX)),
            ReplyForm::ReplyChunk => self.header_len,
        }
    }

    /// The parts of the stream that follow the header in the Send.
    pub(crate) fn inline_ranges(&self) -> Ranges {
        match self.form {
            ReplyForm::Inline => self.reduced_stream(),
            ReplyForm::ReplyChunk => Ranges::new(self.payloads, 0),
        }
    }

    /// The parts of the stream that are in no Write chunk.
    pub(super) fn reduced_stream(&self) -> Ranges {
        Ranges::new(self.payloads, self.xdr_len)
    }

    /// Bytes that go to the Write chunk with the number `index`.
    pub(super) fn payload(&self, index: usize) -> Payload {
        self.payloads.get(index).copied().unwrap_or_default()
    }

    /// Bytes that go to the Reply chunk.
    pub(super) fn reply_chunk_len(&self) -> u32 {
        match self.form {
            ReplyForm::Inline => 0,
            ReplyForm::ReplyChunk => self.reduced_len,
        }
    }
}

/// Iterator over the parts of a stream that are in no Write chunk.
///
/// The roundup of a payload goes with it: it is in neither (RFC 8166 section 3.4.4.4).
#[derive(Clone, Copy)]
pub(crate) struct Ranges {
    payloads: [Payload; MAX_WRITE_CHUNKS],
    index: usize,
    at: u32,
    xdr_len: u32,
}

impl Ranges {
    fn new(payloads: [Payload; MAX_WRITE_CHUNKS], xdr_len: u32) -> Self {
        Self {
            payloads,
            index: 0,
            at: 0,
            xdr_len,
        }
    }
}

impl Iterator for Ranges {
    type Item = Range;

    fn next(&mut self) -> Option<Range> {
        while self.at < self.xdr_len {
            let payload = self.payloads.get(self.index);
            if payload.is_some_and(|payload| payload.len == 0) {
                self.index = self.index.saturating_add(1);
                continue;
            }
            let off = self.at;
            let (until, next) = match payload {
                Some(payload) => {
                    self.index = self.index.saturating_add(1);
                    // The stream may end without the roundup of its last item.
                    let end = u32::try_from(payload.end()).unwrap_or(u32::MAX);
                    (payload.off.min(self.xdr_len), end.min(self.xdr_len))
                }
                None => (self.xdr_len, self.xdr_len),
            };
            self.at = next;
            let len = until.saturating_sub(off);
            if len != 0 {
                return Some(Range { off, len });
            }
        }
        None
    }
}
