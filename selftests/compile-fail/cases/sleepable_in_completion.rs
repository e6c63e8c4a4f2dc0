// SPDX-License-Identifier: GPL-2.0

//! A completion handler that wants to be told it may sleep.

use crate::ib::wc::Wc;
use crate::ib::work::Completion;
use crate::ib::work::Work;
use crate::kern::context::Sleepable;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;

type Conn = Xprt<Connection>;

struct Waiting;

impl Completion for Waiting {
    type Context = Conn;

    //~ E0050 has 4 parameters but
    //= fn done(_: Work<Self>, _: Wc<'_>, _: &Conn) {}
    fn done(_: Work<Self>, _: Wc<'_>, _: &Conn, _: &Sleepable) {}
}
