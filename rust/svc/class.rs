// SPDX-License-Identifier: GPL-2.0

//! Transport class: the name under which sunrpc offers a transport.

use crate::{
    ffi,
    kern::class_cell::ClassCell,
    svc::listener::Listener, //
};
use core::marker::PhantomData;
use kernel::{
    error::to_result,
    prelude::*, //
};

/// A `svc_xprt_class`, a static of whoever registers it.
pub(crate) struct Class(ClassCell<ffi::svc_xprt_class>);

impl Class {
    /// A class that is not registered.
    pub(crate) const fn new() -> Self {
        Self(ClassCell::new())
    }

    /// The C object.
    pub(crate) fn as_ptr(&self) -> *mut ffi::svc_xprt_class {
        self.0.as_ptr()
    }

    /// The module that owns the class.
    pub(crate) fn owner(&self) -> *mut ffi::module {
        self.0.owner()
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
        let write = |class: &mut ffi::svc_xprt_class| {
            class.xcl_name = name.as_char_ptr();
            class.xcl_owner = module.as_ptr();
            class.xcl_ops = L::OPS;
            class.xcl_max_payload = L::MAX_PAYLOAD;
            class.xcl_ident = L::IDENT;
        };
        L::class().0.claim(module, write, |class| {
            // SAFETY: The class is filled in and static.
            to_result(unsafe { ffi::svc_reg_xprt_class(class) })
        })?;
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
        L::class().0.release();
    }
}
