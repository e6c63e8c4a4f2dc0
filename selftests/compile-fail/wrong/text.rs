// SPDX-License-Identifier: GPL-2.0

//! The compiler's error is about something else.

//@ refused: the error does not say "use of moved value: `other`"

use crate::kern::page::PrivatePage;

fn misuse(page: PrivatePage) {
    drop(page);
    //~ E0382 use of moved value: `other`
    //=
    drop(page);
}
