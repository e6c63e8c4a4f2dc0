// SPDX-License-Identifier: GPL-2.0

//! What pulling a Call needs: pages to land in, and room in the Send Queue.
//!
//! Both are known from the header alone, so a Call that can never be pulled is refused before
//! anything is allocated, mapped or posted.

use super::{
    assembly::Piece,
    call::{
        padded,
        Call,
        Layout, //
    },
};

use core::num::NonZeroU32;

/// Size of the pages a Call lands in.
const PAGE_SIZE: u32 = 4096;

/// Upper bounds on the RDMA Reads of one Call.
///
/// Exact if each page is mapped alone, each segment is read by work requests of its own, and each
/// work request but the last of a segment has as many SGEs as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadDemand {
    /// RDMA Read work requests.
    pub(crate) work_requests: u32,
    /// Local SGEs in all of them.
    pub(crate) sges: u32,
}

impl Call<'_> {
    /// Pages that the Reads (and, for [`Layout::Stream`], the copies) fill, from offset 0 of the
    /// first.
    pub(crate) fn sink_pages(&self) -> usize {
        let bytes = match self.layout() {
            Layout::Inline => 0,
            Layout::Single { chunk_len, .. } => padded(chunk_len),
            Layout::Stream => self.call_len(),
        };
        usize::try_from(bytes.div_ceil(PAGE_SIZE)).unwrap_or(usize::MAX)
    }

    /// The RDMA Reads into those pages, with at most `max_sge` SGEs in a work request.
    pub(crate) fn read_demand(&self, max_sge: NonZeroU32) -> ReadDemand {
        let single = matches!(self.layout(), Layout::Single { .. });
        let mut demand = ReadDemand {
            work_requests: 0,
            sges: 0,
        };
        let mut at: u32 = 0;

        for piece in self.assembly() {
            let end = at.saturating_add(piece.len());
            match piece {
                Piece::Remote { .. } => {
                    let sges = end
                        .div_ceil(PAGE_SIZE)
                        .saturating_sub(at.div_euclid(PAGE_SIZE));
                    demand.sges = demand.sges.saturating_add(sges);
                    demand.work_requests = demand
                        .work_requests
                        .saturating_add(sges.div_ceil(max_sge.get()));
                }
                // The pages hold nothing but the chunk.
                Piece::Inline { .. } if single => continue,
                Piece::Inline { .. } | Piece::Pad { .. } => {}
            }
            at = end;
        }
        demand
    }
}
