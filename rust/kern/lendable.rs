// SPDX-License-Identifier: GPL-2.0

//! Memory by its bytes, as a device is given it.

use crate::kern::page::{
    PageRange,
    PrivatePage,
    PAGE_SIZE, //
};
use kernel::prelude::*;

/// Memory that can be lent to a device, addressed by its bytes.
///
/// # Safety
///
/// What [`Lendable::range`] returned stays valid memory until the value is dropped or changed, also
/// when the value is moved.
pub(crate) unsafe trait Lendable {
    /// Physically contiguous memory from byte `at` on: at least one byte, at most `max`.
    fn range(&self, at: usize, max: usize) -> Option<PageRange<'_>>;
}

// SAFETY: By the invariant of `PrivatePage` each entry keeps its page, which stays where it is when the
// list moves, and goes when the entry does.
unsafe impl Lendable for KVec<PrivatePage> {
    fn range(&self, at: usize, max: usize) -> Option<PageRange<'_>> {
        let range = self.get(at / PAGE_SIZE)?.range(at % PAGE_SIZE, max);
        (range.len() > 0).then_some(range)
    }
}

/// The physically contiguous pieces of some bytes of memory, in order.
///
/// An item is `EMSGSIZE` when the memory ends before the bytes do.
pub(crate) struct Pieces<'a, M> {
    memory: &'a M,
    at: usize,
    left: usize,
    max: usize,
}

impl<'a, M> Pieces<'a, M> {
    /// The pieces of `len` bytes from `at` on, none longer than `max`.
    pub(crate) fn new(memory: &'a M, at: usize, len: usize, max: usize) -> Self {
        Self {
            memory,
            at,
            left: len,
            max,
        }
    }

    /// Bytes that one piece can have.
    pub(crate) fn max(&self) -> usize {
        self.max
    }
}

impl<M> Clone for Pieces<'_, M> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, M: Lendable> Iterator for Pieces<'a, M> {
    type Item = Result<PageRange<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let max = self.left.min(self.max);
        let memory = self.memory;
        let Some(mut piece) = memory.range(self.at, max) else {
            self.left = 0;
            return Some(Err(EMSGSIZE));
        };
        while piece.len() < max {
            let next = self.at.saturating_add(piece.len());
            match memory.range(next, max.saturating_sub(piece.len())) {
                Some(next) if piece.try_join(&next, max) => {}
                _ => break,
            }
        }
        self.at = self.at.saturating_add(piece.len());
        self.left = self.left.saturating_sub(piece.len());
        Some(Ok(piece))
    }
}
