// SPDX-License-Identifier: GPL-2.0

//! Locks and C objects in a connection are linked by address: it does not move.

use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use kernel::prelude::*;

fn misuse(conn: Pin<KBox<Xprt<Connection>>>) {
    //~ E0277 `PhantomPinned` cannot be unpinned
    //= let _same = conn;
    let _moved = Pin::into_inner(conn);
}
