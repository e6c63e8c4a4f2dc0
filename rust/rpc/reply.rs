// SPDX-License-Identifier: GPL-2.0

//! Answers to callbacks.
//!
//! Locks: `rpc_xprt::queue_lock` while a request is looked up and completed, and inside it
//! `transport_lock` while the window is set.

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
    /// whether there was one that could take it. `before` runs for a request that is there, before
    /// whoever waits for it is woken.
    fn complete(&self, xid: [u8; 4], payload: Option<&[u8]>, before: impl FnOnce()) -> bool {
        let _guard = self.queue_lock().lock();
        // SAFETY: Valid by the type invariant, and the lock is held.
        let rqst = unsafe { ffi::xprt_lookup_rqst(self.ptr.as_ptr(), u32::from_ne_bytes(xid)) };
        // A request that is found stays until the lock is released.
        let Some(rqst) = NonNull::new(rqst) else {
            return false;
        };
        // SAFETY: As just said; a request has a task.
        let task = unsafe { (*rqst.as_ptr()).rq_task };
        let result = match payload {
            // SAFETY: The request is valid, and its answer is the lock's.
            Some(payload) => unsafe { fill(rqst, payload) },
            None => {
                // Without it sunrpc would take the answer for garbage, and send the call again.
                // SAFETY: A task is there as long as its request. It sleeps until it is completed, or is
                // about to and overwrites this.
                unsafe { (*task).tk_status = EIO.to_errno() };
                Some(EIO.to_errno())
            }
        };
        let Some(result) = result else {
            return false;
        };
        before();
        // SAFETY: The lock is held, and the task belongs to the request.
        unsafe { ffi::xprt_complete_rqst(task, result) };
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
///
/// # Safety
///
/// The request is valid, and the lock of its transport's queue is held.
unsafe fn fill(rqst: NonNull<ffi::rpc_rqst>, payload: &[u8]) -> Option<c_int> {
    let len = c_int::try_from(payload.len()).ok()?;
    // The sender may still write members of its own, so there is no reference to the whole.
    // SAFETY: By this function's contract; the members of the answer are the lock's.
    let rcv_buf = unsafe { &raw const (*rqst.as_ptr()).rq_rcv_buf };
    // SAFETY: As above.
    let [head] = unsafe { &(*rcv_buf).head };
    if head.iov_len < payload.len() {
        return None;
    }
    // SAFETY: The head is the request's own memory, long enough as just checked.
    unsafe {
        core::ptr::copy_nonoverlapping(payload.as_ptr(), head.iov_base.cast(), payload.len())
    };
    // SAFETY: As above.
    let private = unsafe { &raw mut (*rqst.as_ptr()).rq_private_buf };
    // SAFETY: Both are members of the request; sunrpc decodes from the second.
    unsafe { core::ptr::copy_nonoverlapping(rcv_buf, private, 1) };
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
    xprt.complete(xid, payload, || xprt.set_window(credits.clamp(1, B::SLOTS)))
}
