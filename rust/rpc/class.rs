// SPDX-License-Identifier: GPL-2.0

//! The class of backchannel transports.

use crate::{
    ffi,
    kern::class_cell::ClassCell,
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
    str::as_char_ptr_in_const_context, //
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
    cell: ClassCell<ffi::xprt_class>,
    netid: [Netid; 1],
}

#[repr(transparent)]
struct Netid(*const c_char);

// SAFETY: A pointer to a constant.
unsafe impl Sync for Netid {}

impl Class {
    /// A class that is not registered.
    pub(crate) const fn new() -> Self {
        const {
            let end =
                ClassCell::<ffi::xprt_class>::OBJECT + core::mem::size_of::<ffi::xprt_class>();
            assert!(
                core::mem::offset_of!(Self, netid) == end,
                "the list of network ids must be where the C struct's flexible array is",
            );
        }
        Self {
            cell: ClassCell::new(),
            netid: [Netid(as_char_ptr_in_const_context(c""))],
        }
    }

    pub(super) fn as_ptr(&self) -> *mut ffi::xprt_class {
        self.cell.as_ptr()
    }

    pub(super) fn owner(&self) -> *mut ffi::module {
        self.cell.owner()
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
        let write = |class: &mut ffi::xprt_class| {
            for (to, from) in class.name.iter_mut().zip(name.to_bytes_with_nul()) {
                *to = *from;
            }
            class.ident = B::IDENT;
            class.setup = Some(xprt::setup::<B>);
            class.owner = module.as_ptr();
        };
        B::backchannel_class().cell.claim(module, write, |class| {
            // SAFETY: The class is filled in and static.
            to_result(unsafe { ffi::xprt_register_transport(class) })
        })?;
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
        B::backchannel_class().cell.release();
    }
}
