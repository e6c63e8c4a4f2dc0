// SPDX-License-Identifier: GPL-2.0

//! A DMA address, which can be a kernel pointer, goes to the log.

use crate::ib::mapping::DmaAddr;
use kernel::prelude::*;

fn misuse(addr: DmaAddr) {
    //~ E0277 `DmaAddr` doesn't implement `Debug`
    //= let _ = addr;
    pr_info!("read to {:?}\n", addr);
}
