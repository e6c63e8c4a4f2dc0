// SPDX-License-Identifier: GPL-2.0

//! The compiler's error is on another line.

//@ refused: the error is on line 14 in place of 13

use crate::kern::page::PrivatePage;

fn misuse(page: PrivatePage) {
    drop(page);
    //~ E0382 use of moved value: `page`
    //=
    let _ = ();
    drop(page);
}
