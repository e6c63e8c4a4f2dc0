// SPDX-License-Identifier: GPL-2.0

//! There is a second error, which may hide that the first is not what it should be.

//@ refused: 2 errors in place of one

use crate::kern::page::PrivatePage;

fn misuse(page: PrivatePage, other: PrivatePage) {
    drop(page);
    //~ E0382 use of moved value: `page`
    //=
    drop(page);
    drop(other);
    drop(other);
}
