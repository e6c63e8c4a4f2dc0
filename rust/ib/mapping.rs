// SPDX-License-Identifier: GPL-2.0

//! Mappings of memory for a device.
//!
//! Mapping goes through `ib_dma_*` only: software devices such as rxe have no DMA device, and the
//! "address" they are given is a kernel pointer. An address therefore has no formatter and is
//! judged by `ib_dma_mapping_error` alone.
//!
//! Each call into the DMA API passes [`Check`], which does nothing unless the module was built with
//! checks.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use crate::{
    ffi,
    ib::{
        client::DeviceGuard,
        dma_check::Check, //
    },
    kern::{
        context::Sleepable,
        page::PageRange, //
    },
    stats, //
};
use kernel::prelude::*;

/// An address as a device sees it.
#[derive(Clone, Copy)]
pub(crate) struct DmaAddr(u64);

impl DmaAddr {
    /// An address inside a registered memory region, for the region's key.
    pub(super) fn from_region(iova: u64) -> Self {
        Self(iova)
    }

    /// The first address of a range that an IOMMU maps.
    pub(super) fn from_iova(iova: u64) -> Self {
        Self(iova)
    }

    /// The value for a scatter/gather element.
    pub(super) fn raw(self) -> u64 {
        self.0
    }
}

/// Which way a device moves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The device reads the memory.
    ToDevice,
    /// The device writes the memory.
    FromDevice,
}

impl Direction {
    /// Whether the device writes.
    pub(super) fn is_from_device(self) -> bool {
        self == Self::FromDevice
    }
}

/// Memory mapped for a device.
///
/// Dropping it does not undo the mapping: [`Mapping::undo`] needs the device.
///
/// # Invariants
///
/// `addr` is a live mapping of `len` bytes in `direction` for the device given to
/// [`Mapping::new`].
#[must_use]
pub(super) struct Mapping {
    addr: DmaAddr,
    len: usize,
    direction: Direction,
    check: Check,
}

impl Mapping {
    /// Maps `range`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// Until [`Mapping::undo`] the memory stays allocated, and while it is mapped from the device
    /// nobody else uses it.
    pub(super) unsafe fn new(
        device: &DeviceGuard,
        range: &PageRange<'_>,
        direction: Direction,
        context: &Sleepable,
    ) -> Result<Self> {
        // SAFETY: By this function's contract.
        let mut check = unsafe { Check::prepare(range, direction, context) }?;
        let given = check.given(range);
        // SAFETY: The device is registered while guarded; the range is valid memory by its invariant.
        let addr = unsafe {
            ffi::svcrs_dma_map_page(
                device.as_ptr(),
                given.page(),
                given.offset(),
                given.len(),
                direction.is_from_device(),
            )
        };
        // SAFETY: The device is registered while guarded.
        if unsafe { ffi::svcrs_dma_mapping_failed(device.as_ptr(), addr) } {
            return Err(ENOMEM);
        }
        stats::objects().mappings.inc();
        let len = range.len();
        check.mapped(device, addr, len, direction);
        // INVARIANT: Just mapped.
        Ok(Self {
            addr: DmaAddr(addr),
            len,
            direction,
            check,
        })
    }

    /// Where the device finds the first byte.
    pub(super) fn addr(&self) -> DmaAddr {
        self.addr
    }

    /// Gives the memory back to the CPU.
    ///
    /// # Safety
    ///
    /// `device` is the one that was given to [`Mapping::new`], and it is done with the memory.
    pub(super) unsafe fn undo(mut self, device: &DeviceGuard) {
        // SAFETY: Live by the type invariant and by this function's contract.
        unsafe {
            ffi::svcrs_dma_unmap_page(
                device.as_ptr(),
                self.addr.0,
                self.len,
                self.direction.is_from_device(),
            )
        };
        self.check
            .unmapped(device, self.addr.0, self.len, self.direction);
        stats::objects().mappings.dec();
    }

    /// Lets the CPU write the memory of a mapping that the device only reads.
    ///
    /// # Safety
    ///
    /// As for [`Mapping::undo`].
    pub(super) unsafe fn sync_for_cpu(&mut self, device: &DeviceGuard) {
        // SAFETY: Live by the type invariant and by this function's contract.
        unsafe {
            ffi::svcrs_dma_sync_for_cpu(
                device.as_ptr(),
                self.addr.0,
                self.len,
                self.direction.is_from_device(),
            )
        };
    }

    /// Shows the device what the CPU wrote to the first `len` bytes.
    ///
    /// # Safety
    ///
    /// `device` is the one that was given to [`Mapping::new`].
    pub(super) unsafe fn sync_for_device(&mut self, device: &DeviceGuard, len: usize) {
        let len = len.min(self.len);
        // SAFETY: Live by the type invariant and by this function's contract.
        unsafe {
            ffi::svcrs_dma_sync_for_device(
                device.as_ptr(),
                self.addr.0,
                len,
                self.direction.is_from_device(),
            )
        };
        self.check.synced(device, self.addr.0, len, self.direction);
    }
}
