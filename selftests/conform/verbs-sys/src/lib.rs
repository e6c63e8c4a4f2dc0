// SPDX-License-Identifier: GPL-2.0
//! librdmacm and libibverbs as their headers declare them. Functions that the
//! headers have inline (they call through the context's table) are re-typed here.
#![allow(non_upper_case_globals, non_camel_case_types, non_snake_case)]
#![allow(
    clippy::all,
    unknown_lints,
    unnecessary_transmutes,
    unsafe_op_in_unsafe_fn
)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));

/// # Safety
/// As in C: the queue exists, `wc` has room for `entries`.
pub unsafe fn ibv_poll_cq(cq: *mut ibv_cq, entries: i32, wc: *mut ibv_wc) -> i32 {
    ((*(*cq).context).ops.poll_cq.expect("every provider has it"))(cq, entries, wc)
}

/// # Safety
/// As in C: the queue exists.
pub unsafe fn ibv_req_notify_cq(cq: *mut ibv_cq, solicited_only: i32) -> i32 {
    ((*(*cq).context)
        .ops
        .req_notify_cq
        .expect("every provider has it"))(cq, solicited_only)
}

/// # Safety
/// As in C: the queue pair exists, the work requests and what they name are valid.
pub unsafe fn ibv_post_send(
    qp: *mut ibv_qp,
    wr: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> i32 {
    ((*(*qp).context)
        .ops
        .post_send
        .expect("every provider has it"))(qp, wr, bad)
}

/// # Safety
/// As in C: the queue pair exists, the work requests and what they name are valid.
pub unsafe fn ibv_post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> i32 {
    ((*(*qp).context)
        .ops
        .post_recv
        .expect("every provider has it"))(qp, wr, bad)
}

/// # Safety
/// As in C: the protection domain exists.
pub unsafe fn ibv_alloc_mw(pd: *mut ibv_pd, kind: ibv_mw_type) -> *mut ibv_mw {
    match (*(*pd).context).ops.alloc_mw {
        Some(alloc) => alloc(pd, kind),
        None => std::ptr::null_mut(),
    }
}

/// # Safety
/// As in C: the window exists and is not used any more.
pub unsafe fn ibv_dealloc_mw(mw: *mut ibv_mw) -> i32 {
    ((*(*mw).context).ops.dealloc_mw.expect("it was allocated"))(mw)
}
