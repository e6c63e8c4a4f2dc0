// SPDX-License-Identifier: GPL-2.0

//! Slots are given back while the chain that holds them is still on the queue.

use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;

fn misuse(conn: &Xprt<Connection>) {
    //~ E0624 method `give_back` is private
    //= conn.queues().sq.close();
    conn.queues().sq.give_back(9);
}
