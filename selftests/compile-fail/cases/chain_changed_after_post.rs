// SPDX-License-Identifier: GPL-2.0

//! A chain is changed while the device works on it.

use crate::ib::qp::SendWork;
use crate::ib::sq::SqCredit;
use crate::ib::work::Work;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use crate::transport::send::SendContext;

fn misuse(conn: &Xprt<Connection>, mut work: Work<SendContext>, credit: SqCredit<'_>) {
    let chain = work.chain();
    //~ E0505 cannot move out of `work` because it is borrowed
    //= drop(credit);
    let _ = conn.endpoint().post_send(conn, work, credit);
    drop(chain);
}
