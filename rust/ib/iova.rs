// SPDX-License-Identifier: GPL-2.0

//! Scattered memory that an IOMMU shows to a device at one range of addresses.
//!
//! Behind an IOMMU pages that are apart can be next to each other for the device, so that one
//! scatter/gather element describes them all. [`IovaRange::map`] does that, and says so when there is
//! no IOMMU or the memory has gaps inside its pages: then each piece is mapped by itself.
//!
//! C header: [`include/linux/dma-mapping.h`](srctree/include/linux/dma-mapping.h)

use crate::{
    ffi,
    ib::{
        client::DeviceGuard,
        dma_check::{
            self,
            Check, //
        },
        mapping::{
            Direction,
            DmaAddr, //
        }, //
    },
    kern::{
        context::Sleepable,
        lendable::{
            Lendable,
            Pieces, //
        },
        page::{
            PageRange,
            PAGE_SIZE, //
        }, //
    },
    stats, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// Memory mapped for a device as one range.
///
/// Dropping it does not undo the mapping: [`IovaRange::undo`] needs the device.
///
/// # Invariants
///
/// `state` is a range of addresses of the device given to [`IovaRange::map`], the first `linked`
/// bytes of which are mapped in `direction`.
#[must_use]
pub(super) struct IovaRange {
    state: ffi::dma_iova_state,
    linked: usize,
    direction: Direction,
    check: Check,
}

impl IovaRange {
    /// Maps `len` bytes, which `pieces` gives in order.
    ///
    /// `None` if the device does not map through an IOMMU, if there is one piece only, if the whole is
    /// longer than a piece may be, or if something is between two pieces: the IOMMU maps whole pages.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when the memory cannot be mapped, `EMSGSIZE` when it ends before.
    ///
    /// # Safety
    ///
    /// As for [`Mapping::new`](super::mapping::Mapping::new), with all of the memory.
    pub(super) unsafe fn map<M: Lendable>(
        device: &DeviceGuard,
        pieces: &Pieces<'_, M>,
        len: usize,
        direction: Direction,
        _context: &Sleepable,
    ) -> Result<Option<Self>> {
        // Shadow pages are given one by one.
        if !device.maps_by_iommu() || dma_check::bounces() || len > pieces.max() {
            return Ok(None);
        }
        if !are_whole_pages(pieces, len)? {
            return Ok(None);
        }
        let first = pieces.clone().next().ok_or(EMSGSIZE)??;
        // SAFETY: The device maps through an IOMMU, as was just seen.
        let Some(mut range) = (unsafe { Self::alloc(device, &first, len, direction) }) else {
            return Ok(None);
        };
        for piece in pieces.clone() {
            let linked = match piece {
                // SAFETY: By this function's contract. The pieces are whole pages, as was just seen,
                // but for the two ends.
                Ok(piece) => unsafe { range.link(device, &piece) },
                Err(e) => Err(e),
            };
            if let Err(e) = linked {
                // SAFETY: Allocated for this device, which was never told of it.
                unsafe { range.release(device) };
                return Err(e);
            }
        }
        // SAFETY: By the type invariant the range is this device's, and its bytes are mapped.
        let synced = unsafe { ffi::svcrs_iova_sync(device.as_ptr(), &mut range.state, len) };
        if let Err(e) = to_result(synced) {
            // SAFETY: Allocated for this device, which was never told of it.
            unsafe { range.release(device) };
            return Err(e);
        }
        stats::objects().mappings.inc();
        range.check.mapped(device, range.state.addr, len, direction);
        Ok(Some(range))
    }

    /// A range of `len` addresses with nothing behind them yet.
    ///
    /// # Safety
    ///
    /// The device maps through an IOMMU, so that it has a DMA device.
    unsafe fn alloc(
        device: &DeviceGuard,
        first: &PageRange<'_>,
        len: usize,
        direction: Direction,
    ) -> Option<Self> {
        let mut state: ffi::dma_iova_state = pin_init::zeroed();
        // SAFETY: The device is registered while guarded and has a DMA device by this function's contract;
        // the range is valid memory by its invariant.
        let allocated = unsafe {
            ffi::svcrs_iova_alloc(
                device.as_ptr(),
                &mut state,
                first.page(),
                first.offset(),
                len,
            )
        };
        // INVARIANT: Just allocated, nothing is mapped.
        allocated.then_some(Self {
            state,
            linked: 0,
            direction,
            check: Check::without_shadow(),
        })
    }

    /// Maps `piece` behind what is mapped already.
    ///
    /// # Safety
    ///
    /// As for [`IovaRange::map`]. A piece that is not the first begins with a page.
    unsafe fn link(&mut self, device: &DeviceGuard, piece: &PageRange<'_>) -> Result {
        // SAFETY: By this function's contract and the type invariant.
        to_result(unsafe {
            ffi::svcrs_iova_link(
                device.as_ptr(),
                &mut self.state,
                piece.page(),
                piece.offset(),
                self.linked,
                piece.len(),
                self.direction.is_from_device(),
            )
        })?;
        // INVARIANT: Just mapped.
        self.linked = self.linked.saturating_add(piece.len());
        Ok(())
    }

    /// Gives the addresses back.
    ///
    /// # Safety
    ///
    /// `device` is the one that was given to [`IovaRange::map`], and it is done with the memory.
    unsafe fn release(&mut self, device: &DeviceGuard) {
        // SAFETY: By the type invariant and by this function's contract.
        unsafe {
            ffi::svcrs_iova_destroy(
                device.as_ptr(),
                &mut self.state,
                self.linked,
                self.direction.is_from_device(),
            )
        };
    }

    /// Where the device finds the first byte.
    pub(super) fn addr(&self) -> DmaAddr {
        DmaAddr::from_iova(self.state.addr)
    }

    /// Gives the memory back to the CPU.
    ///
    /// # Safety
    ///
    /// `device` is the one that was given to [`IovaRange::map`], and it is done with the memory.
    pub(super) unsafe fn undo(mut self, device: &DeviceGuard) {
        let addr = self.state.addr;
        // SAFETY: By this function's contract.
        unsafe { self.release(device) };
        self.check
            .unmapped(device, addr, self.linked, self.direction);
        stats::objects().mappings.dec();
    }
}

/// Whether there are several pieces of `len` bytes in all, whole pages but for the two ends.
fn are_whole_pages<M: Lendable>(pieces: &Pieces<'_, M>, len: usize) -> Result<bool> {
    let mut done = 0usize;
    for piece in pieces.clone() {
        let piece = piece?;
        let is_first = done == 0;
        done = done.checked_add(piece.len()).ok_or(EMSGSIZE)?;
        let is_last = done == len;
        let end = piece.offset().checked_add(piece.len()).ok_or(EMSGSIZE)?;
        let is_cut = end % PAGE_SIZE != 0;
        if (is_first && is_last) || (!is_first && piece.offset() != 0) || (!is_last && is_cut) {
            return Ok(false);
        }
    }
    Ok(true)
}
