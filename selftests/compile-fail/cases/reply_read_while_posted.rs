// SPDX-License-Identifier: GPL-2.0

//! Pages of a reply go back to the thread while a device reads them.

use crate::ib::chain::Opcode;
use crate::ib::rdma::Rdma;
use crate::ib::rdma::Room;
use crate::ib::rdma::Target;
use crate::svc::reply_pages::ReplyPages;

fn misuse(target: &Target<'_>, reply: ReplyPages, room: Room) {
    let writes = Rdma::begin(Opcode::Write, target, reply, room);
    //~ E0382 use of moved value: `reply`
    //= let _pages = writes.finish().0.into_list();
    let _pages = reply.into_list();
}
