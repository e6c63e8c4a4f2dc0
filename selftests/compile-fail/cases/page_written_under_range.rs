// SPDX-License-Identifier: GPL-2.0

//! The CPU writes a page while somebody describes it to a device.

use crate::kern::page::PrivatePage;

fn misuse(mut page: PrivatePage) -> usize {
    let range = page.range(0, 100);
    //~ E0502 cannot borrow `page` as mutable
    //=
    page.bytes_mut().fill(0);
    range.len()
}
