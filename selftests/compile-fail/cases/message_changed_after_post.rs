// SPDX-License-Identifier: GPL-2.0

//! A message is built in a buffer while the device sends it.

use crate::ib::sq::SqCredit;
use crate::ib::work::Work;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use crate::transport::send::SendContext;

fn misuse(conn: &Xprt<Connection>, mut work: Work<SendContext>, credit: SqCredit<'_>) {
    let message = work.bytes_mut();
    //~ E0505 cannot move out of `work`
    //= drop(credit);
    let _ = conn.endpoint().post_send(conn, work, credit);
    message.fill(0);
}
