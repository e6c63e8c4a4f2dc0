// SPDX-License-Identifier: GPL-2.0

//! The class of backchannel transports.

use crate::{
    ffi,
    rpc::xprt,
    svc::{
        connection::Connection,
        xdr_buf::XdrBuf,
        xprt::Xprt, //
    }, //
};
use core::marker::PhantomData;
use kernel::{
    error::to_result,
    ffi::{
        c_char,
        c_int, //
    },
    prelude::*,
    str::as_char_ptr_in_const_context,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    types::Opaque, //
};

/// A connection that calls can be sent over in the reverse direction.
pub(crate) trait Backchannel: Connection {
    /// The class's number: that of the connections' class with bit 31 set.
    const IDENT: c_int;
    /// Calls outstanding at most.
    const SLOTS: u32;
    /// Longest call or reply, in bytes.
    const MAX_PAYLOAD: usize;

    /// The class.
    fn backchannel_class() -> &'static Class;

    /// Sends a call. Neither allocates nor waits: it may be memory reclaim that waits for it.
    ///
    /// # Errors
    ///
    /// `ENOBUFS` to be called again later, `ENOTCONN` when the connection is of no use,
    /// `EMSGSIZE` when the call is too long.
    fn send_call(xprt: &Xprt<Self>, xid: [u8; 4], call: XdrBuf<'_>) -> Result;
}

/// An `xprt_class`, a static of whoever registers it.
///
/// Lookups by network id walk the list behind the C struct until an empty string.
#[repr(C)]
pub(crate) struct Class {
    class: Opaque<ffi::xprt_class>,
    netid: [Netid; 1],
    in_use: Atomic<bool>,
    owner: Atomic<*mut ffi::module>,
}

#[repr(transparent)]
struct Netid(*const c_char);

// SAFETY: A pointer to a constant.
unsafe impl Sync for Netid {}
// SAFETY: The C object is written by `register` before sunrpc knows it, then by sunrpc only.
unsafe impl Sync for Class {}

const _: () = assert!(
    core::mem::offset_of!(Class, netid) == core::mem::size_of::<ffi::xprt_class>(),
    "the list of network ids must be where the C struct's flexible array is",
);

impl Class {
    /// A class that is not registered.
    pub(crate) const fn new() -> Self {
        Self {
            class: Opaque::zeroed(),
            netid: [Netid(as_char_ptr_in_const_context(c""))],
            in_use: Atomic::new(false),
            owner: Atomic::new(core::ptr::null_mut()),
        }
    }

    pub(super) fn as_ptr(&self) -> *mut ffi::xprt_class {
        self.class.get()
    }

    pub(super) fn owner(&self) -> *mut ffi::module {
        self.owner.load(Relaxed)
    }

    /// Registers the backchannel class of `B`.
    ///
    /// # Errors
    ///
    /// `EEXIST` when the number is taken, `EBUSY` when the class is registered already.
    ///
    /// # Context
    ///
    /// Module initialization; may sleep.
    pub(crate) fn register<B: Backchannel>(
        module: &'static ThisModule,
        name: &'static CStr,
    ) -> Result<Registration<B>> {
        let this = B::backchannel_class();
        // ORDERING: Pairs with the store in `Registration::drop`.
        if this.in_use.xchg(true, Acquire) {
            return Err(EBUSY);
        }
        this.owner.store(module.as_ptr(), Relaxed);
        let class = this.as_ptr();
        // SAFETY: `in_use` was clear, so sunrpc does not know the object and nobody else uses it.
        let class_mut = unsafe { &mut *class };
        for (to, from) in class_mut.name.iter_mut().zip(name.to_bytes_with_nul()) {
            *to = *from;
        }
        class_mut.ident = B::IDENT;
        class_mut.setup = Some(xprt::setup::<B>);
        class_mut.owner = module.as_ptr();
        // An empty list, as sunrpc expects.
        class_mut.list.next = &raw mut class_mut.list;
        class_mut.list.prev = &raw mut class_mut.list;
        // SAFETY: The class is filled in and static.
        if let Err(error) = to_result(unsafe { ffi::xprt_register_transport(class) }) {
            this.in_use.store(false, Release);
            return Err(error);
        }
        Ok(Registration(PhantomData))
    }
}

/// Keeps the class of `B` registered.
pub(crate) struct Registration<B: Backchannel>(PhantomData<fn() -> B>);

impl<B: Backchannel> Drop for Registration<B> {
    fn drop(&mut self) {
        // SAFETY: Registered by `Class::register`. Transports of the class hold module references,
        // so there are none.
        unsafe { ffi::xprt_unregister_transport(B::backchannel_class().as_ptr()) };
        B::backchannel_class().in_use.store(false, Release);
    }
}
