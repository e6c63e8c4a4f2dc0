// SPDX-License-Identifier: GPL-2.0

//! A queue of fixed capacity that allocates once.

use kernel::prelude::*;

/// First in, first out, at most `capacity` items.
///
/// Belongs inside a lock. All memory is taken by [`Ring::new`]; pushing and popping cannot fail for
/// want of memory and may be done in any context.
pub(crate) struct Ring<T> {
    slots: KVec<Option<T>>,
    head: usize,
    len: usize,
}

impl<T> Ring<T> {
    /// An empty ring.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Context
    ///
    /// May sleep.
    pub(crate) fn new(capacity: usize) -> Result<Self> {
        let mut slots = KVec::with_capacity(capacity, GFP_KERNEL)?;
        for _ in 0..capacity {
            slots.push_within_capacity(None).map_err(|_| ENOMEM)?;
        }
        Ok(Self {
            slots,
            head: 0,
            len: 0,
        })
    }

    /// Whether there is nothing to pop.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds at the tail.
    ///
    /// # Errors
    ///
    /// Gives the item back when the ring is full.
    pub(crate) fn push(&mut self, item: T) -> Result<(), T> {
        let capacity = self.slots.len();
        if self.len == capacity {
            return Err(item);
        }
        let mut tail = self.head.wrapping_add(self.len);
        if tail >= capacity {
            tail = tail.wrapping_sub(capacity);
        }
        match self.slots.get_mut(tail) {
            Some(slot) => {
                *slot = Some(item);
                self.len = self.len.wrapping_add(1);
                Ok(())
            }
            None => Err(item),
        }
    }

    /// Takes from the head.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.slots.get_mut(self.head)?.take()?;
        self.head = self.head.wrapping_add(1);
        if self.head >= self.slots.len() {
            self.head = 0;
        }
        self.len = self.len.wrapping_sub(1);
        Some(item)
    }
}
