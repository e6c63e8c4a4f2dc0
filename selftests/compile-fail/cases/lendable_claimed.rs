// SPDX-License-Identifier: GPL-2.0

//! Policy says of memory that a device may have it.

use crate::kern::lendable::Lendable;
use crate::kern::page::PageRange;
use crate::kern::page::PrivatePage;

struct Wrapped(PrivatePage);

trait Harmless {
    fn range(&self, at: usize, max: usize) -> Option<PageRange<'_>>;
}

//~ unsafe_code implementation of an `unsafe` trait
//= impl Harmless for Wrapped {
unsafe impl Lendable for Wrapped {
    fn range(&self, at: usize, max: usize) -> Option<PageRange<'_>> {
        Some(self.0.range(at, max))
    }
}
