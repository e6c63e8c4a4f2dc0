// SPDX-License-Identifier: GPL-2.0

//! Transport headers that the server sends.
//!
//! A grant is a [`NonZeroU32`]: a grant of 0, which the RFC forbids, cannot be expressed. Each byte
//! is written; nothing of the buffer's old content remains.

use super::{
    fixed::{
        procedure,
        Fixed,
        Xid, //
    },
    plan::{
        ReplyForm,
        ReplyPlan, //
    },
    reply_lists::{
        ReplyLists,
        WriteChunk, //
    },
    wire::Writer,
    VERSION, //
};

use core::num::NonZeroU32;

/// `rdma_err` values (RFC 8166 section 4.2.4).
const ERR_VERS: u32 = 1;
const ERR_CHUNK: u32 = 2;

/// The header does not fit the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoSpace;

impl ReplyPlan {
    /// Writes the reply header to the begin of `out` and returns its length. `lists` are those the
    /// plan was made with.
    ///
    /// # Errors
    ///
    /// [`NoSpace`] if `out` is shorter than [`ReplyPlan::header_len`].
    pub(crate) fn encode(
        &self,
        out: &mut [u8],
        lists: &ReplyLists<'_>,
        xid: Xid,
        grant: NonZeroU32,
    ) -> Result<usize, NoSpace> {
        let out = out.get_mut(..self.header_len()).ok_or(NoSpace)?;
        self.encode_words(&mut Writer::new(out), lists, xid, grant)
            .ok_or(NoSpace)?;
        Ok(self.header_len())
    }

    fn encode_words(
        &self,
        out: &mut Writer<'_>,
        lists: &ReplyLists<'_>,
        xid: Xid,
        grant: NonZeroU32,
    ) -> Option<()> {
        out.array(xid.0)?;
        out.word(VERSION)?;
        out.word(grant.get())?;
        out.word(match self.form() {
            ReplyForm::Inline => procedure::RDMA_MSG,
            ReplyForm::ReplyChunk => procedure::RDMA_NOMSG,
        })?;
        out.word(0)?;
        for (index, chunk) in lists.write_chunks().enumerate() {
            out.word(1)?;
            chunk.encode(out, self.payload(index).len)?;
        }
        out.word(0)?;
        match lists.reply_chunk() {
            Some(chunk) => {
                out.word(1)?;
                chunk.encode(out, self.reply_chunk_len())
            }
            None => out.word(0),
        }
    }
}

impl WriteChunk<'_> {
    /// Echoes the chunk with the lengths that `written` bytes have in its segments.
    fn encode(&self, out: &mut Writer<'_>, written: u32) -> Option<()> {
        let mut left = written;

        out.word(u32::try_from(self.segments().count()).ok()?)?;
        for segment in self.segments() {
            let len = segment.length.min(left);
            left = left.saturating_sub(len);
            out.word(segment.handle)?;
            out.word(len)?;
            out.hyper(segment.offset)?;
        }
        Some(())
    }
}

/// Encodes words, in order, into an array of that many words.
fn header<const LEN: usize>(xid: Xid, words: &[u32]) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    let mut out = Writer::new(&mut bytes);

    let _ = out.array(xid.0);
    for word in words {
        let _ = out.word(*word);
    }
    bytes
}

/// RDMA_ERROR with ERR_VERS: only version 1 is spoken (RFC 8166 section 4.5.1).
pub(crate) fn encode_err_vers(to: &Fixed, grant: NonZeroU32) -> [u8; 28] {
    header(
        to.xid,
        &[
            to.vers,
            grant.get(),
            procedure::RDMA_ERROR,
            ERR_VERS,
            VERSION,
            VERSION,
        ],
    )
}

/// RDMA_ERROR with ERR_CHUNK (RFC 8166 section 4.5.2).
pub(crate) fn encode_err_chunk(to: &Fixed, grant: NonZeroU32) -> [u8; 20] {
    header(
        to.xid,
        &[to.vers, grant.get(), procedure::RDMA_ERROR, ERR_CHUNK],
    )
}

/// Header of a reverse-direction Call: RDMA_MSG without chunks (RFC 8167 section 5.1).
pub(crate) fn encode_reverse_call(xid: Xid, credits: NonZeroU32) -> [u8; 28] {
    header(xid, &[VERSION, credits.get(), procedure::RDMA_MSG, 0, 0, 0])
}
