// SPDX-License-Identifier: GPL-2.0

//! The RDMA Writes of a reply: Write chunks first, then the Reply chunk.

use super::{
    plan::{
        Range,
        Ranges,
        ReplyPlan, //
    },
    reply_lists::{
        ReplyLists,
        WriteChunk,
        WriteChunks, //
    },
    segment::{
        Segment,
        Segments, //
    },
};

/// One run of the reply stream that goes to one run of the peer's memory; its length is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteOp {
    /// Steering tag.
    pub(crate) handle: u32,
    /// Address of the first byte in the peer's memory.
    pub(crate) offset: u64,
    /// Offset of the first byte in the XDR reply stream, before reduction.
    pub(crate) src_off: u32,
    /// Number of bytes.
    pub(crate) len: u32,
}

/// Where the bytes of the current chunk come from.
enum Runs {
    /// A Write chunk: one payload.
    Payload(Option<Range>),
    /// The Reply chunk: the reduced stream.
    Stream(Ranges),
}

impl Runs {
    fn next(&mut self) -> Option<Range> {
        match self {
            Self::Payload(range) => range.take(),
            Self::Stream(ranges) => ranges.next(),
        }
    }
}

/// Iterator over the Writes of one reply.
///
/// Each byte is written once, each op is inside one segment, empty segments are skipped.
pub(crate) struct Writes<'a> {
    plan: ReplyPlan,
    write_chunks: WriteChunks<'a>,
    /// Number of the next Write chunk.
    index: usize,
    /// The Reply chunk until it has its turn.
    reply_chunk: Option<WriteChunk<'a>>,
    segments: Segments<'a>,
    /// What is left of the current segment.
    segment: Segment,
    runs: Runs,
    /// What is left of the current run.
    run: Range,
}

impl ReplyPlan {
    /// The RDMA Writes of the reply. `lists` are those the plan was made with.
    pub(crate) fn writes<'a>(&self, lists: &ReplyLists<'a>) -> Writes<'a> {
        Writes {
            plan: *self,
            write_chunks: lists.write_chunks(),
            index: 0,
            reply_chunk: lists.reply_chunk(),
            segments: Segments::new(&[]),
            segment: Segment::EMPTY,
            runs: Runs::Payload(None),
            run: Range { off: 0, len: 0 },
        }
    }

    /// Number of RDMA Writes.
    pub(crate) fn write_count(&self, lists: &ReplyLists<'_>) -> usize {
        self.writes(lists).count()
    }
}

impl Writes<'_> {
    /// Turns to the next chunk, or returns [`None`] behind the last.
    fn next_chunk(&mut self) -> Option<()> {
        let chunk = if let Some(chunk) = self.write_chunks.next() {
            let payload = self.plan.payload(self.index);
            self.index = self.index.saturating_add(1);
            self.runs = Runs::Payload(Some(Range {
                off: payload.off,
                len: payload.len,
            }));
            chunk
        } else {
            let chunk = self.reply_chunk.take()?;
            if self.plan.reply_chunk_len() == 0 {
                return None;
            }
            self.runs = Runs::Stream(self.plan.reduced_stream());
            chunk
        };
        self.segments = chunk.segments();
        self.segment.length = 0;
        Some(())
    }
}

impl Iterator for Writes<'_> {
    type Item = WriteOp;

    fn next(&mut self) -> Option<WriteOp> {
        while self.run.len == 0 {
            match self.runs.next() {
                Some(run) => self.run = run,
                None => self.next_chunk()?,
            }
        }
        while self.segment.length == 0 {
            // By the invariants of `ReplyPlan` the chunk does not end before its runs do.
            self.segment = self.segments.next()?;
        }

        let len = self.run.len.min(self.segment.length);
        let op = WriteOp {
            handle: self.segment.handle,
            offset: self.segment.offset,
            src_off: self.run.off,
            len,
        };
        // No segment wraps, and no run leaves the stream: nothing saturates.
        self.run.off = self.run.off.saturating_add(len);
        self.run.len = self.run.len.saturating_sub(len);
        self.segment.offset = self.segment.offset.saturating_add(u64::from(len));
        self.segment.length = self.segment.length.saturating_sub(len);
        Some(op)
    }
}
