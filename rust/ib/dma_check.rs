// SPDX-License-Identifier: GPL-2.0

//! Checks of DMA mappings, in a module that is built with them.
//!
//! Software devices need no mapping: unmapping and syncing do nothing, so a forgotten one would not
//! be noticed where these devices are all there is. Two modes make it visible:
//!
//! - *audit*, always: each mapping has an entry in a table. Unmapping, and syncing for the device, must name
//!   the same device, address, length and direction, and at the end the table must be empty.
//! - *bounce*, with the parameter `dma_bounce`: the device is given a page of its own. Data moves
//!   between it and the real memory only when a mapping is made, synced or undone; what should not
//!   be seen is poison.
//!
//! A breach is a line with `BUG:` in the kernel log.
//!
//! Locks: `Table::state`.

use crate::{
    ffi,
    ib::{
        client::DeviceGuard,
        mapping::Direction, //
    },
    kern::{
        context::Sleepable,
        module_cell::{
            self,
            ModuleCell, //
        },
        page::{
            PageRange,
            PrivatePage,
            PAGE_SIZE, //
        }, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

/// Mappings that the table can hold.
const MAX_LIVE: usize = 1 << 16;
/// What memory has that nobody should read.
const POISON: u8 = 0xdb;

static TABLE: ModuleCell<Table> = ModuleCell::new();

/// Keeps the table; belongs into the module's struct.
pub(crate) struct Installed(module_cell::Installed<Table>);

/// Makes the table.
///
/// # Errors
///
/// `ENOMEM`.
pub(crate) fn install() -> Result<Installed> {
    let table = KBox::try_pin_init(Table::new(), GFP_KERNEL)?;
    Ok(Installed(TABLE.install(table)))
}

impl Drop for Installed {
    fn drop(&mut self) {
        let live = self.0.state.lock().live;
        if live != 0 {
            pr_err!("BUG: DMA check: {live} mappings are left\n");
        }
    }
}

/// Whether devices get pages of their own.
pub(super) fn bounces() -> bool {
    // SAFETY: The kernel sets the parameter before the module's initialization and never after.
    unsafe { ffi::svcrs_dma_bounce }
}

/// Bytes that one mapping can have.
pub(crate) fn max_mapping() -> usize {
    if bounces() {
        PAGE_SIZE
    } else {
        usize::MAX
    }
}

/// What is known of a live mapping.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    device: usize,
    addr: u64,
    len: usize,
    direction: Direction,
}

/// All live mappings.
#[pin_data]
struct Table {
    #[pin]
    state: SpinLock<State>,
}

struct State {
    entries: KVVec<Option<Entry>>,
    free: KVVec<usize>,
    live: usize,
}

impl Table {
    fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            state <- {
                let state = State {
                    entries: KVVec::with_capacity(MAX_LIVE, GFP_KERNEL)?,
                    free: KVVec::with_capacity(MAX_LIVE, GFP_KERNEL)?,
                    live: 0,
                };
                new_spinlock!(state, "svcrdma_rs::dma_check")
            },
        }? Error)
    }

    /// The entry's number, if there is room for it.
    fn enter(&self, entry: Entry) -> Option<usize> {
        let mut state = self.state.lock();
        let number = match state.free.pop() {
            Some(number) => {
                *state.entries.get_mut(number)? = Some(entry);
                number
            }
            None => {
                state.entries.push_within_capacity(Some(entry)).ok()?;
                state.entries.len().checked_sub(1)?
            }
        };
        state.live = state.live.saturating_add(1);
        Some(number)
    }

    /// Takes an entry out.
    fn leave(&self, number: usize) -> Option<Entry> {
        let mut state = self.state.lock();
        let entry = state.entries.get_mut(number)?.take()?;
        state.live = state.live.saturating_sub(1);
        // There is as much room as there are entries.
        let _ = state.free.push_within_capacity(number);
        Some(entry)
    }

    fn entry(&self, number: usize) -> Option<Entry> {
        *self.state.lock().entries.get(number)?
    }
}

/// A page that the device gets instead of the real memory.
struct Shadow {
    page: PrivatePage,
    real: NonNull<u8>,
    len: usize,
}

// SAFETY: `real` is memory that the mapping's owner keeps, wherever that is.
unsafe impl Send for Shadow {}

impl Shadow {
    fn copy_to_device(&mut self, len: usize) {
        let len = len.min(self.len);
        let to: *mut u8 = self.page.bytes_mut().as_mut_ptr();
        // SAFETY: The real memory has `len` bytes by the contract of `Check::prepare`, and so has a
        // page. The client's files may change meanwhile, as they may while a device reads them.
        unsafe { core::ptr::copy_nonoverlapping(self.real.as_ptr().cast_const(), to, len) };
    }

    fn copy_from_device(&mut self) {
        let from: *const u8 = self.page.bytes().as_ptr();
        // SAFETY: As in `copy_to_device`; nobody else uses memory that is mapped from the device.
        unsafe { core::ptr::copy_nonoverlapping(from, self.real.as_ptr(), self.len) };
    }
}

/// The check of one mapping.
pub(super) struct Check {
    number: Option<usize>,
    shadow: Option<Shadow>,
}

impl Check {
    /// The check of memory that is given to the device as it is.
    pub(super) fn without_shadow() -> Self {
        Self {
            number: None,
            shadow: None,
        }
    }

    /// Prepares for a mapping of `range`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` for more bytes than [`max_mapping`].
    ///
    /// # Safety
    ///
    /// The memory stays allocated while the result is used, and as long as it is mapped from the
    /// device nobody else uses it.
    pub(super) unsafe fn prepare(
        range: &PageRange<'_>,
        direction: Direction,
        context: &Sleepable,
    ) -> Result<Self> {
        if !bounces() {
            return Ok(Self::without_shadow());
        }
        let len = range.len();
        if len > PAGE_SIZE {
            return Err(EINVAL);
        }
        let mut shadow = Shadow {
            page: PrivatePage::alloc(context)?,
            real: NonNull::new(range.address().cast_mut()).ok_or(EINVAL)?,
            len,
        };
        shadow.page.bytes_mut().fill(POISON);
        match direction {
            Direction::ToDevice => shadow.copy_to_device(len),
            Direction::FromDevice => {
                // SAFETY: By this function's contract nobody else uses the memory.
                unsafe { shadow.real.as_ptr().write_bytes(POISON, len) };
            }
        }
        Ok(Self {
            number: None,
            shadow: Some(shadow),
        })
    }

    /// The memory for the device.
    pub(super) fn given<'a>(&'a self, range: &'a PageRange<'_>) -> PageRange<'a> {
        match &self.shadow {
            Some(shadow) => shadow.page.range(0, shadow.len),
            None => range.reborrow(),
        }
    }

    /// The mapping was made.
    pub(super) fn mapped(
        &mut self,
        device: &DeviceGuard,
        addr: u64,
        len: usize,
        direction: Direction,
    ) {
        let entry = Entry::new(device, addr, len, direction);
        self.number = TABLE.get().and_then(|table| table.enter(entry));
        if self.number.is_none() {
            pr_err!("BUG: DMA check: no room for one more mapping\n");
        }
    }

    /// The mapping was undone.
    pub(super) fn unmapped(
        &mut self,
        device: &DeviceGuard,
        addr: u64,
        len: usize,
        direction: Direction,
    ) {
        let number = self.number.take();
        let found = number.and_then(|number| TABLE.get()?.leave(number));
        if found != Some(Entry::new(device, addr, len, direction)) {
            pr_err!("BUG: DMA check: what is unmapped is not what was mapped\n");
        }
        if let Some(shadow) = &mut self.shadow {
            if direction == Direction::FromDevice {
                shadow.copy_from_device();
            }
            shadow.page.bytes_mut().fill(POISON);
        }
    }

    /// The first `len` bytes were synced for the device.
    pub(super) fn synced(
        &mut self,
        device: &DeviceGuard,
        addr: u64,
        len: usize,
        direction: Direction,
    ) {
        let found = self.number.and_then(|number| TABLE.get()?.entry(number));
        let good = found.is_some_and(|entry| {
            len <= entry.len && entry == Entry::new(device, addr, entry.len, direction)
        });
        if !good {
            pr_err!("BUG: DMA check: what is synced is not what was mapped\n");
        }
        if let Some(shadow) = &mut self.shadow {
            shadow.page.bytes_mut().fill(POISON);
            shadow.copy_to_device(len);
        }
    }
}

impl Entry {
    fn new(device: &DeviceGuard, addr: u64, len: usize, direction: Direction) -> Self {
        Self {
            // CAST: An address, only to be compared.
            device: device.as_ptr() as usize,
            addr,
            len,
            direction,
        }
    }
}
