// SPDX-License-Identifier: GPL-2.0

//! A borrowed network namespace.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

use crate::ffi;
use kernel::types::Opaque;

/// A `struct net` that some caller keeps alive.
///
/// Only ever seen by reference; who stores one takes a reference count of its own through the C
/// interface that stores it (`svc_xprt_init`, `rdma_create_id`).
#[repr(transparent)]
pub(crate) struct Net(Opaque<ffi::net>);

impl Net {
    /// Borrows a namespace.
    ///
    /// # Safety
    ///
    /// `ptr` points to a live `struct net` for all of `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut ffi::net) -> &'a Self {
        // SAFETY: The caller promises a live object, and `Self` is a transparent `Opaque` of it.
        unsafe { &*ptr.cast() }
    }

    /// The C object.
    pub(crate) fn as_ptr(&self) -> *mut ffi::net {
        self.0.get()
    }
}
