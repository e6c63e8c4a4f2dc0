// SPDX-License-Identifier: GPL-2.0

//! Connection management: safe wrappers over `rdma_cm`.
//!
//! An id has one owner at a time. A listening id belongs to a [`listen::ListenId`]; an id that a
//! peer made by asking for a connection belongs to a [`pending::Pending`] until somebody claims
//! it, then to the [`endpoint::Endpoint`] built on it. Each role has an event handler of its own,
//! so an event for one can never be taken for an event of another.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)

pub(crate) mod endpoint;
pub(crate) mod event;
pub(crate) mod id;
pub(crate) mod listen;
pub(crate) mod pending;
