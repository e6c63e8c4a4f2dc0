// SPDX-License-Identifier: GPL-2.0

//! The server half of sunrpc: safe wrappers over what a `svc_xprt_class` must do.
//!
//! Listeners and connections are different types with operation tables of their own, so a callback
//! for one can never be handed the other.
//!
//! C header: [`include/linux/sunrpc/svc_xprt.h`](srctree/include/linux/sunrpc/svc_xprt.h)

pub(crate) mod class;
pub(crate) mod connection;
pub(crate) mod listener;
pub(crate) mod registry;
pub(crate) mod reply_array;
pub(crate) mod reply_pages;
pub(crate) mod rqst;
pub(crate) mod xdr_buf;
pub(crate) mod xprt;

/// The type of operation tables, opaque to those who only name one.
pub(crate) mod ops {
    pub(crate) use crate::ffi::svc_xprt_ops as Ops;
}
