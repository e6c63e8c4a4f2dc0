// SPDX-License-Identifier: GPL-2.0

//! RDMA Reads or Writes, with the memory they use.
//!
//! An [`Rdma`] owns memory, its mappings and the work requests that name it. The memory is out of
//! reach until [`Rdma::finish`], which undoes the mappings first and forgets the work requests. It
//! is part of a context that is posted, so none of the three can go while a device uses it.

use crate::{
    ib::{
        chain::{
            Chain,
            ChainRef,
            Opcode, //
        },
        client::DeviceGuard,
        dma::{
            Mapped,
            Mappings, //
        },
        mapping::Direction,
        mr::{
            Covered,
            Window, //
        },
        pd::LocalKey, //
    },
    kern::{
        context::Sleepable,
        lendable::{
            Lendable,
            Pieces, //
        },
        page::{
            PrivatePage,
            PAGE_SIZE, //
        }, //
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
    /// RDMA Reads or Writes.
    pub(crate) work_requests: usize,
    /// Scatter/gather elements, which is also mappings.
    pub(crate) sges: usize,
    /// Windows.
    pub(crate) windows: usize,
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

/// Room for an operation, kept from one to the next.
pub(crate) struct Room {
    chain: Chain,
    mappings: KVec<Mapped>,
    windows: KVec<Covered>,
}

impl Room {
    /// No room.
    pub(crate) fn new() -> Self {
        Self {
            chain: Chain::new(),
            mappings: KVec::new(),
            windows: KVec::new(),
        }
    }

    /// Makes room for `demand`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Context
    ///
    /// May sleep, and allocates only if no earlier use needed as much.
    pub(crate) fn reserve(&mut self, demand: Demand) -> Result {
        self.mappings.reserve(demand.sges, GFP_KERNEL)?;
        self.windows.reserve(demand.windows, GFP_KERNEL)?;
        self.chain
            .reserve(demand.work_requests, demand.sges, demand.windows)
    }
}

/// An operation and the memory `M` that it is about.
///
/// # Invariants
///
/// All that `chain` names is in `memory`, by way of `mappings` and `windows`.
pub(crate) struct Rdma<M: Lendable> {
    // Dropped in this order: what names memory goes before the memory.
    chain: Chain,
    windows: KVec<Covered>,
    mappings: Mappings,
    memory: M,
    /// The number of the last window, if Reads into it may follow.
    current: Option<usize>,
    max_seg_size: usize,
    _counted: Counted,
}

impl<M: Lendable> Rdma<M> {
    /// An operation of nothing yet, which has as much room as `room`.
    pub(crate) fn begin(opcode: Opcode, target: &Target<'_>, memory: M, room: Room) -> Self {
        let Room {
            mut chain,
            mappings,
            windows,
        } = room;
        let direction = match opcode {
            Opcode::Read => Direction::FromDevice,
            Opcode::Write => Direction::ToDevice,
        };
        chain.begin(opcode, target.max_sge, target.lkey);
        // INVARIANT: The chain is empty.
        Self {
            chain,
            windows,
            mappings: Mappings::new(target.device.again(), direction, mappings),
            memory,
            current: None,
            max_seg_size: target.max_seg_size,
            _counted: Counted::new(&stats::objects().rdma_ops),
        }
    }

    /// Adds a transfer between `offset` of the peer's memory `handle` and `len` bytes of the
    /// operation's memory from `at` on. Memory that is contiguous for the device becomes one
    /// scatter/gather element; a further work request begins where one has no element left.
    ///
    /// # Errors
    ///
    /// `EINVAL` for no bytes, `ENOMEM` when memory cannot be mapped, `ENOSPC` beyond the room, `EMSGSIZE` when the memory
    /// ends before.
    pub(crate) fn transfer(
        &mut self,
        (handle, offset): (u32, u64),
        at: usize,
        len: usize,
        context: &Sleepable,
    ) -> Result {
        if len == 0 {
            return Err(EINVAL);
        }
        let chain = &mut self.chain;
        chain.start(handle, offset)?;
        let pieces = Pieces::new(&self.memory, at, len, self.max_seg_size);
        let each = |addr, len| chain.add(addr, 0, u32::try_from(len)?);
        // SAFETY: The memory is the operation's, behind the mappings and out of reach as long as they
        // are; it stays where it is by the contract of `Lendable`.
        unsafe { self.mappings.map(pieces, len, each, context) }
    }

    /// Forgets the work requests, takes the windows back and gives each to `put`.
    pub(crate) fn release_windows(&mut self, mut put: impl FnMut(KBox<Window>)) {
        self.chain.clear();
        self.current = None;
        for covered in self.windows.drain_all() {
            put(covered.uncover());
        }
    }

    /// Forgets the work requests and hands the memory back to the CPU, and the room. Windows that
    /// are left are freed.
    pub(crate) fn finish(self) -> (M, Room) {
        let Self {
            mut chain,
            mut windows,
            mappings,
            memory,
            ..
        } = self;
        chain.clear();
        windows.clear();
        let mappings = mappings.undo();
        let room = Room {
            chain,
            mappings,
            windows,
        };
        (memory, room)
    }

    /// RDMA Reads or Writes so far.
    pub(crate) fn rdma_requests(&self) -> usize {
        self.chain.rdma_len()
    }

    /// Address and length of each scatter/gather element.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn elements(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        self.chain.elements()
    }

    /// Work requests so far.
    pub(crate) fn work_requests(&self) -> usize {
        self.chain.len()
    }

    /// The work requests, to be posted.
    pub(crate) fn requests(&mut self) -> ChainRef<'_> {
        ChainRef::new(&mut self.chain)
    }
}

impl Rdma<KVec<PrivatePage>> {
    /// As [`Rdma::transfer`], through registered memory. Transfers come in the order of the bytes
    /// they fill; `take` gives a window for the pages that are reached next.
    ///
    /// # Errors
    ///
    /// As [`Rdma::transfer`], and what `take` returns.
    pub(crate) fn transfer_registered(
        &mut self,
        how: &RegisteredReads,
        (handle, offset): (u32, u64),
        at: usize,
        len: usize,
        mut take: impl FnMut() -> Result<KBox<Window>>,
        context: &Sleepable,
    ) -> Result {
        let span = how.pages.checked_mul(PAGE_SIZE).ok_or(EINVAL)?;
        let mut done = 0usize;
        while done < len {
            let position = at.checked_add(done).ok_or(EMSGSIZE)?;
            let number = position.checked_div(span).ok_or(EINVAL)?;
            let within = position.checked_rem(span).ok_or(EINVAL)?;
            if self.current != Some(number) {
                self.end_window(how)?;
                self.cover(how, number, take()?, context)?;
            }
            let region = self.windows.last().ok_or(EINVAL)?;
            let now = len.saturating_sub(done).min(span.saturating_sub(within));
            // CAST: `usize` to `u64` is lossless.
            let remote = offset.checked_add(done as u64).ok_or(EINVAL)?;
            self.chain.start(handle, remote)?;
            self.chain.add_region(region, within, u32::try_from(now)?)?;
            done = done.checked_add(now).ok_or(EMSGSIZE)?;
        }
        Ok(())
    }

    /// Has the window in use invalidated: no transfer into it follows.
    ///
    /// # Errors
    ///
    /// `ENOSPC` beyond the room.
    pub(crate) fn end_window(&mut self, how: &RegisteredReads) -> Result {
        match (self.current.take(), self.windows.last()) {
            (Some(_), Some(region)) => self.chain.invalidate(region, how.read_inv),
            _ => Ok(()),
        }
    }

    /// Has window `number` of the pages registered.
    fn cover(
        &mut self,
        how: &RegisteredReads,
        number: usize,
        window: KBox<Window>,
        context: &Sleepable,
    ) -> Result {
        if self.windows.len() == self.windows.capacity() {
            return Err(ENOSPC);
        }
        let first = number.checked_mul(how.pages).ok_or(EMSGSIZE)?;
        let rest = self.memory.get(first..).ok_or(EMSGSIZE)?;
        let pages = rest.get(..how.pages).unwrap_or(rest);
        // SAFETY: The pages are the operation's, behind the windows and out of reach as long as they
        // are; they stay where they are.
        let region = unsafe { window.cover(pages, context) }?;
        self.chain.register(&region, how.remote_write)?;
        self.windows
            .push_within_capacity(region)
            .map_err(|_| ENOSPC)?;
        self.current = Some(number);
        Ok(())
    }
}
