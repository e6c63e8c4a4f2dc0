// SPDX-License-Identifier: GPL-2.0

//! RPC-over-RDMA version 1: the wire format, and every decision that depends on wire bytes alone.
//!
//! Ownership: nothing here owns memory. Views ([`Call`], [`ReplyLists`]) borrow a byte slice, plans
//! ([`ReplyPlan`], [`CallShape`]) are small `Copy` values. There are no locks, no allocation, no
//! `unsafe`, no recursion and no panic: each function is total over its input, and its cost is
//! linear in the message (times at most [`MAX_READ_CHUNKS`] for the reassembly).
//!
//! The module needs `core` only. The same source is compiled into the kernel module and, through
//! `#[path]`, into the host tests under `selftests/host`.
//!
//! References: RFC 8166 (the protocol), RFC 8167 (reverse direction), RFC 8267 (NFS binding),
//! RFC 8797 (connection manager private data). The choices where they leave room are listed in
//! `Documentation/protocol.md`.

#![deny(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::as_conversions
)]

mod assembly;
mod call;
mod cm_private;
mod encode;
mod fixed;
mod parse;
pub(crate) mod payloads;
pub(crate) mod plan;
mod read_chunks;
pub(crate) mod reject;
mod reply_lists;
mod reports;
mod segment;
mod sink;
mod upper_layer;
mod wire;
pub(crate) mod writes;

pub(crate) use self::{
    assembly::Piece,
    call::{
        Call,
        CallShape,
        Layout, //
    },
    cm_private::{
        cm_private,
        encode_cm_private,
        CmPrivate, //
    },
    encode::{
        encode_err_chunk,
        encode_err_vers,
        encode_reverse_call, //
    },
    fixed::{
        Fixed,
        Xid, //
    },
    parse::{
        parse,
        Ingress,
        Limits, //
    },
    plan::{
        plan_reply,
        ReplyForm,
        ReplyPlan, //
    },
    reject::Answer,
    reply_lists::ReplyLists,
    reports::Reports,
    upper_layer::is_nfs4, //
};

/// The only protocol version spoken (RFC 8166 section 4.2.2).
pub(crate) const VERSION: u32 = 1;

/// Shortest message that is looked at: fixed header and three empty lists.
pub(crate) const MIN_HEADER: usize = 28;

/// Read chunks at a non-zero position per Call; RFC 8267 needs one.
pub(crate) const MAX_READ_CHUNKS: usize = 8;

/// Write chunks per Call; RFC 8267 needs one.
pub(crate) const MAX_WRITE_CHUNKS: usize = 8;
