// SPDX-License-Identifier: GPL-2.0

//! A context belongs to the device once it is posted.

use crate::ib::qp::RecvWork;
use crate::ib::work::Work;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use crate::transport::recv::RecvContext;

fn misuse(conn: &Xprt<Connection>, work: Work<RecvContext>) {
    let _ = conn.endpoint().post_recv(conn, work);
    //~ E0382 borrow of moved value: `work`
    //=
    let _ = work.buffer();
}
