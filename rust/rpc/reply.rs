// SPDX-License-Identifier: GPL-2.0

//! Replies to callbacks.
//!
//! Locks: `rpc_xprt::queue_lock` while a request is looked up and completed, `transport_lock` while
//! the window is set; one after the other.

use crate::{
    ffi,
    rpc::class::Backchannel,
    svc::xprt::Xprt, //
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    ffi::c_int,
    prelude::*, //
};

/// `xprt->queue_lock`, held.
///
/// # Invariants
///
/// The lock of a valid transport is held.
struct QueueGuard(NonNull<ffi::rpc_xprt>);

impl QueueGuard {
    /// # Safety
    ///
    /// `xprt` is valid until the guard is dropped.
    unsafe fn lock(xprt: NonNull<ffi::rpc_xprt>) -> Self {
        // SAFETY: Valid by this function's contract.
        unsafe { bindings::spin_lock(&raw mut (*xprt.as_ptr()).queue_lock) };
        // INVARIANT: Just locked.
        Self(xprt)
    }

    /// Completes the request `xid` with `payload`, or with an error if the peer refused it;
    /// whether there was one that could take it.
    fn complete(&self, xid: [u8; 4], payload: Option<&[u8]>) -> bool {
        let xprt = self.0.as_ptr();
        // SAFETY: The lock is held by the type invariant.
        let rqst = unsafe { ffi::xprt_lookup_rqst(xprt, u32::from_ne_bytes(xid)) };
        if rqst.is_null() {
            return false;
        }
        // SAFETY: A request that is found stays until the lock is released.
        let rqst = unsafe { &mut *rqst };
        let Some(payload) = payload else {
            // SAFETY: The lock is held, and the task belongs to the request.
            unsafe { ffi::xprt_complete_rqst(rqst.rq_task, EIO.to_errno()) };
            return true;
        };
        let Ok(len) = c_int::try_from(payload.len()) else {
            return false;
        };
        let [head] = &rqst.rq_rcv_buf.head;
        if head.iov_len < payload.len() {
            return false;
        }
        // SAFETY: The head is the request's own memory, long enough as just checked.
        unsafe {
            core::ptr::copy_nonoverlapping(
                payload.as_ptr(),
                head.iov_base.cast::<u8>(),
                payload.len(),
            )
        };
        // SAFETY: Both are plain C structs; the receive buffer is copied as sunrpc expects.
        unsafe {
            core::ptr::copy_nonoverlapping(
                &raw const rqst.rq_rcv_buf,
                &raw mut rqst.rq_private_buf,
                1,
            )
        };
        // SAFETY: The lock is held, and the task belongs to the request.
        unsafe { ffi::xprt_complete_rqst(rqst.rq_task, len) };
        true
    }
}

impl Drop for QueueGuard {
    fn drop(&mut self) {
        // SAFETY: Locked by the type invariant.
        unsafe { bindings::spin_unlock(&raw mut (*self.0.as_ptr()).queue_lock) };
    }
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
    // SAFETY: The connection is valid. The member is set once and dropped with the connection.
    let xprt = unsafe { core::ptr::read_volatile(&raw const (*conn.as_ptr()).xpt_bc_xprt) };
    let Some(xprt) = NonNull::new(xprt) else {
        return false;
    };
    // SAFETY: The connection holds a reference on its backchannel transport.
    if !unsafe { QueueGuard::lock(xprt) }.complete(xid, payload) {
        return false;
    }
    let window = u64::from(credits.clamp(1, B::SLOTS)) << ffi::RPC_CWNDSHIFT;
    // SAFETY: As above.
    unsafe { bindings::spin_lock(&raw mut (*xprt.as_ptr()).transport_lock) };
    // SAFETY: The lock that protects the member is held.
    unsafe { (*xprt.as_ptr()).cwnd = window as usize };
    // SAFETY: Locked above.
    unsafe { bindings::spin_unlock(&raw mut (*xprt.as_ptr()).transport_lock) };
    true
}
