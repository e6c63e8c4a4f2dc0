// SPDX-License-Identifier: GPL-2.0

//! A range of a page is used after the page has been freed.

use crate::kern::page::PrivatePage;

fn misuse(page: PrivatePage) -> usize {
    let range = page.range(0, 100);
    //~ E0505 cannot move out of `page` because it is borrowed
    //=
    drop(page);
    range.len()
}
