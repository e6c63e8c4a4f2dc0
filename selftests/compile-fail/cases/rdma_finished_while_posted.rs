// SPDX-License-Identifier: GPL-2.0

//! The pages of RDMA Writes go back to the pool while the device reads them.

use crate::ib::sq::SqCredit;
use crate::ib::work::Work;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use crate::transport::send::SendContext;
use crate::transport::send::Writes;

fn misuse(
    conn: &Xprt<Connection>,
    mut work: Work<SendContext>,
    writes: Writes,
    credit: SqCredit<'_>,
) {
    work.set_writes(writes);
    let _ = conn.endpoint().post_send(conn, work, credit);
    //~ E0382 use of moved value: `writes`
    //=
    conn.depot().put_writes(writes);
}
