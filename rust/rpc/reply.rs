// SPDX-License-Identifier: GPL-2.0

//! Answers to callbacks.
//!
//! Locks: `rpc_xprt::queue_lock` while a request is looked up and completed, `transport_lock` while
//! the window is set; one after the other.

use crate::{
    ffi,
    rpc::class::Backchannel,
    svc::xprt::Xprt, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::{
        lock::spinlock::SpinLockBackend,
        SpinLock, //
    }, //
};

/// The backchannel transport of a connection.
///
/// # Invariants
///
/// The transport is valid for `'a`.
struct BcXprt<'a> {
    ptr: NonNull<ffi::rpc_xprt>,
    _lifetime: PhantomData<&'a ffi::rpc_xprt>,
}

impl<'a> BcXprt<'a> {
    /// The backchannel transport of `conn`, if it has one.
    fn of<B: Backchannel>(conn: &'a Xprt<B>) -> Option<Self> {
        // SAFETY: The connection is valid. The member is set once, while the connection lives.
        let ptr = unsafe { core::ptr::read_volatile(&raw const (*conn.as_ptr()).xpt_bc_xprt) };
        // INVARIANT: The connection holds a reference on its backchannel transport.
        Some(Self {
            ptr: NonNull::new(ptr)?,
            _lifetime: PhantomData,
        })
    }

    fn queue_lock(&self) -> &SpinLock<()> {
        // SAFETY: Valid by the type invariant; `xprt_alloc` initialized the lock.
        unsafe { Lock::from_raw(&raw mut (*self.ptr.as_ptr()).queue_lock) }
    }

    fn transport_lock(&self) -> &SpinLock<()> {
        // SAFETY: As in `queue_lock`.
        unsafe { Lock::from_raw(&raw mut (*self.ptr.as_ptr()).transport_lock) }
    }

    /// Completes the request `xid` with `payload`, or with an error if the peer refused it;
    /// whether there was one that could take it.
    fn complete(&self, xid: [u8; 4], payload: Option<&[u8]>) -> bool {
        let _guard = self.queue_lock().lock();
        // SAFETY: Valid by the type invariant, and the lock is held.
        let rqst =
            unsafe { ffi::xprt_lookup_rqst(self.ptr.as_ptr(), u32::from_ne_bytes(xid)).as_mut() };
        // A request that is found stays until the lock is released.
        let Some(rqst) = rqst else {
            return false;
        };
        let result = match payload {
            Some(payload) => fill(rqst, payload),
            None => Some(EIO.to_errno()),
        };
        let Some(result) = result else {
            return false;
        };
        // SAFETY: The lock is held, and the task belongs to the request.
        unsafe { ffi::xprt_complete_rqst(rqst.rq_task, result) };
        true
    }

    /// Sets the number of calls that may be outstanding.
    fn set_window(&self, calls: u32) {
        let _guard = self.transport_lock().lock();
        // CAST: A small number.
        let window = (calls as usize) << ffi::RPC_CWNDSHIFT;
        // SAFETY: Valid by the type invariant; the lock that protects the member is held.
        unsafe { (*self.ptr.as_ptr()).cwnd = window };
    }
}

type Lock = kernel::sync::lock::Lock<(), SpinLockBackend>;

/// Copies a reply into the memory of its request; its length, or `None` if it does not fit.
fn fill(rqst: &mut ffi::rpc_rqst, payload: &[u8]) -> Option<c_int> {
    let len = c_int::try_from(payload.len()).ok()?;
    let [head] = &rqst.rq_rcv_buf.head;
    if head.iov_len < payload.len() {
        return None;
    }
    // SAFETY: The head is the request's own memory, long enough as just checked.
    unsafe {
        core::ptr::copy_nonoverlapping(payload.as_ptr(), head.iov_base.cast(), payload.len())
    };
    // SAFETY: Both are members of the request; sunrpc decodes from the second.
    unsafe {
        core::ptr::copy_nonoverlapping(&raw const rqst.rq_rcv_buf, &raw mut rqst.rq_private_buf, 1)
    };
    Some(len)
}

/// Matches an answer of the peer to a call that waits for it; whether there was one. `payload` is
/// the reply, or `None` for an `RDMA_ERROR`.
///
/// `credits` is the peer's grant, of which at most [`Backchannel::SLOTS`] are used.
pub(crate) fn complete<B: Backchannel>(
    conn: &Xprt<B>,
    xid: [u8; 4],
    credits: u32,
    payload: Option<&[u8]>,
) -> bool {
    let Some(xprt) = BcXprt::of(conn) else {
        return false;
    };
    // Before the completion wakes whoever waits for the window.
    xprt.set_window(credits.clamp(1, B::SLOTS));
    xprt.complete(xid, payload)
}
