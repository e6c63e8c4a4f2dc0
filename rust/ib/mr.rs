// SPDX-License-Identifier: GPL-2.0

//! Memory regions for RDMA Reads into registered memory.
//!
//! A [`Window`] is an idle memory region with a scatter/gather list. Covering pages with it makes it
//! a [`Covered`]: mapped, registered by a work request in front of the Reads, and invalidated by the
//! last Read or by a work request behind them. Only a window whose whole chain completed well is
//! used again; after an error the region's state is unknown, and it is only freed.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use crate::{
    ffi,
    ib::{
        client::DeviceGuard,
        dma_check::Check,
        mapping::{
            Direction,
            DmaAddr, //
        },
        pd::Pd, //
    },
    kern::{
        context::Sleepable,
        page::{
            PrivatePage,
            PAGE_SIZE, //
        }, //
    },
    stats, //
};
use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::Arc, //
};

/// A memory region that covers nothing, and its scatter/gather list.
///
/// # Invariants
///
/// - `mr` is valid and of the domain `_pd`.
/// - The first `mapped` entries of `list` are mapped for `device`; none unless the window is inside
///   a [`Covered`].
pub(crate) struct Window {
    mr: NonNull<ffi::ib_mr>,
    list: KVec<ffi::scatterlist>,
    checks: KVec<Check>,
    mapped: usize,
    device: DeviceGuard,
    _pd: Arc<Pd>,
}

// SAFETY: A memory region is a handle that any thread may use; the list is the window's own.
unsafe impl Send for Window {}

/// A window that covers pages.
///
/// # Invariants
///
/// The window's list is mapped, and its region describes it.
pub(crate) struct Covered {
    window: KBox<Window>,
    /// Where the region's first byte is, for its key.
    iova: DmaAddr,
    lkey: u32,
    rkey: u32,
}

impl Window {
    /// Makes an idle window for `pages` pages.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL` for no pages, and what the device's driver returns.
    pub(crate) fn alloc(
        device: &DeviceGuard,
        pd: &Arc<Pd>,
        pages: usize,
        _context: &Sleepable,
    ) -> Result<KBox<Self>> {
        if pages == 0 {
            return Err(EINVAL);
        }
        let mut list = KVec::with_capacity(pages, GFP_KERNEL)?;
        for _ in 0..pages {
            // SAFETY: All zeros is a valid value of the C struct.
            let entry: ffi::scatterlist = unsafe { core::mem::zeroed() };
            list.push_within_capacity(entry).map_err(|_| ENOMEM)?;
        }
        let checks = KVec::with_capacity(pages, GFP_KERNEL)?;
        let count = u32::try_from(pages)?;
        // SAFETY: The list has that many entries.
        unsafe { ffi::sg_init_table(list.as_mut_ptr(), count) };
        // SAFETY: The domain is valid.
        let mr = from_err_ptr(unsafe {
            ffi::ib_alloc_mr(pd.as_ptr(), ffi::ib_mr_type_IB_MR_TYPE_MEM_REG, count)
        })?;
        stats::objects().memory_regions.inc();
        // INVARIANT: Just made, and nothing is mapped.
        let window = Self {
            mr: NonNull::new(mr).ok_or(ENOMEM)?,
            list,
            checks,
            mapped: 0,
            device: device.again(),
            _pd: pd.clone(),
        };
        Ok(KBox::new(window, GFP_KERNEL)?)
    }

    /// Maps `pages` and makes the region theirs, under a key it has not had before.
    ///
    /// # Errors
    ///
    /// `ENOSPC` when there are more than the window can cover, `ENOMEM` when they cannot be
    /// mapped. The window is freed.
    ///
    /// # Safety
    ///
    /// The pages stay allocated, and nobody uses them, until [`Covered::uncover`].
    pub(super) unsafe fn cover(
        mut self: KBox<Self>,
        pages: &[PrivatePage],
        context: &Sleepable,
    ) -> Result<Covered> {
        if pages.len() > self.list.len() {
            return Err(ENOSPC);
        }
        let window = &mut *self;
        for (page, entry) in pages.iter().zip(window.list.iter_mut()) {
            let range = page.range(0, PAGE_SIZE);
            // SAFETY: By this function's contract.
            let check = unsafe { Check::prepare(&range, Direction::FromDevice, context) }?;
            // CAST: The size of a page.
            // SAFETY: Entry and page are valid.
            unsafe {
                ffi::svcrs_sg_set_page(entry, check.given(&range).page(), PAGE_SIZE as u32, 0)
            };
            window
                .checks
                .push_within_capacity(check)
                .map_err(|_| ENOSPC)?;
        }
        let nents = i32::try_from(pages.len())?;
        let list = window.list.as_mut_ptr();
        // SAFETY: The device is registered while guarded; the list has that many entries.
        let mapped = unsafe { ffi::svcrs_dma_map_sg(window.device.as_ptr(), list, nents) };
        if mapped <= 0 {
            return Err(ENOMEM);
        }
        // INVARIANT: Just mapped.
        window.mapped = pages.len();
        stats::objects().mappings.inc();
        for (entry, check) in window.list.iter().zip(window.checks.iter_mut()) {
            check.mapped(
                &window.device,
                Self::name(entry),
                PAGE_SIZE,
                Direction::FromDevice,
            );
        }
        // CAST: The size of a page.
        // SAFETY: Region and list are valid, and the list is mapped.
        let done = unsafe {
            ffi::ib_map_mr_sg(
                window.mr.as_ptr(),
                list,
                mapped,
                core::ptr::null_mut(),
                PAGE_SIZE as u32,
            )
        };
        if done != mapped {
            return Err(ENOMEM);
        }
        // SAFETY: The region is valid and registered nowhere.
        unsafe { ffi::svcrs_mr_next_key(window.mr.as_ptr()) };
        let mut view: ffi::svcrs_mr_view = pin_init::zeroed();
        // SAFETY: Both are valid.
        unsafe { ffi::svcrs_mr_view(window.mr.as_ptr(), &mut view) };
        // INVARIANT: Mapped and described above.
        Ok(Covered {
            iova: DmaAddr::from_region(view.iova),
            lkey: view.lkey,
            rkey: view.rkey,
            window: self,
        })
    }

    /// What the mapping of a page is called in checks: any name that is its own.
    fn name(entry: &ffi::scatterlist) -> u64 {
        // CAST: An address, only to be compared.
        core::ptr::from_ref(entry) as u64
    }

    /// Gives the pages back to the CPU.
    fn unmap(&mut self) {
        let mapped = core::mem::take(&mut self.mapped);
        // CAST: At most the capacity, which is a `u32`.
        let nents = mapped as i32;
        if nents > 0 {
            let list = self.list.as_mut_ptr();
            // SAFETY: By the type invariant these entries are mapped.
            unsafe { ffi::svcrs_dma_unmap_sg(self.device.as_ptr(), list, nents) };
            for (entry, mut check) in self.list.iter().zip(self.checks.drain_all()) {
                check.unmapped(
                    &self.device,
                    Self::name(entry),
                    PAGE_SIZE,
                    Direction::FromDevice,
                );
            }
            stats::objects().mappings.dec();
        }
        self.checks.clear();
    }
}

impl Covered {
    /// Gives the pages back to the CPU.
    pub(super) fn uncover(self) -> KBox<Window> {
        let mut window = self.window;
        window.unmap();
        window
    }

    /// The region.
    pub(super) fn mr(&self) -> *mut ffi::ib_mr {
        self.window.mr.as_ptr()
    }

    /// Where the region's first byte is, for its key.
    pub(super) fn iova(&self) -> DmaAddr {
        self.iova
    }

    /// The key for this end.
    pub(super) fn lkey(&self) -> u32 {
        self.lkey
    }

    /// The key for the peer.
    pub(super) fn rkey(&self) -> u32 {
        self.rkey
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.unmap();
        // SAFETY: Valid by the type invariant; `_pd` is dropped after it.
        unsafe { ffi::ib_dereg_mr_user(self.mr.as_ptr(), core::ptr::null_mut()) };
        stats::objects().memory_regions.dec();
    }
}
