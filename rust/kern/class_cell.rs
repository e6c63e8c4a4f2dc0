// SPDX-License-Identifier: GPL-2.0

//! A C object that the module registers with another subsystem while it is loaded.
//!
//! Such an object is a static, because callbacks find it from C objects alone, and it names the
//! module. Who claims it writes it; from then on it is the subsystem's until it is released.

use kernel::{
    bindings,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    types::Opaque, //
};

/// The object, with the module that owns it.
///
/// The object is the last member: C structs with a flexible array at their end may go on behind it.
#[repr(C)]
pub(crate) struct ClassCell<C> {
    in_use: Atomic<bool>,
    owner: Atomic<*mut bindings::module>,
    object: Opaque<C>,
}

// SAFETY: The object is written by `claim` before the subsystem knows it, then by the subsystem only.
unsafe impl<C> Sync for ClassCell<C> {}

impl<C> ClassCell<C> {
    /// Where in the cell the object is.
    pub(crate) const OBJECT: usize = core::mem::offset_of!(Self, object);

    /// An object of zeros that nobody has claimed.
    pub(crate) const fn new() -> Self {
        Self {
            in_use: Atomic::new(false),
            owner: Atomic::new(core::ptr::null_mut()),
            object: Opaque::zeroed(),
        }
    }

    /// The C object.
    pub(crate) fn as_ptr(&self) -> *mut C {
        self.object.get()
    }

    /// The module that owns the object.
    pub(crate) fn owner(&self) -> *mut bindings::module {
        self.owner.load(Relaxed)
    }

    /// Takes the object for `module`: `write` fills it in, then `register` makes it known.
    ///
    /// # Errors
    ///
    /// `EBUSY` when it is taken, and what `register` returns.
    pub(crate) fn claim(
        &self,
        module: &'static ThisModule,
        write: impl FnOnce(&mut C),
        register: impl FnOnce(*mut C) -> Result,
    ) -> Result {
        // ORDERING: Pairs with the store in `release`.
        if self.in_use.xchg(true, Acquire) {
            return Err(EBUSY);
        }
        self.owner.store(module.as_ptr(), Relaxed);
        // SAFETY: `in_use` was clear, so nobody else uses the object.
        write(unsafe { &mut *self.as_ptr() });
        register(self.as_ptr()).inspect_err(|_| self.release())
    }

    /// Gives the object back, which no subsystem knows any more.
    pub(crate) fn release(&self) {
        // ORDERING: Pairs with the exchange in `claim`.
        self.in_use.store(false, Release);
    }
}
