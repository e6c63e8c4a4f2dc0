// SPDX-License-Identifier: GPL-2.0

//! A page is read while the RDMA Reads that fill it are being made.

use crate::ib::chain::Opcode;
use crate::ib::rdma::Rdma;
use crate::ib::rdma::Room;
use crate::ib::rdma::Target;
use crate::kern::page::PrivatePage;
use kernel::prelude::*;

fn misuse(target: &Target<'_>, pages: KVec<PrivatePage>, room: Room) -> usize {
    let reads = Rdma::begin(Opcode::Read, target, pages, room);
    //~ E0382 borrow of moved value: `pages`
    //= reads.finish().0.len()
    pages.len()
}
