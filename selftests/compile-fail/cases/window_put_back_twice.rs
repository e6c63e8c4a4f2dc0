// SPDX-License-Identifier: GPL-2.0

//! One memory region is in the pool twice.

use crate::ib::mr::Window;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use kernel::prelude::*;

fn misuse(conn: &Xprt<Connection>, window: KBox<Window>) {
    conn.windows().put(window, false);
    //~ E0382 use of moved value: `window`
    //=
    conn.windows().put(window, true);
}
