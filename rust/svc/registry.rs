// SPDX-License-Identifier: GPL-2.0

//! All transports of a kind, to find those of a device or to show them.
//!
//! The registry holds no references: sunrpc ages connections by their count. An entry is taken out
//! in teardown, before the memory goes, so whoever holds the lock may look at each.
//!
//! Locks: `Registry::list` only; it sleeps.

use crate::{
    kern::context::Sleepable,
    svc::xprt::{
        Transport,
        Xprt,
        XprtRef, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex, //
};

/// The transports of type `T`.
#[pin_data]
pub(crate) struct Registry<T: Transport> {
    #[pin]
    list: Mutex<KVec<Entry<T>>>,
}

/// # Invariants
///
/// The transport's memory is valid while the entry is in the list.
struct Entry<T: Transport>(NonNull<Xprt<T>>);

// SAFETY: `Xprt<T>` is `Sync`.
unsafe impl<T: Transport> Send for Entry<T> {}

impl<T: Transport> Registry<T> {
    /// Empty.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- new_mutex!(KVec::new(), "svcrdma_rs::registry"),
        })
    }

    /// Adds a new transport. Its teardown must [`Registry::remove`] it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn add(&self, xprt: &Xprt<T>, _context: &Sleepable) -> Result {
        // INVARIANT: Valid now; teardown removes it before the memory goes.
        self.list.lock().push(Entry(xprt.into()), GFP_KERNEL)?;
        Ok(())
    }

    /// Takes a transport out.
    pub(crate) fn remove(&self, xprt: &Xprt<T>, _context: &Sleepable) {
        self.list
            .lock()
            .retain(|entry| !core::ptr::eq(entry.0.as_ptr(), xprt));
    }

    /// Looks at each transport.
    ///
    /// # Errors
    ///
    /// The first that `each` returns.
    pub(crate) fn for_each<E>(
        &self,
        mut each: impl FnMut(&Xprt<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in self.list.lock().iter() {
            // SAFETY: Valid by the invariant of `Entry` while the lock is held.
            each(unsafe { entry.0.as_ref() })?;
        }
        Ok(())
    }

    /// A reference to some transport that `wanted` says yes to.
    pub(crate) fn find(&self, mut wanted: impl FnMut(&Xprt<T>) -> bool) -> Option<XprtRef<T>> {
        let list = self.list.lock();
        list.iter()
            .map(|entry| {
                // SAFETY: Valid by the invariant of `Entry` while the lock is held.
                unsafe { entry.0.as_ref() }
            })
            .filter(|xprt| wanted(xprt))
            .find_map(Xprt::try_ref)
    }
}
