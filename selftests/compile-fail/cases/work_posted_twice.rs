// SPDX-License-Identifier: GPL-2.0

//! One context, two work requests: the second completion would find it gone.

use crate::ib::work::Work;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use crate::transport::recv::RecvContext;
use kernel::prelude::*;

fn misuse(conn: &Xprt<Connection>, work: Work<RecvContext>) -> Result {
    let again = conn.endpoint().post_recv(conn, work);
    //~ E0382 use of moved value: `work`
    //= again.map_err(|_| EINVAL)
    conn.endpoint().post_recv(conn, work).map_err(|_| EINVAL)
}
