// SPDX-License-Identifier: GPL-2.0

//! RDMA Reads or Writes of one call, with the memory they use.
//!
//! One value owns the pages, their mappings and the work requests, so none can go while another is
//! in use. It is part of the context that is posted.

use crate::{
    ib::{
        chain::{
            Chain,
            Opcode, //
        },
        client::DeviceGuard,
        dma::{
            Direction,
            DmaMap, //
        },
        pd::LocalKey, //
    },
    kern::page::{
        PageRange,
        PrivatePage,
        SharedPage,
        PAGE_SIZE, //
    }, //
};
use kernel::prelude::*;

/// How much an operation may need.
#[derive(Clone, Copy)]
pub(crate) struct Demand {
    /// Work requests.
    pub(crate) work_requests: usize,
    /// Scatter/gather elements, which is also mappings.
    pub(crate) sges: usize,
}

/// The device an operation is for.
pub(crate) struct Target<'a> {
    /// The device.
    pub(crate) device: &'a DeviceGuard,
    /// The key for mapped memory.
    pub(crate) lkey: LocalKey,
    /// Scatter/gather elements of a work request.
    pub(crate) max_sge: u32,
    /// Bytes of a scatter/gather element.
    pub(crate) max_seg_size: usize,
}

/// Pages, mappings and work requests.
pub(crate) struct RdmaOp {
    // The mappings go before the pages.
    map: DmaMap,
    chain: Chain,
    private: KVec<PrivatePage>,
    shared: KVec<SharedPage>,
    keep_shared: bool,
}

impl RdmaOp {
    /// An operation without memory.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<KBox<Self>> {
        Ok(KBox::new(
            Self {
                map: DmaMap::new(),
                chain: Chain::new(),
                private: KVec::new(),
                shared: KVec::new(),
                keep_shared: false,
            },
            GFP_KERNEL,
        )?)
    }

    /// Prepares an operation of at most `demand`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn begin(&mut self, opcode: Opcode, target: &Target<'_>, demand: Demand) -> Result {
        let direction = match opcode {
            Opcode::Read => Direction::FromDevice,
            Opcode::Write => Direction::ToDevice,
        };
        self.map.begin(target.device, direction, demand.sges)?;
        self.chain.begin(
            opcode,
            demand.work_requests,
            demand.sges,
            target.max_sge,
            target.lkey,
        )
    }

    /// Adds a work request between `offset` of the peer's memory `handle` and `pieces` of ours.
    /// Pieces that are contiguous become one scatter/gather element.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when memory cannot be mapped, `ENOSPC` beyond the demand.
    fn transfer<'a>(
        map: &mut DmaMap,
        chain: &mut Chain,
        (handle, offset): (u32, u64),
        pieces: impl Iterator<Item = PageRange<'a>>,
        max_seg_size: usize,
    ) -> Result {
        chain.start(handle, offset)?;
        let mut add = |range: &PageRange<'a>| -> Result {
            let len = u32::try_from(range.len())?;
            chain.add(map.map(range)?, 0, len)
        };
        let mut run: Option<PageRange<'a>> = None;
        for piece in pieces {
            let Some(current) = &mut run else {
                run = Some(piece);
                continue;
            };
            if !current.try_join(&piece, max_seg_size) {
                add(current)?;
                *current = piece;
            }
        }
        match run {
            Some(last) => add(&last),
            None => Err(EINVAL),
        }
    }

    /// Adds an RDMA Read of `len` bytes into the operation's own pages, from byte `at` on.
    ///
    /// # Errors
    ///
    /// As for a Write; `EMSGSIZE` when the pages end before.
    pub(crate) fn read(
        &mut self,
        target: &Target<'_>,
        remote: (u32, u64),
        at: usize,
        len: usize,
    ) -> Result {
        let end = at.checked_add(len).ok_or(EMSGSIZE)?;
        if end > self.private.len().saturating_mul(PAGE_SIZE) {
            return Err(EMSGSIZE);
        }
        let first = at / PAGE_SIZE;
        let pieces = self
            .private
            .iter()
            .enumerate()
            .skip(first)
            .map_while(|(index, page)| {
                let start = index.saturating_mul(PAGE_SIZE);
                let from = at.saturating_sub(start);
                let to = end.saturating_sub(start).min(PAGE_SIZE);
                (to > from).then(|| page.range(from, to.saturating_sub(from)))
            });
        Self::transfer(
            &mut self.map,
            &mut self.chain,
            remote,
            pieces,
            target.max_seg_size,
        )
    }

    /// Adds an RDMA Write of `pieces`, whose pages must be moved to [`RdmaOp::shared_mut`] before
    /// the operation is posted.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when memory cannot be mapped, `ENOSPC` beyond the demand.
    pub(crate) fn write<'a>(
        &mut self,
        target: &Target<'_>,
        remote: (u32, u64),
        pieces: impl Iterator<Item = PageRange<'a>>,
    ) -> Result {
        Self::transfer(
            &mut self.map,
            &mut self.chain,
            remote,
            pieces,
            target.max_seg_size,
        )
    }

    /// Hands the memory back to the CPU.
    pub(crate) fn finish(&mut self) {
        self.map.clear();
        self.chain.clear();
    }

    /// Work requests so far.
    pub(crate) fn work_requests(&self) -> usize {
        self.chain.len()
    }

    /// The work requests, to be posted.
    pub(crate) fn chain_mut(&mut self) -> &mut Chain {
        &mut self.chain
    }

    /// The operation's own pages. Not to be touched between [`RdmaOp::begin`] and
    /// [`RdmaOp::finish`], except to read into them.
    pub(crate) fn private_mut(&mut self) -> &mut KVec<PrivatePage> {
        &mut self.private
    }

    /// Whether [`RdmaOp::shared_mut`] were all pages of a thread, so that the pool may have them
    /// in exchange for those it gave.
    pub(crate) fn set_keep_shared(&mut self, keep: bool) {
        self.keep_shared = keep;
    }

    /// See [`RdmaOp::set_keep_shared`].
    pub(crate) fn keeps_shared(&self) -> bool {
        self.keep_shared
    }

    /// Pages kept for the operation that others may use too.
    pub(crate) fn shared_mut(&mut self) -> &mut KVec<SharedPage> {
        &mut self.shared
    }
}
