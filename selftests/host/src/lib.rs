// SPDX-License-Identifier: GPL-2.0

//! Host tests of the pure parts of the kernel module, compiled from its own sources.
//!
//! `crate::proto` is the same path here and in the kernel crate.

#![cfg_attr(
    not(test),
    no_std,
    allow(dead_code, reason = "the users are the tests and the kernel module")
)]

#[allow(unused_imports, reason = "some names only the kernel module needs")]
#[path = "../../../rust"]
mod kernel_source {
    pub(crate) mod proto;
}
#[cfg_attr(not(test), allow(unused_imports, reason = "as above"))]
use kernel_source::proto;

#[cfg(test)]
mod check_call;
#[cfg(test)]
mod check_reply;
#[cfg(test)]
mod frame;
#[cfg(test)]
mod fuzz_targets;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
