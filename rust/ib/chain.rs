// SPDX-License-Identifier: GPL-2.0

//! RDMA Reads or Writes to be posted together.
//!
//! The arrays are read by the provider during posting only. The memory they describe is owned by
//! the [`Rdma`](super::rdma::Rdma) that the chain is part of, and that alone adds to it.

use crate::{
    ffi,
    ib::{
        mapping::DmaAddr,
        mr::Covered,
        pd::LocalKey, //
    }, //
};
use kernel::{
    ffi::c_int,
    prelude::*, //
};

/// What a chain's work requests do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opcode {
    /// RDMA Read: from the peer's memory to ours.
    Read,
    /// RDMA Write: from our memory to the peer's.
    Write,
}

/// A list of RDMA work requests.
///
/// # Invariants
///
/// The scatter/gather elements of all RDMA requests, in order, are `sges`: request *i* has
/// `wrs[i].wr.num_sge` of them.
pub(super) struct Chain {
    /// Registrations, posted first.
    regs: KVec<ffi::ib_reg_wr>,
    wrs: KVec<ffi::ib_rdma_wr>,
    /// Invalidations, posted last.
    invs: KVec<ffi::ib_send_wr>,
    sges: KVec<ffi::ib_sge>,
    opcode: Opcode,
    max_sge: u32,
    lkey: u32,
    /// Bytes in the last request.
    last_len: u64,
}

// SAFETY: The pointers in the requests are written while posting and read by nobody else.
unsafe impl Send for Chain {}

/// The chain of an operation, to be posted. It cannot be exchanged for that of another.
pub(crate) struct ChainRef<'a>(&'a mut Chain);

impl<'a> ChainRef<'a> {
    pub(super) fn new(chain: &'a mut Chain) -> Self {
        Self(chain)
    }

    /// Work requests in the chain.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Links the requests in order, the last one to `tail`; the first of the whole list. None is
    /// signaled: they complete by `failed`, and only if they fail.
    pub(super) fn link(
        &mut self,
        tail: *mut ffi::ib_send_wr,
        failed: &'static ffi::ib_cqe,
    ) -> *mut ffi::ib_send_wr {
        self.0.link(tail, failed)
    }

    /// Makes the last request the signaled one, completed by `cqe`.
    pub(super) fn signal_last(&mut self, cqe: *mut ffi::ib_cqe) {
        self.0.signal_last(cqe);
    }
}

impl Chain {
    /// An empty chain without memory.
    pub(super) fn new() -> Self {
        Self {
            regs: KVec::new(),
            wrs: KVec::new(),
            invs: KVec::new(),
            sges: KVec::new(),
            opcode: Opcode::Read,
            max_sge: 1,
            lkey: 0,
            last_len: 0,
        }
    }

    /// Makes room for `wrs` requests with `sges` elements in all, and for `regions` registrations
    /// and as many invalidations.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Context
    ///
    /// May sleep, and allocates only if no earlier use needed as much room.
    pub(super) fn reserve(&mut self, wrs: usize, sges: usize, regions: usize) -> Result {
        self.clear();
        self.wrs.reserve(wrs, GFP_KERNEL)?;
        self.sges.reserve(sges, GFP_KERNEL)?;
        self.regs.reserve(regions, GFP_KERNEL)?;
        self.invs.reserve(regions, GFP_KERNEL)?;
        Ok(())
    }

    /// Empties the chain, for requests of `opcode` with at most `max_sge` elements under `lkey`.
    pub(super) fn begin(&mut self, opcode: Opcode, max_sge: u32, lkey: LocalKey) {
        self.clear();
        self.opcode = opcode;
        self.max_sge = max_sge.max(1);
        self.lkey = lkey.raw();
    }

    /// Empties the chain.
    pub(super) fn clear(&mut self) {
        self.regs.clear();
        self.wrs.clear();
        self.invs.clear();
        self.sges.clear();
        self.last_len = 0;
    }

    /// Work requests in the chain.
    pub(super) fn len(&self) -> usize {
        let registrations = self.regs.len().saturating_add(self.invs.len());
        self.wrs.len().saturating_add(registrations)
    }

    /// Address and length of each scatter/gather element.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn elements(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        // CAST: `u32` to `usize` is lossless.
        self.sges.iter().map(|sge| (sge.addr, sge.length as usize))
    }

    /// RDMA Reads or Writes in the chain.
    pub(super) fn rdma_len(&self) -> usize {
        self.wrs.len()
    }

    /// Has `region` registered before the first Read, for the device to write.
    ///
    /// # Errors
    ///
    /// `ENOSPC` beyond the room asked for.
    pub(super) fn register(&mut self, region: &Covered, remote_write: bool) -> Result {
        // SAFETY: All zeros is a valid value of the C struct.
        let mut reg: ffi::ib_reg_wr = unsafe { core::mem::zeroed() };
        reg.wr.opcode = ffi::ib_wr_opcode_IB_WR_REG_MR;
        reg.mr = region.mr();
        reg.key = region.rkey();
        // CAST: Small flags.
        reg.access = ffi::ib_access_flags_IB_ACCESS_LOCAL_WRITE as c_int;
        if remote_write {
            reg.access |= ffi::ib_access_flags_IB_ACCESS_REMOTE_WRITE as c_int;
        }
        self.regs.push_within_capacity(reg).map_err(|_| ENOSPC)
    }

    /// Has `region` invalidated: by the Read begun last if the device can do that, else by a
    /// request behind all Reads.
    ///
    /// # Errors
    ///
    /// `ENOSPC` beyond the room asked for, `EINVAL` without a Read.
    pub(super) fn invalidate(&mut self, region: &Covered, read_inv: bool) -> Result {
        if read_inv {
            let last = self.wrs.last_mut().ok_or(EINVAL)?;
            last.wr.opcode = ffi::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV;
            last.wr.ex.invalidate_rkey = region.lkey();
            return Ok(());
        }
        // SAFETY: All zeros is a valid value of the C struct.
        let mut inv: ffi::ib_send_wr = unsafe { core::mem::zeroed() };
        inv.opcode = ffi::ib_wr_opcode_IB_WR_LOCAL_INV;
        inv.ex.invalidate_rkey = region.rkey();
        self.invs.push_within_capacity(inv).map_err(|_| ENOSPC)
    }

    /// As [`Chain::add`], with memory of `region` from its byte `at` on.
    ///
    /// # Errors
    ///
    /// As [`Chain::add`].
    pub(super) fn add_region(&mut self, region: &Covered, at: usize, len: u32) -> Result {
        self.lkey = region.lkey();
        self.add(region.iova(), at, len)
    }

    /// Begins a request at `offset` of the peer's memory `handle`.
    ///
    /// # Errors
    ///
    /// `ENOSPC` beyond the room asked for.
    pub(super) fn start(&mut self, handle: u32, offset: u64) -> Result {
        // SAFETY: All zeros is a valid value of the C struct.
        let mut wr: ffi::ib_rdma_wr = unsafe { core::mem::zeroed() };
        wr.remote_addr = offset;
        wr.rkey = handle;
        wr.wr.opcode = match self.opcode {
            Opcode::Read => ffi::ib_wr_opcode_IB_WR_RDMA_READ,
            Opcode::Write => ffi::ib_wr_opcode_IB_WR_RDMA_WRITE,
        };
        self.wrs.push_within_capacity(wr).map_err(|_| ENOSPC)?;
        self.last_len = 0;
        Ok(())
    }

    /// Adds `len` bytes at `addr + skip` to the request begun last, or to one more that continues
    /// it where that one has no element left.
    ///
    /// # Errors
    ///
    /// `ENOSPC` beyond the room asked for, `EINVAL` without a request begun or if an address
    /// would wrap.
    pub(super) fn add(&mut self, addr: DmaAddr, skip: usize, len: u32) -> Result {
        let last = self.wrs.last().ok_or(EINVAL)?;
        // CAST: `num_sge` is never negative.
        if last.wr.num_sge as u32 >= self.max_sge {
            let (handle, offset) = (last.rkey, last.remote_addr);
            let next = offset.checked_add(self.last_len).ok_or(EINVAL)?;
            self.start(handle, next)?;
        }
        // CAST: `usize` to `u64` is lossless.
        let sge = ffi::ib_sge {
            addr: addr.raw().checked_add(skip as u64).ok_or(EINVAL)?,
            length: len,
            lkey: self.lkey,
        };
        self.sges.push_within_capacity(sge).map_err(|_| ENOSPC)?;
        let last = self.wrs.last_mut().ok_or(EINVAL)?;
        last.wr.num_sge = last.wr.num_sge.checked_add(1).ok_or(EINVAL)?;
        self.last_len = self.last_len.saturating_add(len.into());
        Ok(())
    }

    fn link(
        &mut self,
        tail: *mut ffi::ib_send_wr,
        failed: &'static ffi::ib_cqe,
    ) -> *mut ffi::ib_send_wr {
        let mut sge = self.sges.as_mut_ptr();
        for wr in self.wrs.iter_mut() {
            wr.wr.sg_list = sge;
            // CAST: `num_sge` is never negative.
            sge = sge.wrapping_add(wr.wr.num_sge as usize);
            wr.wr.send_flags = 0;
        }
        for inv in self.invs.iter_mut() {
            // Behind all Reads: the fence waits for them.
            inv.send_flags = ffi::ib_send_flags_IB_SEND_FENCE;
        }
        let mut previous: Option<&mut ffi::ib_send_wr> = None;
        let mut first = tail;
        let regs = self.regs.iter_mut().map(|reg| &mut reg.wr);
        let rdma = self.wrs.iter_mut().map(|rdma| &mut rdma.wr);
        let invs = self.invs.iter_mut();
        for wr in Iterator::chain(Iterator::chain(regs, rdma), invs) {
            wr.next = tail;
            // The RDMA core only reads the entry.
            wr.__bindgen_anon_1.wr_cqe = core::ptr::from_ref(failed).cast_mut();
            let this: *mut ffi::ib_send_wr = wr;
            match previous {
                Some(previous) => previous.next = this,
                None => first = this,
            }
            previous = Some(wr);
        }
        first
    }

    fn signal_last(&mut self, cqe: *mut ffi::ib_cqe) {
        let last = match self.invs.last_mut() {
            Some(inv) => Some(inv),
            None => self.wrs.last_mut().map(|rdma| &mut rdma.wr),
        };
        if let Some(last) = last {
            last.send_flags |= ffi::ib_send_flags_IB_SEND_SIGNALED;
            last.__bindgen_anon_1.wr_cqe = cqe;
        }
    }
}
