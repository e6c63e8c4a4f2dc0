// SPDX-License-Identifier: GPL-2.0

//! A completion handler waits for room on the Send Queue, and so holds up the completions that
//! would make it.

use crate::ib::wc::Wc;
use crate::ib::work::Completion;
use crate::ib::work::Work;
use crate::kern::context::Sleepable;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;

struct Waiting;

impl Completion for Waiting {
    type Context = Xprt<Connection>;

    fn done(_work: Work<Self>, _wc: Wc<'_>, conn: &Xprt<Connection>) {
        //~ E0061 this method takes 2 arguments but 1 argument was supplied
        //= let _ = conn.queues().sq.try_reserve(1);
        let _ = conn.reserve_slots(1);
    }
}
