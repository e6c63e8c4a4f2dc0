// SPDX-License-Identifier: GPL-2.0

//! One memory region covers two runs of pages at a time.

use crate::ib::mr::Window;
use crate::ib::rdma::RegisteredReads;
use crate::kern::context::Sleepable;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;
use crate::transport::read::Reads;
use kernel::prelude::*;

fn misuse(
    conn: &Xprt<Connection>,
    reads: &mut Reads,
    how: &RegisteredReads,
    window: KBox<Window>,
    context: &Sleepable,
) {
    //~ E0525 expected a closure that implements the `FnMut` trait
    //= let take = || conn.windows().take(conn.endpoint(), context);
    let take = || Ok(window);
    let _ = reads.transfer_registered(how, (1, 0), 0, 100, take, context);
}
