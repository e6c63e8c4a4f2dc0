// SPDX-License-Identifier: GPL-2.0

//! RDMA Writes are posted though their pages have gone back to the pool.

use crate::ib::work::Work;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use crate::transport::send::SendContext;
use crate::transport::send::Writes;

fn misuse(conn: &Xprt<Connection>, work: &mut Work<SendContext>, writes: Writes, other: Writes) {
    conn.depot().put_writes(writes);
    //~ E0382 use of moved value: `writes`
    //= work.set_writes(other);
    work.set_writes(writes);
}
