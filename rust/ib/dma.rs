// SPDX-License-Identifier: GPL-2.0

//! Memory by who may touch it: the CPU, or a device it is mapped for.
//!
//! Mapping goes through `ib_dma_*` only: software devices such as rxe have no DMA device, and the
//! "address" they are given is a kernel pointer. An address therefore has no formatter and is
//! judged by `ib_dma_mapping_error` alone.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use crate::{
    ffi,
    ib::client::DeviceGuard,
    kern::page::{
        PageRange,
        PrivatePage,
        PAGE_SIZE, //
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

    /// The value for a scatter/gather element.
    pub(super) fn raw(self) -> u64 {
        self.0
    }
}

/// Which way a device moves data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The device reads the memory.
    ToDevice,
    /// The device writes the memory.
    FromDevice,
}

fn map(device: &DeviceGuard, range: &PageRange<'_>, direction: Direction) -> Result<DmaAddr> {
    // SAFETY: The device is registered while guarded; the range is valid memory by its invariant.
    let addr = unsafe {
        ffi::svcrs_dma_map_page(
            device.as_ptr(),
            range.page(),
            range.offset(),
            range.len(),
            direction == Direction::FromDevice,
        )
    };
    // SAFETY: The device is registered while guarded.
    if unsafe { ffi::svcrs_dma_mapping_failed(device.as_ptr(), addr) } {
        return Err(ENOMEM);
    }
    stats::objects().mappings.inc();
    Ok(DmaAddr(addr))
}

/// # Safety
///
/// `addr` came from [`map`] with the same device, length and direction, and is not used again.
unsafe fn unmap(device: &DeviceGuard, addr: DmaAddr, len: usize, direction: Direction) {
    // SAFETY: By this function's contract.
    unsafe {
        ffi::svcrs_dma_unmap_page(
            device.as_ptr(),
            addr.0,
            len,
            direction == Direction::FromDevice,
        )
    };
    stats::objects().mappings.dec();
}

/// Room for one Receive: empty, or one page mapped for the device to write.
///
/// # Invariants
///
/// `loaded` is a page and its live mapping over the whole page.
pub(crate) struct RecvBuffer {
    device: DeviceGuard,
    loaded: Option<(PrivatePage, DmaAddr)>,
}

impl RecvBuffer {
    /// An empty buffer for `device`.
    pub(crate) fn new(device: DeviceGuard) -> Self {
        Self {
            device,
            loaded: None,
        }
    }

    /// Lends `page` to the device. A page lent before is freed.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when it cannot be mapped; the page is freed.
    pub(crate) fn load(&mut self, page: PrivatePage) -> Result {
        self.unload();
        let addr = map(
            &self.device,
            &page.range(0, PAGE_SIZE),
            Direction::FromDevice,
        )?;
        // INVARIANT: Just mapped.
        self.loaded = Some((page, addr));
        Ok(())
    }

    /// Takes the page back from the device.
    pub(crate) fn unload(&mut self) -> Option<PrivatePage> {
        let (page, addr) = self.loaded.take()?;
        // SAFETY: By the type invariant this is the page's live mapping, gone from `self`.
        unsafe { unmap(&self.device, addr, PAGE_SIZE, Direction::FromDevice) };
        Some(page)
    }

    /// Where the device writes, while a page is lent.
    pub(super) fn addr(&self) -> Option<DmaAddr> {
        self.loaded.as_ref().map(|(_, addr)| *addr)
    }
}

impl Drop for RecvBuffer {
    fn drop(&mut self) {
        self.unload();
    }
}

/// A page that stays mapped for the device to read, as Sends are built in it.
///
/// # Invariants
///
/// `addr` is the live mapping of the whole page.
pub(crate) struct SendBuffer {
    device: DeviceGuard,
    page: PrivatePage,
    addr: DmaAddr,
}

impl SendBuffer {
    /// Maps `page`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when it cannot be mapped; the page is freed.
    pub(crate) fn new(device: DeviceGuard, page: PrivatePage) -> Result<Self> {
        let addr = map(&device, &page.range(0, PAGE_SIZE), Direction::ToDevice)?;
        // INVARIANT: Just mapped.
        Ok(Self { device, page, addr })
    }

    /// The buffer, to be written by the CPU. [`SendBuffer::flush`] hands it to the device.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        // SAFETY: By the type invariant this is a live mapping of the device.
        unsafe { ffi::svcrs_dma_sync_for_cpu(self.device.as_ptr(), self.addr.0, PAGE_SIZE, false) };
        self.page.bytes_mut()
    }

    /// Makes the first `len` bytes visible to the device.
    pub(crate) fn flush(&mut self, len: usize) {
        let len = len.min(PAGE_SIZE);
        // SAFETY: As in `bytes_mut`.
        unsafe { ffi::svcrs_dma_sync_for_device(self.device.as_ptr(), self.addr.0, len, false) };
    }

    /// Where the device reads.
    pub(super) fn addr(&self) -> DmaAddr {
        self.addr
    }
}

impl Drop for SendBuffer {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the mapping is live; the buffer goes with it.
        unsafe { unmap(&self.device, self.addr, PAGE_SIZE, Direction::ToDevice) };
    }
}

/// Mappings of one RDMA operation, undone together.
///
/// # Invariants
///
/// Each entry is a live mapping for `device` in direction `direction`; the list is empty while
/// `device` is `None`.
pub(crate) struct DmaMap {
    device: Option<DeviceGuard>,
    direction: Direction,
    ranges: KVec<(DmaAddr, u32)>,
}

impl DmaMap {
    /// No mappings.
    pub(crate) fn new() -> Self {
        Self {
            device: None,
            direction: Direction::ToDevice,
            ranges: KVec::new(),
        }
    }

    /// Prepares an empty map for `device`, with room for `room` mappings.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Context
    ///
    /// May sleep, and allocates only if no earlier use needed as much room.
    pub(crate) fn begin(
        &mut self,
        device: &DeviceGuard,
        direction: Direction,
        room: usize,
    ) -> Result {
        self.clear();
        self.ranges.reserve(room, GFP_KERNEL)?;
        self.device = Some(device.again());
        self.direction = direction;
        Ok(())
    }

    /// Maps a range.
    ///
    /// The caller keeps the range's pages allocated until [`DmaMap::clear`]: the operation that
    /// owns this map owns them too.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when it cannot be mapped, `ENOSPC` beyond the room asked for.
    pub(crate) fn map(&mut self, range: &PageRange<'_>) -> Result<DmaAddr> {
        let device = self.device.as_ref().ok_or(EINVAL)?;
        let len = u32::try_from(range.len())?;
        let addr = map(device, range, self.direction)?;
        // INVARIANT: Just mapped; undone below if it cannot be remembered.
        if self.ranges.push_within_capacity((addr, len)).is_err() {
            // SAFETY: Mapped above and handed to nobody.
            unsafe { unmap(device, addr, range.len(), self.direction) };
            return Err(ENOSPC);
        }
        Ok(addr)
    }

    /// Undoes all mappings.
    pub(crate) fn clear(&mut self) {
        if let Some(device) = self.device.take() {
            for (addr, len) in self.ranges.drain_all() {
                // CAST: `u32` to `usize` is lossless on 64-bit.
                // SAFETY: By the type invariant the mapping is live, and it leaves the list.
                unsafe { unmap(&device, addr, len as usize, self.direction) };
            }
        }
    }
}

impl Drop for DmaMap {
    fn drop(&mut self) {
        self.clear();
    }
}
