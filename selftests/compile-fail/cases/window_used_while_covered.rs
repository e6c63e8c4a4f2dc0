// SPDX-License-Identifier: GPL-2.0

//! A memory region goes back to the pool while the device uses it.

use crate::ib::mr::Covered;
use crate::ib::mr::Window;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use kernel::prelude::*;

fn misuse(conn: &Xprt<Connection>, covered: Covered, idle: KBox<Window>) {
    //~ E0624 method `uncover` is private
    //= let window = idle;
    let window = covered.uncover();
    conn.windows().put(window, true);
}
