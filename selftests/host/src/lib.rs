// SPDX-License-Identifier: GPL-2.0

//! Host tests of the pure parts of the kernel module, compiled from its own sources.
//!
//! `crate::proto` is the same path here and in the kernel crate.

#![no_std]
#![cfg_attr(
    not(test),
    allow(
        dead_code,
        unused_imports,
        reason = "the users are the tests and the kernel module"
    )
)]

#[path = "../../../rust"]
mod kernel_source {
    pub(crate) mod proto;
}
use kernel_source::proto;
