// SPDX-License-Identifier: GPL-2.0

//! The Write list and the Reply chunk of a Call: where results go, and what the reply header echoes.
//!
//! The view is built on the raw bytes. They are contiguous in the Call, so the transport copies them
//! into the context of the RPC and the Receive page is free to go (RFC 8166 sections 4.3.2, 4.3.3).

use super::{
    reject::Reason,
    segment::{
        Census,
        Segments,
        SEGMENT_LEN, //
    },
    wire::Reader,
    MAX_WRITE_CHUNKS, //
};

/// Reads a list discriminator.
pub(super) fn item_present(reader: &mut Reader<'_>) -> Result<bool, Reason> {
    match reader.word() {
        None => Err(Reason::NoTerminator),
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        Some(_) => Err(Reason::BadBool),
    }
}

/// One Write chunk, or the Reply chunk: an array of segments that is filled from the front.
#[derive(Clone, Copy)]
pub(crate) struct WriteChunk<'a> {
    segments: &'a [u8],
}

impl<'a> WriteChunk<'a> {
    /// Reads the segment count and the segments behind it; [`None`] if the message is too short.
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let count = usize::try_from(reader.word()?).ok()?;
        // An absurd count fails here, before anything is sized by it.
        let len = count.checked_mul(SEGMENT_LEN)?;
        Some(Self {
            segments: reader.bytes(len)?,
        })
    }

    fn admit(&self, census: &mut Census) -> Result<(), Reason> {
        self.segments()
            .try_for_each(|segment| census.admit(&segment))
    }

    /// The segments in the order they are filled.
    pub(super) fn segments(&self) -> Segments<'a> {
        Segments::new(self.segments)
    }

    /// Whether the chunk has no segment: it holds a place in the list, its result goes inline.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes that fit into the chunk.
    pub(crate) fn capacity(&self) -> u64 {
        self.segments().fold(0, |sum: u64, segment| {
            sum.saturating_add(u64::from(segment.length))
        })
    }
}

/// Iterator over the chunks of a Write list.
#[derive(Clone, Copy)]
pub(super) struct WriteChunks<'a>(Reader<'a>);

impl<'a> Iterator for WriteChunks<'a> {
    type Item = WriteChunk<'a>;

    fn next(&mut self) -> Option<WriteChunk<'a>> {
        match item_present(&mut self.0) {
            Ok(true) => WriteChunk::read(&mut self.0),
            _ => None,
        }
    }
}

/// The Write list and the Reply chunk of one Call.
///
/// # Invariants
///
/// `wire` holds a well-formed Write list of `write_chunks` chunks (at most [`MAX_WRITE_CHUNKS`]),
/// then the Reply chunk that `reply_chunk` views, and nothing else. No segment wraps.
#[derive(Clone, Copy)]
pub(crate) struct ReplyLists<'a> {
    wire: &'a [u8],
    write_chunks: usize,
    reply_chunk: Option<WriteChunk<'a>>,
}

impl<'a> ReplyLists<'a> {
    /// Reads both from `reader`.
    pub(super) fn read(reader: &mut Reader<'a>, census: &mut Census) -> Result<Self, Reason> {
        let all = reader.rest();
        let mut write_chunks: usize = 0;

        while item_present(reader)? {
            let chunk = WriteChunk::read(reader).ok_or(Reason::WriteTruncated)?;
            if write_chunks >= MAX_WRITE_CHUNKS {
                return Err(Reason::TooManyWriteChunks);
            }
            chunk.admit(census)?;
            write_chunks = write_chunks.saturating_add(1);
        }
        let reply_chunk = if item_present(reader)? {
            let chunk = WriteChunk::read(reader).ok_or(Reason::ReplyTruncated)?;
            chunk.admit(census)?;
            Some(chunk)
        } else {
            None
        };

        let len = all.len().saturating_sub(reader.rest().len());
        Ok(Self {
            wire: all.get(..len).unwrap_or_default(),
            write_chunks,
            reply_chunk,
        })
    }

    /// Views a copy of the bytes that [`Call::reply_lists_wire`](super::Call::reply_lists_wire)
    /// gave; [`None`] if it is not one.
    pub(crate) fn from_wire(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        // The Call was admitted already; its limit on segments is not needed again.
        let lists = Self::read(&mut reader, &mut Census::new(u32::MAX)).ok()?;
        reader.rest().is_empty().then_some(lists)
    }

    /// The bytes of both.
    pub(super) fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// The Write chunks, in the order results are assigned to them.
    pub(super) fn write_chunks(&self) -> WriteChunks<'a> {
        WriteChunks(Reader::new(self.wire))
    }

    /// The Reply chunk.
    pub(crate) fn reply_chunk(&self) -> Option<WriteChunk<'a>> {
        self.reply_chunk
    }

    /// Whether the Call offers neither.
    pub(crate) fn is_empty(&self) -> bool {
        self.write_chunks == 0 && self.reply_chunk.is_none()
    }
}
