// SPDX-License-Identifier: GPL-2.0

//! The compiler's error has another code.

//@ refused: error E0382 in place of E0505

use crate::kern::page::PrivatePage;

fn misuse(page: PrivatePage) {
    drop(page);
    //~ E0505 use of moved value: `page`
    //=
    drop(page);
}
