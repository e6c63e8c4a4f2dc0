// SPDX-License-Identifier: GPL-2.0

//! A backchannel transport: a `rpc_xprt` on top of a connection.
//!
//! References: `xprt_alloc` makes one, which the RPC client consumes; one more is the connection's
//! (`xpt_bc_xprt`) and is dropped by `svc_xprt_free`. The client is gone before nfsd drops its
//! reference on the connection, so `bc_xprt` may be a plain pointer. The transport itself is
//! destroyed later, from a work item of sunrpc's, and holds a module reference until then.

use crate::{
    ffi,
    rpc::class::Backchannel,
    stats,
    svc::{
        xdr_buf::XdrBuf,
        xprt::Xprt, //
    }, //
};
use core::ptr::{
    null_mut,
    NonNull, //
};
use kernel::{
    bindings,
    error::to_result,
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Full, //
    }, //
};

/// The operation table of backchannel transports over `B`.
struct Ops<B>(core::marker::PhantomData<B>);

impl<B: Backchannel> Ops<B> {
    const TABLE: &'static ffi::rpc_xprt_ops = &ffi::rpc_xprt_ops {
        set_buffer_size: None,
        reserve_xprt: Some(ffi::xprt_reserve_xprt_cong),
        release_xprt: Some(ffi::xprt_release_xprt_cong),
        alloc_slot: Some(ffi::xprt_alloc_slot),
        free_slot: Some(ffi::xprt_free_slot),
        rpcbind: None,
        set_port: None,
        connect: Some(connect_op),
        get_srcaddr: None,
        get_srcport: None,
        buf_alloc: Some(buf_alloc_op),
        buf_free: Some(buf_free_op),
        prepare_request: None,
        send_request: Some(send_request_op::<B>),
        abort_send_request: None,
        wait_for_reply_request: Some(ffi::xprt_wait_for_reply_request_def),
        timer: None,
        release_request: Some(ffi::xprt_release_rqst_cong),
        close: Some(ffi::xprt_disconnect_done),
        destroy: Some(destroy_op::<B>),
        set_connect_timeout: None,
        print_stats: Some(print_stats_op),
        enable_swap: None,
        disable_swap: None,
        inject_disconnect: None,
        bc_setup: None,
        bc_maxpayload: None,
        bc_num_slots: None,
        bc_free_rqst: None,
        bc_destroy: None,
    };
}

/// A transport that sunrpc does not know yet. Dropped, it is undone.
///
/// # Invariants
///
/// The transport is valid and nobody else knows it.
struct NewXprt(NonNull<ffi::rpc_xprt>);

impl NewXprt {
    fn alloc<B: Backchannel>(net: *mut ffi::net) -> Result<Self> {
        // SAFETY: The caller of `setup` keeps the namespace.
        let xprt = unsafe { ffi::xprt_alloc(net, size_of::<ffi::rpc_xprt>(), B::SLOTS, B::SLOTS) };
        // INVARIANT: Just allocated.
        Ok(Self(NonNull::new(xprt).ok_or(ENOMEM)?))
    }

    fn get_mut(&mut self) -> &mut ffi::rpc_xprt {
        // SAFETY: Valid and not shared by the type invariant.
        unsafe { self.0.as_mut() }
    }

    /// Sets the peer's address and what is shown of it.
    ///
    /// # Safety
    ///
    /// `len` bytes at `addr` are valid.
    unsafe fn set_address(&mut self, addr: *const ffi::sockaddr, len: usize) -> Result {
        let xprt = self.get_mut();
        if len > size_of_val(&xprt.addr) {
            return Err(EBADF);
        }
        // SAFETY: By this function's contract, and as just checked.
        unsafe {
            core::ptr::copy_nonoverlapping(addr.cast::<u8>(), (&raw mut xprt.addr).cast(), len)
        };
        xprt.addrlen = len;
        // SAFETY: The transport is valid and has its address.
        to_result(unsafe { ffi::svcrs_rpc_format_addresses(xprt) })
    }

    /// Makes it the backchannel of `conn`: two references come into being, the caller's and the
    /// connection's.
    ///
    /// # Errors
    ///
    /// `EEXIST` when the connection has one: two clients may ask for it at the same time.
    fn attach<B: Backchannel>(mut self, conn: &Xprt<B>) -> Result<*mut ffi::rpc_xprt> {
        self.get_mut().bc_xprt = conn.as_ptr();
        self.get_mut().state = (1 << ffi::XPRT_BOUND) | (1 << ffi::XPRT_CONNECTED);
        let xprt = self.0.as_ptr();
        // SAFETY: The connection is valid.
        let member = unsafe { &raw mut (*conn.as_ptr()).xpt_bc_xprt };
        // SAFETY: While the connection lives the member is written here only.
        let member = unsafe { Atomic::from_ptr(member) };
        // ORDERING: `BcXprt::of` sees a transport that is filled in; against `is_dead` below, too.
        if member.cmpxchg(null_mut(), xprt, Full).is_err() {
            return Err(EEXIST);
        }
        core::mem::forget(self);
        stats::objects().backchannels.inc();
        // The transport's own reference on the module, until `destroy_op`.
        // SAFETY: sunrpc holds one during `setup`, so the module is alive.
        unsafe { bindings::__module_get(B::backchannel_class().owner()) };
        // The connection's: whoever closes it holds a reference of its own until this returns.
        // SAFETY: The transport is valid.
        unsafe { ffi::xprt_get(xprt) };
        if conn.is_dead() {
            // sunrpc may have looked for a transport to close before it was there.
            // SAFETY: As above.
            unsafe { ffi::xprt_disconnect_done(xprt) };
        }
        Ok(xprt)
    }
}

impl Drop for NewXprt {
    fn drop(&mut self) {
        // SAFETY: Valid by the type invariant; the strings are null or allocated.
        unsafe { ffi::svcrs_rpc_free_addresses(self.0.as_ptr()) };
        // SAFETY: As above, and nobody else knows the transport.
        unsafe { ffi::xprt_free(self.0.as_ptr()) };
    }
}

/// Makes the backchannel transport of a connection.
///
/// # Safety
///
/// Called by sunrpc from process context with valid arguments; `bc_xprt` is null or a `svc_xprt`
/// that the caller holds a reference on.
pub(super) unsafe extern "C" fn setup<B: Backchannel>(
    args: *mut ffi::xprt_create,
) -> *mut ffi::rpc_xprt {
    // SAFETY: By this function's contract.
    unsafe { try_setup::<B>(&*args) }.unwrap_or_else(|error| error.to_ptr())
}

/// # Safety
///
/// As [`setup`].
unsafe fn try_setup<B: Backchannel>(args: &ffi::xprt_create) -> Result<*mut ffi::rpc_xprt> {
    // SAFETY: By this function's contract.
    let conn = unsafe { Xprt::<B>::downcast(args.bc_xprt) }?;
    let mut new = NewXprt::alloc::<B>(args.net)?;
    let xprt = new.get_mut();
    xprt.ops = Ops::<B>::TABLE;
    xprt.timeout = &raw const ffi::svcrs_rpc_timeout;
    xprt.xprt_class = B::backchannel_class().as_ptr();
    xprt.prot = B::IDENT;
    xprt.max_payload = B::MAX_PAYLOAD;
    xprt.bind_timeout = 0;
    xprt.reestablish_timeout = 0;
    xprt.idle_timeout = 0;
    // SAFETY: By this function's contract.
    unsafe { new.set_address(args.dstaddr, args.addrlen) }?;
    new.attach(conn)
}

/// # Safety
///
/// Called by sunrpc for a task of a backchannel transport. Callbacks never connect; this is for a
/// task that does not know.
unsafe extern "C" fn connect_op(_xprt: *mut ffi::rpc_xprt, task: *mut ffi::rpc_task) {
    // SAFETY: The task is valid during the call.
    unsafe { ffi::rpc_exit(task, ENOTCONN.to_errno()) };
}

/// # Safety
///
/// Called by sunrpc with a task that has a request.
unsafe extern "C" fn buf_alloc_op(task: *mut ffi::rpc_task) -> c_int {
    // SAFETY: The task and its request are valid during the call.
    let rqst = unsafe { &mut *(*task).tk_rqstp };
    let Some(size) = rqst.rq_callsize.checked_add(rqst.rq_rcvsize) else {
        return EINVAL.to_errno();
    };
    // SAFETY: No preconditions.
    let buffer = unsafe { ffi::svcrs_kmalloc_noio(size) };
    if buffer.is_null() {
        return ENOMEM.to_errno();
    }
    rqst.rq_buffer = buffer;
    rqst.rq_rbuffer = buffer
        .cast::<u8>()
        .wrapping_add(rqst.rq_callsize)
        .cast::<c_void>();
    0
}

/// # Safety
///
/// Called by sunrpc with a task that [`buf_alloc_op`] succeeded for.
unsafe extern "C" fn buf_free_op(task: *mut ffi::rpc_task) {
    // SAFETY: The task and its request are valid during the call.
    let rqst = unsafe { &mut *(*task).tk_rqstp };
    // SAFETY: Allocated by `buf_alloc_op`. Sends copy the call, so no device uses it.
    unsafe { bindings::kfree(rqst.rq_buffer) };
    rqst.rq_buffer = null_mut();
    rqst.rq_rbuffer = null_mut();
}

/// # Safety
///
/// Called by sunrpc with a request of a backchannel transport over `B`, whose write lock is held.
unsafe extern "C" fn send_request_op<B: Backchannel>(rqst: *mut ffi::rpc_rqst) -> c_int {
    // SAFETY: The request is valid during the call.
    unsafe { send_request::<B>(rqst) }.map_or_else(|error| error.to_errno(), |()| 0)
}

/// # Safety
///
/// As [`send_request_op`].
unsafe fn send_request<B: Backchannel>(rqst: *mut ffi::rpc_rqst) -> Result {
    // The answer may come at any time, so nothing here is a reference to the whole request.
    // SAFETY: Valid by this function's contract.
    let xprt = unsafe { (*rqst).rq_xprt };
    // SAFETY: The request's transport is valid. The module's head comment says why the connection
    // is still there.
    let conn = unsafe { Xprt::<B>::downcast((*xprt).bc_xprt) }?;
    if conn.is_dead() {
        // Else the task would come back at once, again and again until sunrpc closes.
        // SAFETY: The transport is valid.
        unsafe { ffi::xprt_disconnect_done(xprt) };
        return Err(ENOTCONN);
    }
    // SAFETY: As above; the transport's write lock is held.
    if !unsafe { ffi::xprt_request_get_cong(xprt, rqst) } {
        return Err(EBADSLT);
    }
    // SAFETY: Reads the clock.
    let now = unsafe { ffi::ktime_get() };
    // SAFETY: The sender's member; the write lock is held.
    unsafe { (*rqst).rq_xtime = now };
    // SAFETY: The call's memory belongs to the request and does not change.
    let call = unsafe { XdrBuf::from_raw(&raw const (*rqst).rq_snd_buf) };
    // SAFETY: The number does not change while the request is being sent.
    let xid = unsafe { (*rqst).rq_xid };
    B::send_call(conn, xid.to_ne_bytes(), call).inspect_err(|error| {
        if *error == ENOTCONN {
            conn.deferred_close();
        }
    })?;
    // CAST: `u32` to `usize` is lossless on 64-bit.
    let sent = call.len() as usize;
    // SAFETY: The sender's member; the write lock is held.
    let total = unsafe { &mut (*rqst).rq_xmit_bytes_sent };
    *total = total.wrapping_add(sent);
    Ok(())
}

/// # Safety
///
/// Called by sunrpc once, when the last reference is gone.
unsafe extern "C" fn destroy_op<B: Backchannel>(xprt: *mut ffi::rpc_xprt) {
    if let Some(xprt) = NonNull::new(xprt) {
        // INVARIANT: Nobody refers to the transport any more.
        drop(NewXprt(xprt));
    }
    stats::objects().backchannels.dec();
    // SAFETY: The reference that `setup` took. Nothing of this function but its end is behind it, as
    // in every module that gives up its own last reference.
    unsafe { bindings::module_put(B::backchannel_class().owner()) };
}

/// # Safety
///
/// None; sunrpc calls it when it shows a client's counters.
unsafe extern "C" fn print_stats_op(_xprt: *mut ffi::rpc_xprt, _seq: *mut ffi::seq_file) {}
