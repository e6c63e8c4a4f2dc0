// SPDX-License-Identifier: GPL-2.0

//! A posted context is freed while the device still uses the memory it describes.

use crate::ib::work::Work;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use crate::transport::recv::RecvContext;

fn misuse(conn: &Xprt<Connection>, work: Work<RecvContext>) {
    let _ = conn.endpoint().post_recv(conn, work);
    //~ E0382 use of moved value: `work`
    //=
    drop(work);
}
