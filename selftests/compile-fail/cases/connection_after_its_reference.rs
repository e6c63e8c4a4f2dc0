// SPDX-License-Identifier: GPL-2.0

//! A connection is used when the last reference may be gone.

use crate::svc::xprt::XprtRef;
use crate::transport::connection::Connection;

fn misuse(reference: XprtRef<Connection>) -> bool {
    let conn = &*reference;
    //~ E0505 cannot move out of `reference` because it is borrowed
    //=
    drop(reference);
    conn.is_dead()
}
