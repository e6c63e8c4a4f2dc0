// SPDX-License-Identifier: GPL-2.0

//! No checks of DMA mappings: what `dma_check` is unless the module is built with checks.

use crate::{
    ib::{
        client::DeviceGuard,
        mapping::Direction, //
    },
    kern::{
        context::Sleepable,
        page::PageRange, //
    }, //
};
use kernel::prelude::*;

/// Nothing.
pub(crate) struct Installed;

/// Nothing to prepare.
pub(crate) fn install() -> Result<Installed> {
    Ok(Installed)
}

/// Bytes that one mapping can have.
pub(crate) fn max_mapping() -> usize {
    usize::MAX
}

/// Whether devices get pages of their own: never.
pub(super) fn bounces() -> bool {
    false
}

/// Nothing about a mapping.
pub(super) struct Check;

impl Check {
    /// # Safety
    ///
    /// None.
    pub(super) unsafe fn prepare(
        _range: &PageRange<'_>,
        _direction: Direction,
        _context: &Sleepable,
    ) -> Result<Self> {
        Ok(Self)
    }

    /// Nothing about memory that is given to the device as it is.
    pub(super) fn without_shadow() -> Self {
        Self
    }

    /// The memory for the device: the caller's own.
    pub(super) fn given<'a>(&'a self, range: &'a PageRange<'_>) -> PageRange<'a> {
        range.reborrow()
    }

    pub(super) fn mapped(&mut self, _: &DeviceGuard, _addr: u64, _len: usize, _: Direction) {}

    pub(super) fn unmapped(&mut self, _: &DeviceGuard, _addr: u64, _len: usize, _: Direction) {}

    pub(super) fn synced(&mut self, _: &DeviceGuard, _addr: u64, _len: usize, _: Direction) {}
}
