// SPDX-License-Identifier: GPL-2.0

//! The twin does not compile: the case may fail for another reason than the one line.

//@ refused: the twin does not compile

use crate::kern::page::PrivatePage;

fn misuse(page: PrivatePage) {
    drop(page);
    //~ E0382 use of moved value: `page`
    //= drop(nothing);
    drop(page);
}
