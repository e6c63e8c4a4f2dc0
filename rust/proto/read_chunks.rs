// SPDX-License-Identifier: GPL-2.0

//! The Read list of a Call, and the Read chunks it describes (RFC 8166 sections 3.4.5, 4.3.1).
//!
//! The segments of one chunk share its position, but need not be adjacent in the list, nor need the
//! list be sorted. So the list is read once into a sorted table of chunks, and later walked once per
//! chunk to find its segments.

use super::{
    reject::Reason,
    reply_lists::item_present,
    segment::{
        Census,
        Segment, //
    },
    wire::{
        roundup4,
        Reader, //
    },
    MAX_READ_CHUNKS, //
};

/// Wire length of a Read segment with its discriminator.
pub(super) const READ_ENTRY_LEN: usize = 24;

/// Shortest RPC Call header: nothing below this position is eligible for reduction.
const CALL_HEADER: u32 = 40;

/// A Read chunk at a non-zero position.
#[derive(Clone, Copy, Default)]
pub(super) struct ReadChunk {
    /// Offset in the unreduced stream.
    pub(super) position: u32,
    /// Offset in the base stream: the inline payload, or the Position Zero Read chunk.
    pub(super) base_off: u32,
    /// Bytes in the chunk, without roundup; 0 if all its segments are empty.
    pub(super) len: u32,
}

/// Table of the Read chunks of one Call.
///
/// # Invariants
///
/// The first `count` entries are in use, and their positions strictly increase.
#[derive(Clone, Copy, Default)]
pub(super) struct ReadChunks {
    table: [ReadChunk; MAX_READ_CHUNKS],
    count: usize,
}

impl ReadChunks {
    /// The chunks, sorted by position.
    pub(super) fn as_slice(&self) -> &[ReadChunk] {
        self.table.get(..self.count).unwrap_or_default()
    }

    /// The entry for `position`, made if there is none.
    fn entry(&mut self, position: u32) -> Result<&mut ReadChunk, Reason> {
        let at = self
            .as_slice()
            .iter()
            .position(|chunk| chunk.position >= position)
            .unwrap_or(self.count);
        let known = self
            .as_slice()
            .get(at)
            .is_some_and(|chunk| chunk.position == position);

        if !known {
            if self.count >= MAX_READ_CHUNKS {
                return Err(Reason::TooManyReadChunks);
            }
            self.count = self.count.saturating_add(1);
            // INVARIANT: The unused entry at the end moves to the place that keeps the order.
            let moved = self.table.get_mut(at..self.count).unwrap_or_default();
            moved.rotate_right(1);
            if let Some(chunk) = moved.first_mut() {
                *chunk = ReadChunk {
                    position,
                    ..ReadChunk::default()
                };
            }
        }
        self.table.get_mut(at).ok_or(Reason::TooManyReadChunks)
    }

    /// Finds the place of each chunk in a base stream of `base_len` bytes.
    ///
    /// Returns the length of the whole stream: base, chunks, and the roundup of each chunk.
    pub(super) fn place(&mut self, base_len: u32) -> Result<u64, Reason> {
        // The end of the previous chunk, and the bytes all previous chunks stand for, in the
        // unreduced stream.
        let mut end: u64 = 0;
        let mut reduced: u64 = 0;

        for chunk in self.table.iter_mut().take(self.count) {
            let position = u64::from(chunk.position);

            if chunk.position < CALL_HEADER {
                return Err(Reason::PositionInCallHeader);
            }
            if position < end {
                return Err(Reason::ChunkOverlap);
            }
            let base_off = position.saturating_sub(reduced);
            if base_off > u64::from(base_len) {
                return Err(Reason::PositionBeyondPayload);
            }
            chunk.base_off = u32::try_from(base_off).map_err(|_| Reason::PositionBeyondPayload)?;
            end = position.saturating_add(roundup4(chunk.len));
            reduced = reduced.saturating_add(roundup4(chunk.len));
        }
        Ok(u64::from(base_len).saturating_add(reduced))
    }
}

/// What the Read list of one Call says.
#[derive(Default)]
pub(super) struct ReadList {
    /// Segments in the list.
    pub(super) segments: u32,
    /// Whether there is a segment at position zero.
    pub(super) has_call_chunk: bool,
    /// Bytes in the Position Zero Read chunk.
    pub(super) call_chunk_len: u32,
    /// The other chunks, not placed yet.
    pub(super) chunks: ReadChunks,
}

impl ReadList {
    /// Reads the list.
    pub(super) fn read(reader: &mut Reader<'_>, census: &mut Census) -> Result<Self, Reason> {
        let mut list = Self::default();

        while item_present(reader)? {
            let position = reader.word().ok_or(Reason::ReadTruncated)?;
            let segment = Segment::read(reader).ok_or(Reason::ReadTruncated)?;

            if position & 3 != 0 {
                return Err(Reason::MisalignedPosition);
            }
            census.admit(&segment)?;
            list.segments = list.segments.saturating_add(1);

            let len = if position == 0 {
                list.has_call_chunk = true;
                &mut list.call_chunk_len
            } else {
                &mut list.chunks.entry(position)?.len
            };
            // A chunk that needs more than 32 bits is larger than any budget.
            *len = len
                .checked_add(segment.length)
                .ok_or(Reason::CallTooLarge)?;
        }
        Ok(list)
    }
}

/// Iterator over the non-empty segments at one position, in list order.
#[derive(Clone, Copy)]
pub(super) struct SegmentsAt<'a> {
    entries: Reader<'a>,
    position: u32,
}

impl<'a> SegmentsAt<'a> {
    /// Walks `entries`, which are the validated bytes of a Read list without its terminator.
    pub(super) fn new(entries: &'a [u8], position: u32) -> Self {
        Self {
            entries: Reader::new(entries),
            position,
        }
    }
}

impl Iterator for SegmentsAt<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        loop {
            let _present = self.entries.word()?;
            let position = self.entries.word()?;
            let segment = Segment::read(&mut self.entries)?;

            if position == self.position && segment.length != 0 {
                return Some(segment);
            }
        }
    }
}
