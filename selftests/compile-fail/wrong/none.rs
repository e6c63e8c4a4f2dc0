// SPDX-License-Identifier: GPL-2.0

//! What the case shows is no misuse for the compiler.

//@ refused: the misuse compiles

use crate::kern::page::PrivatePage;

fn misuse(page: &PrivatePage) {
    //~ E0382 use of moved value: `page`
    //=
    let _ = page.bytes();
}
