// SPDX-License-Identifier: GPL-2.0

//! The memory of RDMA Reads is looked at while a device may write it.

use crate::transport::read::Reads;
use kernel::prelude::*;

fn misuse(reads: Reads) -> usize {
    //~ E0616 field `memory` of struct `Rdma` is private
    //= let (pages, _room) = reads.finish();
    let pages = &reads.memory;
    pages.len()
}
