// SPDX-License-Identifier: GPL-2.0

//! Reassembly: where each byte of the RPC Call comes from (RFC 8166 section 3.4.5).
//!
//! The base stream (the inline payload, or the Position Zero Read chunk) is cut at the place of each
//! Read chunk, and the chunk is inserted there with its roundup. The receiver supplies the roundup
//! always: a requester that sent it as part of the chunk has a chunk that needs none.

use super::{
    call::Call,
    read_chunks::SegmentsAt,
    segment::Segment,
    wire::pad, //
};

/// A run of bytes of the Call; its length is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of [`Call::payload`].
    Inline {
        /// Offset in the payload.
        off: u32,
        /// Number of bytes.
        len: u32,
    },
    /// Bytes in the peer's memory.
    Remote {
        /// Steering tag.
        handle: u32,
        /// Address of the first byte of the run.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// Zeroes.
    Pad {
        /// Number of bytes, 1 to 3.
        len: u32,
    },
}

impl Piece {
    /// Number of bytes.
    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Inline { len, .. } | Self::Remote { len, .. } | Self::Pad { len } => *len,
        }
    }
}

/// The bytes of one Read chunk, from where the last run ended.
#[derive(Clone, Copy)]
struct Source<'a> {
    segments: SegmentsAt<'a>,
    current: Segment,
}

impl<'a> Source<'a> {
    fn new(entries: &'a [u8], position: u32) -> Self {
        Self {
            segments: SegmentsAt::new(entries, position),
            current: Segment::EMPTY,
        }
    }

    /// The next run of at most `max` bytes, inside one segment.
    fn take(&mut self, max: u32) -> Option<Piece> {
        if max == 0 {
            return None;
        }
        if self.current.length == 0 {
            self.current = self.segments.next()?;
        }
        let Segment {
            handle,
            length,
            offset,
        } = self.current;
        let len = length.min(max);

        // No segment wraps, so neither of these saturates.
        self.current.length = length.saturating_sub(len);
        self.current.offset = offset.saturating_add(u64::from(len));
        Some(Piece::Remote {
            handle,
            offset,
            len,
        })
    }
}

/// Iterator over the pieces of a Call, in stream order.
///
/// The lengths add up to [`Call::call_len`]. There are at most as many pieces as Read segments, plus
/// two per chunk, plus one.
pub(crate) struct Assembly<'a> {
    call: Call<'a>,
    /// The Position Zero Read chunk.
    base: Source<'a>,
    /// Bytes of the base stream given out.
    base_off: u32,
    /// The current chunk, its bytes to come, and the roundup to come behind them.
    chunk: Source<'a>,
    chunk_left: u32,
    pad: u32,
    /// Index of the chunk behind it.
    next_chunk: usize,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(call: Call<'a>) -> Self {
        let base = Source::new(call.read_entries(), 0);
        Self {
            call,
            base,
            base_off: 0,
            chunk: base,
            chunk_left: 0,
            pad: 0,
            next_chunk: 0,
        }
    }

    /// A run of the base stream that ends before `until`.
    fn take_base(&mut self, until: u32) -> Option<Piece> {
        let max = until.saturating_sub(self.base_off);
        if max == 0 {
            return None;
        }
        let piece = if self.call.is_nomsg() {
            self.base.take(max)?
        } else {
            Piece::Inline {
                off: self.base_off,
                len: max,
            }
        };
        self.base_off = self.base_off.saturating_add(piece.len());
        Some(piece)
    }
}

impl Iterator for Assembly<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.chunk.take(self.chunk_left) {
                self.chunk_left = self.chunk_left.saturating_sub(piece.len());
                return Some(piece);
            }
            if self.pad != 0 {
                return Some(Piece::Pad {
                    len: core::mem::take(&mut self.pad),
                });
            }

            let chunk = self.call.chunks().get(self.next_chunk).copied();
            let until = chunk.map_or(self.call.base_len(), |chunk| chunk.base_off);
            if let Some(piece) = self.take_base(until) {
                return Some(piece);
            }

            let chunk = chunk?;
            self.next_chunk = self.next_chunk.saturating_add(1);
            self.chunk = Source::new(self.call.read_entries(), chunk.position);
            self.chunk_left = chunk.len;
            self.pad = pad(chunk.len);
        }
    }
}
