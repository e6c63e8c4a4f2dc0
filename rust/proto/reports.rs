// SPDX-License-Identifier: GPL-2.0

//! What the upper layer reports of a reply while it encodes it: the results that are eligible for
//! reduction, in the order of the reply.
//!
//! They are bound to Write chunks when the reply is complete, not before: `nfsd` of Linux 7.3
//! reports one kind of result at a wrong place, and one that is not eligible, and both are known
//! by what was encoded around them.

use super::{
    payloads::{
        Payload,
        Payloads, //
    },
    plan::ReplyError,
    reply_lists::ReplyLists,
    MAX_WRITE_CHUNKS, //
};

/// Results that are remembered: more than there can be chunks, as some turn out not to be eligible.
const MAX_REPORTS: usize = 2 * MAX_WRITE_CHUNKS;

/// The operation number of READ_PLUS (RFC 7862 section 15.10).
const OP_READ_PLUS: u32 = 68;

/// The arm of READ_PLUS's result that is data (RFC 7862 section 15.10.2).
const NFS4_CONTENT_DATA: u32 = 0;

/// Reported results.
///
/// # Invariants
///
/// The first `count` entries are in use.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reports {
    table: [Payload; MAX_REPORTS],
    count: usize,
}

impl Reports {
    /// Takes note of a result of `len` bytes at `off` of the reply stream. One that finds no room
    /// stays inline.
    pub(crate) fn add(&mut self, off: u32, len: u32) {
        // The upper layer encodes front to back. If this result begins before another one ends,
        // then it gave that other one up and truncated the stream.
        while let Some(last) = self.count.checked_sub(1) {
            let gone = self
                .table
                .get(last)
                .is_some_and(|old| old.off >= off || old.end() > u64::from(off));
            if !gone {
                break;
            }
            self.count = last;
        }
        if let Some(slot) = self.table.get_mut(self.count) {
            *slot = Payload { off, len };
            // INVARIANT: The entry was just written.
            self.count = self.count.saturating_add(1);
        }
    }

    /// The results as an NFSv4 reply really has them. `word` reads a word of the encoded reply.
    ///
    /// `nfsd` reports the target of a READLINK at the place of its count; every other result has
    /// its count in front. It also reports the data of a READ_PLUS, which no binding makes eligible
    /// (RFC 8267 section 6.1); there the number of the operation, its status, the number of
    /// contents (one) and the kind of it are in front of offset and count.
    pub(crate) fn settled(&self, word: impl Fn(u32) -> Option<u32>) -> Self {
        let mut settled = Self::default();
        for &Payload { mut off, len } in self.table.iter().take(self.count) {
            let before = |bytes: u32| off.checked_sub(bytes).and_then(&word);
            if before(4) != Some(len) && len > 0 && word(off) == Some(len) {
                off = off.saturating_add(4);
            } else if before(32) == Some(OP_READ_PLUS)
                && before(28) == Some(0)
                && before(20) == Some(1)
                && before(16) == Some(NFS4_CONTENT_DATA)
            {
                continue;
            }
            settled.add(off, len);
        }
        settled
    }

    /// Binds the results to the Write chunks of `lists`.
    ///
    /// # Errors
    ///
    /// Those of [`Payloads::push`].
    pub(crate) fn bind(&self, lists: &ReplyLists<'_>) -> Result<Payloads, ReplyError> {
        let mut payloads = Payloads::default();
        for report in self.table.iter().take(self.count) {
            payloads.push(lists, report.off, report.len)?;
        }
        Ok(payloads)
    }
}
