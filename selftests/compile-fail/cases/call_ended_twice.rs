// SPDX-License-Identifier: GPL-2.0

//! A call ends twice, and its room for one more call is given back twice.

use crate::svc::xprt::Xprt;
use crate::transport::call::CallContext;
use crate::transport::connection::Connection;
use kernel::prelude::*;

fn misuse(conn: &Xprt<Connection>, call: KBox<CallContext>) {
    conn.end_call(call);
    //~ E0382 use of moved value: `call`
    //=
    conn.end_call(call);
}
