// SPDX-License-Identifier: GPL-2.0

//! The result payloads of one RPC: the parts of the reply that the upper layer reported as eligible
//! for reduction, bound to Write chunks (RFC 8166 section 4.3.2, RFC 8267 section 6.4.1).
//!
//! The n-th payload belongs to the n-th Write chunk, which comes back unused if the payload has no
//! bytes. If the chunk has no segment, the payload stays inline. So does a payload for which no
//! chunk is left.

use super::{
    plan::ReplyError,
    reply_lists::ReplyLists,
    wire::roundup4,
    MAX_WRITE_CHUNKS, //
};

/// One payload in the XDR reply stream.
#[derive(Clone, Copy, Default)]
pub(super) struct Payload {
    /// Offset in the stream; a multiple of four.
    pub(super) off: u32,
    /// Bytes, without roundup; 0 if the chunk is unused.
    pub(super) len: u32,
}

impl Payload {
    /// Offset behind the payload and its roundup.
    pub(super) fn end(&self) -> u64 {
        u64::from(self.off).saturating_add(roundup4(self.len))
    }
}

/// The payloads of one reply, by Write chunk.
///
/// # Invariants
///
/// - Each payload fits its chunk.
/// - The payloads that are not empty are in stream order, and disjoint with their roundup.
#[derive(Clone, Copy, Default)]
pub(crate) struct Payloads {
    table: [Payload; MAX_WRITE_CHUNKS],
    /// Chunks that have had their turn.
    used: usize,
}

impl Payloads {
    /// Binds the payload of `len` bytes at `off` to the next Write chunk of `lists`.
    ///
    /// # Errors
    ///
    /// - [`ReplyError::WriteChunkTooSmall`] if it does not fit. The chunk has had its turn then: the
    ///   next payload gets the next one.
    /// - [`ReplyError::BadPayload`] if `off` and `len` cannot describe an XDR item.
    pub(crate) fn push(
        &mut self,
        lists: &ReplyLists<'_>,
        off: u32,
        len: u32,
    ) -> Result<(), ReplyError> {
        let new = Payload { off, len };

        if off & 3 != 0 || new.end() > u64::from(u32::MAX) {
            return Err(ReplyError::BadPayload);
        }
        // The upper layer encodes front to back. If this payload begins before another one ends,
        // then it gave that other result up and truncated the stream.
        for old in &mut self.table {
            if old.end() > u64::from(off) {
                *old = Payload::default();
            }
        }
        let Some(chunk) = lists.write_chunks().nth(self.used) else {
            return Ok(());
        };
        let turn = self.used;
        self.used = turn.saturating_add(1);
        if len == 0 || chunk.is_empty() {
            return Ok(());
        }
        if u64::from(len) > chunk.capacity() {
            return Err(ReplyError::WriteChunkTooSmall);
        }
        if let Some(slot) = self.table.get_mut(turn) {
            // INVARIANT: It fits, and all that was not in front of it is gone.
            *slot = new;
        }
        Ok(())
    }

    /// The payload of each Write chunk, as far as a reply of `xdr_len` bytes still has it.
    pub(super) fn within(&self, xdr_len: u32) -> [Payload; MAX_WRITE_CHUNKS] {
        self.table.map(|payload| {
            let last = u64::from(payload.off).saturating_add(u64::from(payload.len));
            if last > u64::from(xdr_len) {
                // The result was given up after it had been reported.
                Payload::default()
            } else {
                payload
            }
        })
    }
}
