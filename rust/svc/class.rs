// SPDX-License-Identifier: GPL-2.0

//! Transport class: the name under which sunrpc offers a transport.

use crate::{
    ffi,
    svc::listener::Listener, //
};
use core::marker::PhantomData;
use kernel::{
    error::to_result,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    types::Opaque, //
};

/// A `svc_xprt_class`, a static of whoever registers it.
#[repr(C)]
pub(crate) struct Class {
    class: Opaque<ffi::svc_xprt_class>,
    owner: Atomic<*mut ffi::module>,
    in_use: Atomic<bool>,
}

// SAFETY: The C object is written by `register` before sunrpc knows it, then by sunrpc only.
unsafe impl Sync for Class {}

impl Class {
    /// A class that is not registered.
    pub(crate) const fn new() -> Self {
        Self {
            class: Opaque::zeroed(),
            owner: Atomic::new(core::ptr::null_mut()),
            in_use: Atomic::new(false),
        }
    }

    /// The C object.
    pub(crate) fn as_ptr(&self) -> *mut ffi::svc_xprt_class {
        self.class.get()
    }

    /// The module that owns the class.
    pub(crate) fn owner(&self) -> *mut ffi::module {
        self.owner.load(Relaxed)
    }

    /// Registers the class of `L`.
    ///
    /// # Errors
    ///
    /// `EEXIST` when the name is taken, `EBUSY` when the class is registered already.
    ///
    /// # Context
    ///
    /// Module initialization; may sleep.
    pub(crate) fn register<L: Listener>(
        module: &'static ThisModule,
        name: &'static CStr,
    ) -> Result<Registration<L>> {
        let this = L::class();
        // ORDERING: Pairs with the store in `Registration::drop`.
        if this.in_use.xchg(true, Acquire) {
            return Err(EBUSY);
        }
        this.owner.store(module.as_ptr(), Relaxed);
        let class = this.as_ptr();
        // SAFETY: `in_use` was clear, so sunrpc does not know the object and nobody else uses it.
        let class_mut = unsafe { &mut *class };
        class_mut.xcl_name = name.as_char_ptr();
        class_mut.xcl_owner = module.as_ptr();
        class_mut.xcl_ops = L::OPS;
        class_mut.xcl_max_payload = L::MAX_PAYLOAD;
        class_mut.xcl_ident = L::IDENT;
        // An empty list, as sunrpc expects.
        class_mut.xcl_list.next = &raw mut class_mut.xcl_list;
        class_mut.xcl_list.prev = &raw mut class_mut.xcl_list;
        // SAFETY: The class is filled in and static.
        if let Err(error) = to_result(unsafe { ffi::svc_reg_xprt_class(class) }) {
            this.in_use.store(false, Release);
            return Err(error);
        }
        Ok(Registration(PhantomData))
    }
}

/// Keeps the class of `L` registered.
pub(crate) struct Registration<L: Listener>(PhantomData<fn() -> L>);

impl<L: Listener> Drop for Registration<L> {
    fn drop(&mut self) {
        // SAFETY: Registered by `Class::register`. Transports of the class hold module references,
        // so there are none.
        unsafe { ffi::svc_unreg_xprt_class(L::class().as_ptr()) };
        L::class().in_use.store(false, Release);
    }
}
