// SPDX-License-Identifier: GPL-2.0

//! A second owner of a page's bytes.

use crate::kern::page::PrivatePage;

fn misuse(page: PrivatePage) -> (PrivatePage, Option<PrivatePage>) {
    //~ E0599 no method named `clone` found
    //= let second = None;
    let second = Some(page.clone());
    (page, second)
}
