// SPDX-License-Identifier: GPL-2.0

//! One page, two devices: a page has one owner.

use crate::ib::dma::RecvBuffer;
use crate::kern::context::Sleepable;
use crate::kern::page::PrivatePage;
use kernel::prelude::*;

fn misuse(
    a: &mut RecvBuffer,
    b: &mut RecvBuffer,
    page: PrivatePage,
    context: &Sleepable,
) -> Result {
    a.load(page, context)?;
    //~ E0382 use of moved value: `page`
    //= b.load(a.unload().ok_or(EINVAL)?, context)
    b.load(page, context)
}
