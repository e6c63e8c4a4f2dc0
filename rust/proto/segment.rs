// SPDX-License-Identifier: GPL-2.0

//! RDMA segments: the unit both chunk lists are made of (RFC 8166 section 3.4.3).

use super::{
    reject::Reason,
    wire::Reader, //
};

/// Wire length of a segment.
pub(super) const SEGMENT_LEN: usize = 16;

/// A piece of the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Steering tag (R_key).
    pub(crate) handle: u32,
    /// Length in bytes; 0 is legal.
    pub(crate) length: u32,
    /// Address of the first byte, in the peer's terms.
    pub(crate) offset: u64,
}

impl Segment {
    /// Nothing, nowhere.
    pub(super) const EMPTY: Self = Self {
        handle: 0,
        length: 0,
        offset: 0,
    };

    /// Reads one segment, or returns [`None`] if `reader` holds less.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            handle: reader.word()?,
            length: reader.word()?,
            offset: reader.hyper()?,
        })
    }

    fn wraps(&self) -> bool {
        self.offset.checked_add(u64::from(self.length)).is_none()
    }
}

/// Iterator over packed segments.
#[derive(Clone, Copy)]
pub(super) struct Segments<'a>(Reader<'a>);

impl<'a> Segments<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(Reader::new(bytes))
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        Segment::read(&mut self.0)
    }
}

/// Accounts for the segments of one message: their number, and whether they share one handle.
pub(super) struct Census {
    left: u32,
    handle: Option<u32>,
    several: bool,
}

impl Census {
    /// A census that admits `max` segments.
    pub(super) fn new(max: u32) -> Self {
        Self {
            left: max,
            handle: None,
            several: false,
        }
    }

    /// Admits one segment.
    pub(super) fn admit(&mut self, segment: &Segment) -> Result<(), Reason> {
        if segment.wraps() {
            return Err(Reason::SegmentWrap);
        }
        self.left = self.left.checked_sub(1).ok_or(Reason::TooManySegments)?;
        match self.handle {
            None => self.handle = Some(segment.handle),
            Some(handle) if handle != segment.handle => self.several = true,
            Some(_) => {}
        }
        Ok(())
    }

    /// The handle that every segment of the message has, if there is one and it is not 0.
    ///
    /// A Send with Invalidate names exactly one handle (RFC 8797 section 4.1); 0 never is one that
    /// a peer can have registered.
    pub(super) fn sole_handle(&self) -> Option<u32> {
        match self.handle {
            Some(handle) if handle != 0 && !self.several => Some(handle),
            _ => None,
        }
    }
}
