// SPDX-License-Identifier: GPL-2.0

//! The client half of sunrpc, as far as NFSv4.1 callbacks need it.
//!
//! `nfsd` asks for a client transport of the connection's class number with bit 31 set, and sends
//! its callbacks through it over the connection of the client.
//!
//! C header: [`include/linux/sunrpc/xprt.h`](srctree/include/linux/sunrpc/xprt.h)

pub(crate) mod class;
pub(crate) mod reply;
pub(crate) mod xprt;
