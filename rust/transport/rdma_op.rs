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
        mr::{
            Registration,
            Window, //
        },
        pd::LocalKey, //
    },
    kern::page::{
        PageRange,
        PrivatePage,
        SharedPage,
        PAGE_SIZE, //
    },
    stats::{
        self,
        Counted, //
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

/// How RDMA Reads use windows.
#[derive(Clone, Copy)]
pub(crate) struct RegisteredReads {
    /// Pages of a window.
    pub(crate) pages: usize,
    /// The last Read into a window invalidates it.
    pub(crate) read_inv: bool,
    /// Windows must allow remote writing.
    pub(crate) remote_write: bool,
}

/// Pages, mappings and work requests.
pub(crate) struct RdmaOp {
    // The mappings go before the pages.
    map: DmaMap,
    windows: KVec<KBox<Window>>,
    /// The window in use, with its number and its key.
    current: Option<(usize, Registration)>,
    chain: Chain,
    private: KVec<PrivatePage>,
    shared: KVec<SharedPage>,
    keep_shared: bool,
    in_use: Option<Counted>,
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
                windows: KVec::new(),
                current: None,
                chain: Chain::new(),
                private: KVec::new(),
                shared: KVec::new(),
                keep_shared: false,
                in_use: None,
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

    /// Prepares for RDMA Reads through up to `windows` windows, after [`RdmaOp::begin`].
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn begin_windows(&mut self, windows: usize) -> Result {
        self.current = None;
        self.windows.reserve(windows, GFP_KERNEL)?;
        self.chain.begin_registrations(windows)
    }

    /// As [`RdmaOp::read`], through registered memory. Reads come in the order of the bytes they
    /// fill; `take` gives a window for the pages that are reached next.
    ///
    /// # Errors
    ///
    /// As [`RdmaOp::read`], and what `take` returns.
    pub(crate) fn read_registered(
        &mut self,
        how: &RegisteredReads,
        (handle, offset): (u32, u64),
        at: usize,
        len: usize,
        mut take: impl FnMut() -> Result<KBox<Window>>,
    ) -> Result {
        let span = how.pages.checked_mul(PAGE_SIZE).ok_or(EINVAL)?;
        let mut done = 0usize;
        while done < len {
            let position = at.checked_add(done).ok_or(EMSGSIZE)?;
            let number = position.checked_div(span).ok_or(EINVAL)?;
            let within = position.checked_rem(span).ok_or(EINVAL)?;
            let region = match self.current {
                Some((current, region)) if current == number => region,
                _ => {
                    self.end_window(how)?;
                    self.cover(how, number, take()?)?
                }
            };
            let now = len.saturating_sub(done).min(span.saturating_sub(within));
            // CAST: `usize` to `u64` is lossless.
            let remote = offset.checked_add(done as u64).ok_or(EINVAL)?;
            self.chain.start(handle, remote)?;
            self.chain
                .add_region(&region, within, u32::try_from(now)?)?;
            done = done.checked_add(now).ok_or(EMSGSIZE)?;
        }
        Ok(())
    }

    /// Has the window in use invalidated: no Read into it follows.
    ///
    /// # Errors
    ///
    /// `ENOSPC` beyond the windows asked for.
    pub(crate) fn end_window(&mut self, how: &RegisteredReads) -> Result {
        match self.current.take() {
            Some((_, region)) => self.chain.invalidate(&region, how.read_inv),
            None => Ok(()),
        }
    }

    /// Has window `number` of the pages registered.
    fn cover(
        &mut self,
        how: &RegisteredReads,
        number: usize,
        mut window: KBox<Window>,
    ) -> Result<Registration> {
        let first = number.checked_mul(how.pages).ok_or(EMSGSIZE)?;
        let region = window.cover(self.private.iter().skip(first).take(how.pages))?;
        self.windows
            .push_within_capacity(window)
            .map_err(|_| ENOSPC)?;
        self.chain.register(&region, how.remote_write)?;
        self.current = Some((number, region));
        Ok(region)
    }

    /// The windows in use, to be given back when the operation is over.
    pub(crate) fn windows_mut(&mut self) -> &mut KVec<KBox<Window>> {
        &mut self.windows
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
        self.windows.clear();
        self.current = None;
        self.chain.clear();
    }

    /// RDMA Reads or Writes so far.
    pub(crate) fn rdma_requests(&self) -> usize {
        self.chain.rdma_len()
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

    /// Counts the operation as in use, or no longer.
    pub(crate) fn set_in_use(&mut self, in_use: bool) {
        self.in_use = in_use.then(|| Counted::new(&stats::objects().rdma_ops));
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
