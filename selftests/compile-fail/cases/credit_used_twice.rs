// SPDX-License-Identifier: GPL-2.0

//! Slots of the Send Queue that were reserved once pay for two chains.

use crate::ib::sq::SqCredit;
use crate::ib::work::Work;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use crate::transport::send::SendContext;

type Send = Work<SendContext>;

fn misuse(conn: &Xprt<Connection>, a: Send, b: Send, credit: SqCredit<'_>) {
    let _ = conn.endpoint().post_send(conn, a, credit);
    //~ E0382 use of moved value: `credit`
    //= drop(b);
    let _ = conn.endpoint().post_send(conn, b, credit);
}
