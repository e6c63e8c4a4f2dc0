// SPDX-License-Identifier: GPL-2.0

//! Claiming to be in a context that may sleep, without an argument why.

use crate::kern::context::Sleepable;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;

fn misuse(conn: &Xprt<Connection>, context: &Sleepable) {
    //~ E0133 call to unsafe function
    //= let _ = conn.depot().page(context);
    let _ = conn.depot().page(&Sleepable::assume());
}
