// SPDX-License-Identifier: GPL-2.0

//! The address of an object that is about to exist.
//!
//! C objects such as completion queues want a context pointer when they are made, and belong to
//! the very object the pointer names.

/// Where a `C` is or will be.
///
/// # Invariants
///
/// The address is that of a pinned `C`. Whatever is made with the place becomes part of that `C`,
/// so it ends before it, and is used through a `&C` only, so after its initialization.
pub(crate) struct Place<C>(*const C);

impl<C> Clone for Place<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Place<C> {}

// SAFETY: An address; whoever follows it answers for that.
unsafe impl<C> Send for Place<C> {}
// SAFETY: As above.
unsafe impl<C> Sync for Place<C> {}

impl<C> Place<C> {
    /// Names a place.
    ///
    /// # Safety
    ///
    /// A `C` is, or is being, initialized and pinned at `ptr`, and only its own initializer is
    /// given the place.
    pub(crate) unsafe fn new(ptr: *const C) -> Self {
        // INVARIANT: By this function's contract.
        Self(ptr)
    }

    /// The address.
    pub(crate) fn as_ptr(self) -> *const C {
        self.0
    }

    /// Whether this is the place of `object`.
    pub(crate) fn is_of(self, object: &C) -> bool {
        core::ptr::eq(self.0, object)
    }
}
