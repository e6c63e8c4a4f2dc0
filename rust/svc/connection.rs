// SPDX-License-Identifier: GPL-2.0

//! Operations of connections.

use crate::{
    ffi,
    kern::context::Sleepable,
    svc::{
        rqst::{
            Received,
            Rqst, //
        },
        xprt::{
            Transport,
            Xprt, //
        }, //
    }, //
};
use kernel::{
    ffi::{
        c_int,
        c_uint,
        c_void, //
    },
    prelude::*, //
};

/// A transport that carries messages.
pub(crate) trait Connection: Transport {
    /// What the transport remembers of a call until it is answered. Travels with calls that
    /// sunrpc defers and replays.
    type Call: Send + 'static;

    /// Whether a thread would find something it can do.
    ///
    /// Once this said no, the transport itself must enqueue when it turns yes.
    ///
    /// # Context
    ///
    /// Any, timers and held spinlocks included.
    fn has_wspace(xprt: &Xprt<Self>) -> bool;

    /// Receives a message. While `busy` is held no other thread is here for this connection.
    fn recvfrom(
        xprt: &Xprt<Self>,
        rqst: &mut Rqst<Self>,
        busy: Busy<'_, Self>,
        context: &Sleepable,
    ) -> Received;

    /// Sends the reply of a call, or closes the connection.
    ///
    /// # Errors
    ///
    /// Traced by sunrpc, not acted on.
    fn sendto(xprt: &Xprt<Self>, rqst: &mut Rqst<Self>, context: &Sleepable) -> Result;

    /// `len` bytes at `offset` of the reply being encoded are a result that may go to a chunk.
    ///
    /// A chunk that is too small is the reply's trouble, not the encoder's: `nfsd` answers an error
    /// from here by taking back the pages it encoded, and after a spliced READ these are pages of
    /// the file's page cache, which the thread would then write its next reply into.
    fn result_payload(call: &mut Self::Call, offset: u32, len: u32);

    /// A call is over.
    ///
    /// # Context
    ///
    /// Process context; may sleep. The connection may be detached.
    fn release(xprt: &Xprt<Self>, call: KBox<Self::Call>, context: &Sleepable);
}

/// The right to take from a connection's queues, until it is dropped: that lets the next thread in
/// (`svc_xprt_received`). Every path drops it, so none can forget.
pub(crate) struct Busy<'a, C: Connection>(&'a Xprt<C>);

impl<C: Connection> Busy<'_, C> {
    /// Lets the next thread in.
    pub(crate) fn release(self) {}
}

impl<C: Connection> Drop for Busy<'_, C> {
    fn drop(&mut self) {
        // SAFETY: sunrpc set `XPT_BUSY` for the call of `recvfrom` this value was made in, and
        // holds a reference during it.
        unsafe { ffi::svc_xprt_received(self.0.as_ptr()) };
    }
}

/// The operation table of connections of type `C`.
pub(crate) const fn ops<C: Connection>() -> ffi::svc_xprt_ops {
    ffi::svc_xprt_ops {
        xpo_create: None,
        xpo_accept: None,
        xpo_has_wspace: Some(has_wspace_op::<C>),
        xpo_recvfrom: Some(recvfrom_op::<C>),
        xpo_sendto: Some(sendto_op::<C>),
        xpo_result_payload: Some(result_payload_op::<C>),
        xpo_release_ctxt: Some(release_ctxt_op::<C>),
        xpo_detach: Some(Xprt::<C>::detach_op),
        xpo_free: Some(Xprt::<C>::free_op),
        xpo_kill_temp_xprt: Some(Xprt::<C>::kill_temp_op),
        xpo_handshake: None,
    }
}

/// # Safety
///
/// Called by sunrpc for a connection of type `C`.
unsafe extern "C" fn has_wspace_op<C: Connection>(xprt: *mut ffi::svc_xprt) -> c_int {
    // SAFETY: The transport is valid during the call.
    C::has_wspace(unsafe { Xprt::<C>::from_raw(xprt) }).into()
}

/// # Safety
///
/// Called by sunrpc on a thread of the service, for a connection of type `C` that it marked busy.
unsafe extern "C" fn recvfrom_op<C: Connection>(rqst: *mut ffi::svc_rqst) -> c_int {
    // SAFETY: The request belongs to the calling thread, which may sleep.
    let (rqst, context) = unsafe { (Rqst::<C>::from_raw(rqst), Sleepable::assume()) };
    // SAFETY: sunrpc holds a reference on the request's transport during the dispatch.
    let xprt = unsafe { Xprt::<C>::from_raw(rqst.xprt_ptr()) };
    C::recvfrom(xprt, rqst, Busy(xprt), &context).into_raw()
}

/// # Safety
///
/// As [`recvfrom_op`], without the mark.
unsafe extern "C" fn sendto_op<C: Connection>(rqst: *mut ffi::svc_rqst) -> c_int {
    // SAFETY: The request belongs to the calling thread, which may sleep.
    let (rqst, context) = unsafe { (Rqst::<C>::from_raw(rqst), Sleepable::assume()) };
    // SAFETY: sunrpc holds a reference on the request's transport during the dispatch.
    let xprt = unsafe { Xprt::<C>::from_raw(rqst.xprt_ptr()) };
    C::sendto(xprt, rqst, &context).map_or_else(|error| error.to_errno(), |()| 0)
}

/// # Safety
///
/// As [`sendto_op`].
unsafe extern "C" fn result_payload_op<C: Connection>(
    rqst: *mut ffi::svc_rqst,
    offset: c_uint,
    len: c_uint,
) -> c_int {
    // SAFETY: The request belongs to the calling thread.
    let rqst = unsafe { Rqst::<C>::from_raw(rqst) };
    if !rqst.is_wrapped() {
        if let Some(call) = rqst.call() {
            C::result_payload(call, offset, len);
        }
    }
    0
}

/// # Safety
///
/// Called by sunrpc for a connection of type `C` with what was in a request's `rq_xprt_ctxt`.
unsafe extern "C" fn release_ctxt_op<C: Connection>(xprt: *mut ffi::svc_xprt, call: *mut c_void) {
    if call.is_null() {
        return;
    }
    // SAFETY: `Rqst::install` leaked the box into the request, and sunrpc releases it once.
    let call = unsafe { KBox::from_raw(call.cast::<C::Call>()) };
    // SAFETY: sunrpc holds a reference during the call and calls from process context.
    let (xprt, context) = unsafe { (Xprt::<C>::from_raw(xprt), Sleepable::assume()) };
    C::release(xprt, call, &context);
}
