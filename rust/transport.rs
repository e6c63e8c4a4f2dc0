// SPDX-License-Identifier: GPL-2.0

//! The server side of RPC-over-RDMA version 1 (RFC 8166): policy on top of the wrappers.
//!
//! A call's way: [`recv`] parses the message a Receive brought; with Read chunks [`read`] fetches
//! them first and [`assemble`] completes the call; sunrpc works on it; [`reply`] plans the answer,
//! writes chunks and sends.
//! [`Documentation/architecture.md`](srctree/Documentation/architecture.md) has the picture.
//!
//! Locks, none held while another is taken: the inbox, the idle sends and the Send Queue of a
//! connection, and its windows; the pools of the depot; a listener's id and its accept queue.

#![deny(unsafe_code)]

pub(crate) mod accept;
pub(crate) mod assemble;
pub(crate) mod backchannel;
pub(crate) mod call;
pub(crate) mod connection;
pub(crate) mod depot;
pub(crate) mod geometry;
pub(crate) mod inbox;
pub(crate) mod listener;
pub(crate) mod read;
pub(crate) mod recv;
pub(crate) mod reply;
pub(crate) mod send;
pub(crate) mod shared;
pub(crate) mod windows;
