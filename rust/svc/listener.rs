// SPDX-License-Identifier: GPL-2.0

//! Operations of listeners.

use crate::{
    ffi,
    kern::{
        context::Sleepable,
        net::Net,
        sockaddr::SockAddr, //
    },
    svc::{
        connection::Connection,
        xprt::{
            Transport,
            Xprt,
            XprtRef, //
        }, //
    }, //
};
use core::ptr::{
    null_mut,
    NonNull, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*, //
};

/// The service a transport is made for.
pub(crate) struct Serv(NonNull<ffi::svc_serv>);

impl Serv {
    /// The C object.
    pub(crate) fn as_ptr(&self) -> NonNull<ffi::svc_serv> {
        self.0
    }

    /// The service of `xprt`.
    pub(crate) fn of<T: Transport>(xprt: &Xprt<T>) -> Option<Self> {
        // SAFETY: The transport is valid; the member does not change after initialization.
        Some(Self(NonNull::new(unsafe { (*xprt.as_ptr()).xpt_server })?))
    }

    /// The network namespace of `xprt`.
    pub(crate) fn net_of<T: Transport>(xprt: &Xprt<T>) -> &Net {
        // SAFETY: The transport holds a reference on its namespace.
        unsafe { Net::from_raw((*xprt.as_ptr()).xpt_net) }
    }
}

/// A transport that listens.
pub(crate) trait Listener: Transport {
    /// What it accepts.
    type Connection: Connection;
    /// The class's number; `nfsd` derives that of the backchannel from it.
    const IDENT: c_int;
    /// Largest payload of a message, in bytes.
    const MAX_PAYLOAD: u32;

    /// Listens on `addr`.
    ///
    /// # Errors
    ///
    /// Shown to whoever asked for the listener.
    fn create(
        net: &Net,
        serv: Serv,
        addr: SockAddr<'_>,
        context: &Sleepable,
    ) -> Result<ListenerRef<Self>>;

    /// Accepts one of the connections that wait.
    fn accept(xprt: &Xprt<Self>, context: &Sleepable) -> Option<XprtRef<Self::Connection>>;
}

/// A listener to hand to sunrpc. Dropped instead, it is undone.
pub(crate) struct ListenerRef<L: Listener>(Option<XprtRef<L>>);

impl<L: Listener> ListenerRef<L> {
    /// Wraps a new listener.
    pub(crate) fn new(xprt: XprtRef<L>) -> Self {
        xprt.set(super::xprt::Flag::Listener);
        Self(Some(xprt))
    }

    /// The listener.
    pub(crate) fn xprt(&self) -> Option<&Xprt<L>> {
        self.0.as_deref()
    }

    fn into_raw(mut self) -> *mut ffi::svc_xprt {
        self.0.take().map_or(null_mut(), XprtRef::into_raw)
    }
}

impl<L: Listener> Drop for ListenerRef<L> {
    fn drop(&mut self) {
        if let Some(xprt) = self.0.take() {
            xprt.abort();
        }
    }
}

/// A connection to hand to sunrpc. Dropped instead, it is undone.
pub(crate) struct AcceptedRef<C: Connection>(Option<XprtRef<C>>);

impl<C: Connection> AcceptedRef<C> {
    /// Wraps a new connection.
    pub(crate) fn new(xprt: XprtRef<C>) -> Self {
        Self(Some(xprt))
    }

    /// The connection.
    pub(crate) fn xprt(&self) -> Option<&Xprt<C>> {
        self.0.as_deref()
    }

    /// The reference that [`Listener::accept`] returns.
    pub(crate) fn into_ref(mut self) -> Option<XprtRef<C>> {
        self.0.take()
    }
}

impl<C: Connection> Drop for AcceptedRef<C> {
    fn drop(&mut self) {
        if let Some(xprt) = self.0.take() {
            xprt.abort();
        }
    }
}

/// The operation table of listeners of type `L`.
pub(crate) const fn ops<L: Listener>() -> ffi::svc_xprt_ops {
    ffi::svc_xprt_ops {
        xpo_create: Some(create_op::<L>),
        xpo_accept: Some(accept_op::<L>),
        xpo_has_wspace: Some(has_wspace_op),
        xpo_recvfrom: Some(recvfrom_op),
        xpo_sendto: Some(sendto_op),
        xpo_result_payload: None,
        xpo_release_ctxt: Some(release_ctxt_op),
        xpo_detach: Some(Xprt::<L>::detach_op),
        xpo_free: Some(Xprt::<L>::free_op),
        xpo_kill_temp_xprt: Some(Xprt::<L>::kill_temp_op),
        xpo_handshake: None,
    }
}

/// # Safety
///
/// Called by sunrpc from process context with valid arguments.
unsafe extern "C" fn create_op<L: Listener>(
    serv: *mut ffi::svc_serv,
    net: *mut ffi::net,
    addr: *mut ffi::sockaddr,
    _len: c_int,
    _flags: c_int,
) -> *mut ffi::svc_xprt {
    let create = || -> Result<*mut ffi::svc_xprt> {
        let serv = Serv(NonNull::new(serv).ok_or(EINVAL)?);
        // SAFETY: As below.
        if unsafe { SockAddr::from_raw(addr) }.is_err() {
            pr_warn!("only IPv4 and IPv6 addresses can be listened on\n");
        }
        // SAFETY: The caller's arguments stay valid during the call, which may sleep.
        let (net, addr, context) = unsafe {
            (
                Net::from_raw(net),
                SockAddr::from_raw(addr)?,
                Sleepable::assume(),
            )
        };
        Ok(L::create(net, serv, addr, &context)?.into_raw())
    };
    create().unwrap_or_else(|error| error.to_ptr())
}

/// # Safety
///
/// Called by sunrpc on a thread of the service for a listener of type `L`.
unsafe extern "C" fn accept_op<L: Listener>(xprt: *mut ffi::svc_xprt) -> *mut ffi::svc_xprt {
    // SAFETY: sunrpc holds a reference during the call; its threads may sleep.
    let (xprt, context) = unsafe { (Xprt::<L>::from_raw(xprt), Sleepable::assume()) };
    L::accept(xprt, &context).map_or(null_mut(), XprtRef::into_raw)
}

/// # Safety
///
/// None; a listener always has room.
unsafe extern "C" fn has_wspace_op(_xprt: *mut ffi::svc_xprt) -> c_int {
    1
}

/// # Safety
///
/// None; sunrpc receives nothing from listeners.
unsafe extern "C" fn recvfrom_op(_rqst: *mut ffi::svc_rqst) -> c_int {
    0
}

/// # Safety
///
/// None; sunrpc sends nothing through listeners.
unsafe extern "C" fn sendto_op(_rqst: *mut ffi::svc_rqst) -> c_int {
    ENOTCONN.to_errno()
}

/// # Safety
///
/// None; requests of listeners have no context.
unsafe extern "C" fn release_ctxt_op(_xprt: *mut ffi::svc_xprt, _context: *mut c_void) {}
