// SPDX-License-Identifier: GPL-2.0

//! Fuzz targets of the wire format. They are those of the tests next door, with other input.

#[path = "../../../../rust"]
#[allow(
    dead_code,
    unused_imports,
    reason = "some names only the kernel module needs"
)]
mod kernel_source {
    pub(crate) mod proto;
}
use kernel_source::proto;

#[path = "../../src"]
#[allow(dead_code, reason = "some names only the tests need")]
mod tests_source {
    pub(crate) mod check_call;
    pub(crate) mod check_reply;
    pub(crate) mod frame;
    pub(crate) mod fuzz_targets;
    pub(crate) mod naive;
}
use tests_source::{
    check_call,
    check_reply,
    frame,
    fuzz_targets,
    naive, //
};

pub fn parse(data: &[u8]) {
    fuzz_targets::parse(data);
}

pub fn assembly(data: &[u8]) {
    fuzz_targets::assembly(data);
}

pub fn reply(data: &[u8]) {
    fuzz_targets::reply(data);
}

pub fn private(data: &[u8]) {
    fuzz_targets::private(data);
}
