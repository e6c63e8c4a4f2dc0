// SPDX-License-Identifier: GPL-2.0

//! The wire format is decoded without unsafe code.

//@ in proto

fn misuse(message: &[u8]) -> u8 {
    //~ unsafe_code usage of an `unsafe` block
    //= message.first().copied().unwrap_or(0)
    unsafe { *message.as_ptr() }
}
