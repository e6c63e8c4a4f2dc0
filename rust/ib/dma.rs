// SPDX-License-Identifier: GPL-2.0

//! Memory by who may touch it: the CPU, or a device it is mapped for.

use crate::{
    ib::{
        client::DeviceGuard,
        iova::IovaRange,
        mapping::{
            Direction,
            DmaAddr,
            Mapping, //
        }, //
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
    }, //
};
use kernel::prelude::*;

/// Room for one Receive: empty, or one page mapped for the device to write.
///
/// # Invariants
///
/// `loaded` is a page and its mapping for `device`, over the whole page.
pub(crate) struct RecvBuffer {
    device: DeviceGuard,
    loaded: Option<(PrivatePage, Mapping)>,
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
    pub(crate) fn load(&mut self, page: PrivatePage, context: &Sleepable) -> Result {
        self.unload();
        let range = page.range(0, PAGE_SIZE);
        let direction = Direction::FromDevice;
        // SAFETY: The page is private, and goes behind the mapping.
        let mapping = unsafe { Mapping::new(&self.device, &range, direction, context) }?;
        // INVARIANT: Just mapped.
        self.loaded = Some((page, mapping));
        Ok(())
    }

    /// Takes the page back from the device.
    pub(crate) fn unload(&mut self) -> Option<PrivatePage> {
        let (page, mapping) = self.loaded.take()?;
        // SAFETY: By the type invariant it is for this device, which is done: a buffer is out of reach
        // while it is posted.
        unsafe { mapping.undo(&self.device) };
        Some(page)
    }

    /// Where the device writes, while a page is lent.
    pub(super) fn addr(&self) -> Option<DmaAddr> {
        self.loaded.as_ref().map(|(_, mapping)| mapping.addr())
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
/// `mapping` is that of the whole page for `device`, and `None` only while the value is dropped.
pub(crate) struct SendBuffer {
    device: DeviceGuard,
    page: PrivatePage,
    mapping: Option<Mapping>,
}

impl SendBuffer {
    /// Maps `page`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when it cannot be mapped; the page is freed.
    pub(crate) fn new(device: DeviceGuard, page: PrivatePage, context: &Sleepable) -> Result<Self> {
        let range = page.range(0, PAGE_SIZE);
        // SAFETY: The page goes behind the mapping, and nothing is mapped from the device.
        let mapping = unsafe { Mapping::new(&device, &range, Direction::ToDevice, context) }?;
        // INVARIANT: Just mapped.
        Ok(Self {
            device,
            page,
            mapping: Some(mapping),
        })
    }

    /// The buffer, to be written by the CPU. [`SendBuffer::flush`] hands it to the device.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        if let Some(mapping) = &mut self.mapping {
            // SAFETY: By the type invariant it is for this device, which is done: a buffer is out of
            // reach while it is posted.
            unsafe { mapping.sync_for_cpu(&self.device) };
        }
        self.page.bytes_mut()
    }

    /// Makes the first `len` bytes visible to the device.
    pub(crate) fn flush(&mut self, len: usize) {
        if let Some(mapping) = &mut self.mapping {
            // SAFETY: By the type invariant it is for this device.
            unsafe { mapping.sync_for_device(&self.device, len) };
        }
    }

    /// Where the device reads.
    pub(super) fn addr(&self) -> Option<DmaAddr> {
        self.mapping.as_ref().map(Mapping::addr)
    }
}

impl Drop for SendBuffer {
    fn drop(&mut self) {
        if let Some(mapping) = self.mapping.take() {
            // SAFETY: As in `bytes_mut`.
            unsafe { mapping.undo(&self.device) };
        }
    }
}

/// An entry of [`Mappings`].
pub(super) enum Mapped {
    /// One piece of memory.
    Piece(Mapping),
    /// Several pieces, behind an IOMMU.
    Joined(IovaRange),
}

/// Mappings for one device, undone together.
///
/// # Invariants
///
/// Each entry is for `device`.
pub(super) struct Mappings {
    device: DeviceGuard,
    direction: Direction,
    list: KVec<Mapped>,
}

impl Mappings {
    /// An empty list with the room of `list`.
    pub(super) fn new(device: DeviceGuard, direction: Direction, mut list: KVec<Mapped>) -> Self {
        // INVARIANT: Empty.
        list.clear();
        Self {
            device,
            direction,
            list,
        }
    }

    /// Maps `len` bytes of memory, which `pieces` gives in order, and tells `each` where the device
    /// finds them and how many there are: at one address behind an IOMMU, else piece by piece.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when memory cannot be mapped, `ENOSPC` beyond the room there is, `EMSGSIZE` when the
    /// memory ends before, and what `each` returns.
    ///
    /// # Safety
    ///
    /// The memory stays allocated until [`Mappings::undo`] or until the value is dropped, and if it is
    /// mapped from the device nobody uses it until then.
    pub(super) unsafe fn map<M: Lendable>(
        &mut self,
        pieces: Pieces<'_, M>,
        len: usize,
        mut each: impl FnMut(DmaAddr, usize) -> Result,
        context: &Sleepable,
    ) -> Result {
        self.has_room()?;
        let direction = self.direction;
        // SAFETY: By this function's contract.
        let joined = unsafe { IovaRange::map(&self.device, &pieces, len, direction, context) }?;
        if let Some(joined) = joined {
            let addr = joined.addr();
            self.keep(Mapped::Joined(joined))?;
            return each(addr, len);
        }
        for piece in pieces {
            let piece = piece?;
            self.has_room()?;
            // SAFETY: By this function's contract.
            let mapping = unsafe { Mapping::new(&self.device, &piece, direction, context) }?;
            let addr = mapping.addr();
            self.keep(Mapped::Piece(mapping))?;
            each(addr, piece.len())?;
        }
        Ok(())
    }

    fn has_room(&self) -> Result {
        if self.list.len() == self.list.capacity() {
            return Err(ENOSPC);
        }
        Ok(())
    }

    /// Keeps what was just mapped for the device, after [`Mappings::has_room`].
    fn keep(&mut self, mapped: Mapped) -> Result {
        self.list.push_within_capacity(mapped).map_err(|_| ENOSPC)
    }

    /// Undoes all mappings; the list, for its room.
    pub(super) fn undo(mut self) -> KVec<Mapped> {
        self.clear();
        core::mem::take(&mut self.list)
    }

    fn clear(&mut self) {
        for mapped in self.list.drain_all() {
            match mapped {
                // SAFETY: For this device by the type invariant. It is done: the list is part of an
                // operation, which is out of reach while it is posted.
                Mapped::Piece(mapping) => unsafe { mapping.undo(&self.device) },
                // SAFETY: As above.
                Mapped::Joined(range) => unsafe { range.undo(&self.device) },
            }
        }
    }
}

impl Drop for Mappings {
    fn drop(&mut self) {
        self.clear();
    }
}
