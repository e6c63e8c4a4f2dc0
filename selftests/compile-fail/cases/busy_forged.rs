// SPDX-License-Identifier: GPL-2.0

//! The next thread is let in by somebody who was never alone.

use crate::svc::connection::Busy;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;

fn misuse(conn: &Xprt<Connection>, busy: Busy<'_, Connection>) {
    //~ E0423 cannot initialize a tuple struct which contains private fields
    //= busy.release();
    Busy(conn).release();
}
