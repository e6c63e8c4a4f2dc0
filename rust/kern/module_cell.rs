// SPDX-License-Identifier: GPL-2.0

//! State of the loaded module for callbacks that C hands no context of ours.
//!
//! `xpo_create` or `ib_client::add` begin with nothing but C objects. A [`ModuleCell`] is a static
//! that points to what the module's own struct keeps alive.

use core::{
    pin::Pin,
    ptr::null_mut, //
};
use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Release, //
    },
};

/// A static that holds a `T` from module initialization to module exit.
pub(crate) struct ModuleCell<T: 'static>(Atomic<*mut T>);

/// Keeps the content of a [`ModuleCell`] alive; belongs into the module's struct.
///
/// # Invariants
///
/// `cell` points to `*content` while this value exists.
pub(crate) struct Installed<T: Sync + 'static> {
    cell: &'static ModuleCell<T>,
    content: Pin<KBox<T>>,
}

impl<T: Sync + 'static> ModuleCell<T> {
    /// An empty cell.
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(null_mut()))
    }

    /// Publishes `content`.
    ///
    /// # Context
    ///
    /// Module initialization, before anything that calls [`ModuleCell::get`] is registered.
    pub(crate) fn install(&'static self, content: Pin<KBox<T>>) -> Installed<T> {
        let ptr: *const T = &*content;
        // ORDERING: Pairs with the load in `get`.
        self.0.store(ptr.cast_mut(), Release);
        // INVARIANT: Just stored; a box does not move.
        Installed {
            cell: self,
            content,
        }
    }

    /// The content, while the module is loaded.
    pub(crate) fn get(&self) -> Option<&'static T> {
        // ORDERING: Pairs with the store in `install`.
        let ptr = self.0.load(Acquire);
        // SAFETY: By the invariant of `Installed` the pointer is valid until that is dropped. It is
        // a field of the module's struct, dropped after all registrations; whoever calls this is
        // one of those callbacks or holds a module reference, so the reference ends before.
        unsafe { ptr.as_ref() }
    }
}

impl<T: Sync + 'static> Drop for Installed<T> {
    fn drop(&mut self) {
        // ORDERING: None is needed, all who could look are gone; the same as in `install`.
        self.cell.0.store(null_mut(), Release);
    }
}

impl<T: Sync + 'static> core::ops::Deref for Installed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.content
    }
}
