// SPDX-License-Identifier: GPL-2.0

//! Work whose handler wants another context than the queue has.

use crate::ib::dma::RecvBuffer;
use crate::ib::qp::Queues;
use crate::ib::qp::RecvWork;
use crate::ib::wc::Wc;
use crate::ib::work::Completion;
use crate::ib::work::QueueContext;
use crate::ib::work::Work;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use crate::transport::recv::RecvContext;

struct Foreign(Queues);

impl QueueContext for Foreign {
    fn queues(&self) -> &Queues {
        &self.0
    }
}

struct ForeignWork(RecvBuffer);

impl Completion for ForeignWork {
    type Context = Foreign;

    fn done(_work: Work<Self>, _wc: Wc<'_>, _context: &Foreign) {}
}

impl RecvWork for ForeignWork {
    fn buffer(&self) -> &RecvBuffer {
        &self.0
    }
}

fn misuse(conn: &Xprt<Connection>, theirs: Work<ForeignWork>, ours: Work<RecvContext>) {
    //~ E0271 type mismatch resolving
    //= let _ = conn.endpoint().post_recv(conn, ours);
    let _ = conn.endpoint().post_recv(conn, theirs);
}
