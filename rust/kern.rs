// SPDX-License-Identifier: GPL-2.0

//! What the `kernel` crate of 7.3 does not offer yet and any driver might want.
//!
//! Nothing here knows RDMA or RPC. Each file is one kernel concept; the day the `kernel` crate has
//! it, the file goes.

pub(crate) mod bytes;
pub(crate) mod class_cell;
pub(crate) mod context;
#[cfg(CONFIG_KUNIT = "y")]
mod kunit;
pub(crate) mod lendable;
pub(crate) mod module_cell;
pub(crate) mod net;
pub(crate) mod page;
pub(crate) mod params;
pub(crate) mod place;
pub(crate) mod ratelimit;
pub(crate) mod ring;
pub(crate) mod shrinker;
pub(crate) mod sockaddr;
pub(crate) mod work_queue;
