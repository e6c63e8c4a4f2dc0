// SPDX-License-Identifier: GPL-2.0

//! Memory regions for RDMA Reads into registered memory.
//!
//! A [`Window`] is a memory region with a scatter/gather list. It is idle, or it covers pages of one
//! operation: mapped, then registered by a work request in front of the Reads, and invalidated by
//! the last Read or by a work request behind them. Only a window whose whole chain completed well
//! is used again; after an error the region's state is unknown, and it is only freed.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use crate::{
    ffi,
    ib::{
        client::DeviceGuard,
        dma::DmaAddr,
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

/// A memory region and its scatter/gather list.
///
/// # Invariants
///
/// - `mr` is valid and of the domain `_pd`.
/// - The first `mapped` entries of `list` are mapped for `device`.
pub(crate) struct Window {
    mr: NonNull<ffi::ib_mr>,
    list: KVec<ffi::scatterlist>,
    mapped: usize,
    device: DeviceGuard,
    _pd: Arc<Pd>,
}

// SAFETY: A memory region is a handle that any thread may use; the list is the window's own.
unsafe impl Send for Window {}

/// Keys and place of a region that covers pages.
#[derive(Clone, Copy)]
pub(crate) struct Registration {
    pub(super) mr: NonNull<ffi::ib_mr>,
    /// Where the region's first byte is, for its key.
    pub(super) iova: DmaAddr,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
}

// SAFETY: A memory region is a handle that any thread may use.
unsafe impl Send for Registration {}

impl Window {
    /// Makes an idle window for `pages` pages.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and what the device's driver returns.
    pub(crate) fn alloc(
        device: &DeviceGuard,
        pd: &Arc<Pd>,
        pages: usize,
        _context: &Sleepable,
    ) -> Result<KBox<Self>> {
        let mut list = KVec::with_capacity(pages, GFP_KERNEL)?;
        for _ in 0..pages {
            // SAFETY: All zeros is a valid value of the C struct.
            let entry: ffi::scatterlist = unsafe { core::mem::zeroed() };
            list.push_within_capacity(entry).map_err(|_| ENOMEM)?;
        }
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
    /// mapped.
    pub(crate) fn cover<'a>(
        &mut self,
        pages: impl Iterator<Item = &'a PrivatePage>,
    ) -> Result<Registration> {
        self.uncover();
        let mut count = 0usize;
        for (page, entry) in pages.zip(self.list.iter_mut()) {
            // CAST: The size of a page.
            // SAFETY: Entry and page are valid.
            unsafe { ffi::svcrs_sg_set_page(entry, page.as_ptr(), PAGE_SIZE as u32, 0) };
            count = count.checked_add(1).ok_or(ENOSPC)?;
        }
        let nents = i32::try_from(count)?;
        let list = self.list.as_mut_ptr();
        // SAFETY: The device is registered while guarded; the list has that many entries.
        let mapped = unsafe { ffi::svcrs_dma_map_sg(self.device.as_ptr(), list, nents) };
        if mapped <= 0 {
            return Err(ENOMEM);
        }
        // INVARIANT: Just mapped.
        self.mapped = count;
        stats::objects().mappings.inc();
        // CAST: The size of a page.
        // SAFETY: Region and list are valid, and the list is mapped.
        let done = unsafe {
            ffi::ib_map_mr_sg(
                self.mr.as_ptr(),
                list,
                mapped,
                core::ptr::null_mut(),
                PAGE_SIZE as u32,
            )
        };
        if done != mapped {
            self.uncover();
            return Err(ENOMEM);
        }
        // SAFETY: The region is valid and registered nowhere.
        unsafe { ffi::svcrs_mr_next_key(self.mr.as_ptr()) };
        let mut view: ffi::svcrs_mr_view = pin_init::zeroed();
        // SAFETY: Both are valid.
        unsafe { ffi::svcrs_mr_view(self.mr.as_ptr(), &mut view) };
        Ok(Registration {
            mr: self.mr,
            iova: DmaAddr::from_region(view.iova),
            lkey: view.lkey,
            rkey: view.rkey,
        })
    }

    /// Gives the pages back to the CPU.
    pub(crate) fn uncover(&mut self) {
        let mapped = core::mem::take(&mut self.mapped);
        // CAST: At most the capacity, which is a `u32`.
        let nents = mapped as i32;
        if nents > 0 {
            let list = self.list.as_mut_ptr();
            // SAFETY: By the type invariant these entries are mapped.
            unsafe { ffi::svcrs_dma_unmap_sg(self.device.as_ptr(), list, nents) };
            stats::objects().mappings.dec();
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.uncover();
        // SAFETY: Valid by the type invariant; `_pd` is dropped after it.
        unsafe { ffi::ib_dereg_mr_user(self.mr.as_ptr(), core::ptr::null_mut()) };
        stats::objects().memory_regions.dec();
    }
}
