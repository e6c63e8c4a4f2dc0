// SPDX-License-Identifier: GPL-2.0

//! Verbs: safe wrappers over the in-kernel InfiniBand interface.
//!
//! The rule that everything here serves: what a device may touch is owned by a value that cannot
//! be reached until the device is done. Posting moves a [`work::Work`] away, and only its
//! completion brings it back. Pages are inside a [`dma`] buffer or an [`rdma::Rdma`] while they are
//! mapped.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

pub(crate) mod chain;
pub(crate) mod client;
pub(crate) mod cq;
pub(crate) mod device;
pub(crate) mod dma;
#[cfg(svcrdma_dma_check)]
pub(crate) mod dma_check;
#[cfg(not(svcrdma_dma_check))]
#[path = "ib/dma_plain.rs"]
pub(crate) mod dma_check;
pub(crate) mod iova;
#[cfg(CONFIG_KUNIT = "y")]
mod kunit;
pub(crate) mod mapping;
pub(crate) mod mr;
pub(crate) mod pd;
pub(crate) mod qp;
pub(crate) mod rdma;
pub(crate) mod sq;
pub(crate) mod wc;
pub(crate) mod work;
