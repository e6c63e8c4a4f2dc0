// SPDX-License-Identifier: GPL-2.0

//! Policy is written without unsafe code.

use crate::kern::page::PrivatePage;

fn misuse(page: &PrivatePage) -> u8 {
    //~ unsafe_code usage of an `unsafe` block
    //= page.bytes().first().copied().unwrap_or(0)
    unsafe { page.address().read() }
}
