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
use core::ptr::null_mut;
use kernel::{
    bindings,
    error::to_result,
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*, //
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
        close: Some(close_op),
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
    // SAFETY: The connection is valid; nobody else sets the member while `nfsd` sets up a client.
    if !unsafe { (*conn.as_ptr()).xpt_bc_xprt }.is_null() {
        return Err(EEXIST);
    }
    // SAFETY: The namespace is valid.
    let xprt = unsafe { ffi::xprt_alloc(args.net, size_of::<ffi::rpc_xprt>(), B::SLOTS, B::SLOTS) };
    if xprt.is_null() {
        return Err(ENOMEM);
    }
    // SAFETY: Just allocated, and nobody else knows it.
    let new = unsafe { &mut *xprt };
    if args.addrlen > size_of_val(&new.addr) {
        // SAFETY: As above.
        unsafe { ffi::xprt_free(xprt) };
        return Err(EBADF);
    }
    new.ops = Ops::<B>::TABLE;
    new.timeout = &raw const ffi::svcrs_rpc_timeout;
    new.xprt_class = B::backchannel_class().as_ptr();
    new.prot = B::IDENT;
    new.max_payload = B::MAX_PAYLOAD;
    new.bind_timeout = 0;
    new.reestablish_timeout = 0;
    new.idle_timeout = 0;
    // SAFETY: The address is as long as said and fits, as checked above.
    unsafe {
        core::ptr::copy_nonoverlapping(
            args.dstaddr.cast::<u8>(),
            (&raw mut new.addr).cast::<u8>(),
            args.addrlen,
        )
    };
    new.addrlen = args.addrlen;
    // SAFETY: The transport is valid and has its address.
    if let Err(error) = to_result(unsafe { ffi::svcrs_rpc_format_addresses(xprt) }) {
        // SAFETY: Nobody else knows the transport; what strings there are go with it.
        unsafe { ffi::svcrs_rpc_free_addresses(xprt) };
        // SAFETY: As above.
        unsafe { ffi::xprt_free(xprt) };
        return Err(error);
    }
    // SAFETY: The transport is valid.
    unsafe { ffi::svcrs_rpc_xprt_set_connected(xprt) };
    // The transport's own reference, until `destroy_op`.
    // SAFETY: sunrpc holds a reference on the module during the call.
    unsafe { bindings::__module_get(B::backchannel_class().owner()) };
    stats::objects().backchannels.inc();
    new.bc_xprt = conn.as_ptr();
    // The connection's reference.
    // SAFETY: The transport is valid.
    unsafe { ffi::xprt_get(xprt) };
    // SAFETY: The connection is valid, and the member was found empty above.
    unsafe { (*conn.as_ptr()).xpt_bc_xprt = xprt };
    Ok(xprt)
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
    // SAFETY: The request and its transport are valid by this function's contract.
    let (xprt, xid) = unsafe { ((*rqst).rq_xprt, (*rqst).rq_xid) };
    // SAFETY: The module's head comment says why the connection is still there.
    let conn = unsafe { Xprt::<B>::downcast((*xprt).bc_xprt) }?;
    if conn.is_dead() {
        return Err(ENOTCONN);
    }
    // SAFETY: As above; the transport's write lock is held.
    if !unsafe { ffi::xprt_request_get_cong(xprt, rqst) } {
        return Err(EBADSLT);
    }
    // SAFETY: As above.
    let call = unsafe { XdrBuf::from_raw(&raw const (*rqst).rq_snd_buf) };
    // SAFETY: Reads the clock; the request is ours to change during the call.
    unsafe { (*rqst).rq_xtime = ffi::ktime_get() };
    B::send_call(conn, xid.to_ne_bytes(), call).inspect_err(|error| {
        if *error == ENOTCONN {
            conn.deferred_close();
        }
    })?;
    // SAFETY: As above.
    unsafe {
        // CAST: `u32` to `usize` is lossless on 64-bit.
        let sent = (*rqst).rq_snd_buf.len as usize;
        (*rqst).rq_xmit_bytes_sent = (*rqst).rq_xmit_bytes_sent.wrapping_add(sent);
    }
    Ok(())
}

/// # Safety
///
/// Called by sunrpc when the connection closes.
unsafe extern "C" fn close_op(xprt: *mut ffi::rpc_xprt) {
    // SAFETY: The transport is valid during the call.
    unsafe { ffi::xprt_disconnect_done(xprt) };
}

/// # Safety
///
/// Called by sunrpc once, when the last reference is gone.
unsafe extern "C" fn destroy_op<B: Backchannel>(xprt: *mut ffi::rpc_xprt) {
    // SAFETY: The strings were made by `setup`.
    unsafe { ffi::svcrs_rpc_free_addresses(xprt) };
    // SAFETY: Nobody refers to the transport any more.
    unsafe { ffi::xprt_free(xprt) };
    stats::objects().backchannels.dec();
    // SAFETY: The reference that `setup` took.
    unsafe { bindings::module_put(B::backchannel_class().owner()) };
}

/// # Safety
///
/// None; sunrpc calls it when it shows a client's counters.
unsafe extern "C" fn print_stats_op(_xprt: *mut ffi::rpc_xprt, _seq: *mut ffi::seq_file) {}
