// SPDX-License-Identifier: GPL-2.0

//! A page is lent to a device: its bytes are out of reach until it is taken back.

use crate::ib::dma::RecvBuffer;
use crate::kern::context::Sleepable;
use crate::kern::page::PrivatePage;
use kernel::prelude::*;

fn misuse(buffer: &mut RecvBuffer, page: PrivatePage, context: &Sleepable) -> Result<usize> {
    buffer.load(page, context)?;
    //~ E0382 borrow of moved value: `page`
    //= Ok(buffer.unload().ok_or(EINVAL)?.bytes().len())
    Ok(page.bytes().len())
}
