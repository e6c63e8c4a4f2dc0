// SPDX-License-Identifier: GPL-2.0

//! The length of a message that did not arrive: only a success has one.

use crate::ib::wc::Wc;

fn misuse(wc: Wc<'_>) -> u32 {
    //~ E0599 no method named `byte_len` found
    //= wc.ok().map_or(0, |ok| ok.byte_len())
    wc.byte_len()
}
