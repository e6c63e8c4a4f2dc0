// SPDX-License-Identifier: GPL-2.0

//! Calls with Read chunks: the first pass.
//!
//! It posts the RDMA Reads into pages of the pool and lets go of its thread; it touches none of the
//! thread's pages. The page the message was received in stays with the context until the second
//! pass, which is [`assemble`](super::assemble).

use crate::{
    ib::{
        chain::{
            Chain,
            Opcode, //
        },
        qp::{
            PostError,
            SendWork,
            Tail, //
        },
        wc::Wc,
        work::{
            Completion,
            Work, //
        }, //
    },
    kern::{
        context::Sleepable,
        page::PrivatePage, //
    },
    proto::{
        Answer,
        Call,
        CallShape,
        Layout,
        Piece, //
    },
    ratelimited,
    stats,
    svc::{
        rqst::Received,
        xprt::Xprt, //
    },
    transport::{
        call::CallContext,
        connection::Connection,
        rdma_op::{
            Demand,
            RdmaOp,
            RegisteredReads, //
        },
        recv::{
            self,
            RecvContext, //
        }, //
    }, //
};
use core::num::NonZeroU32;
use kernel::prelude::*;

/// The context of a chain of RDMA Reads.
pub(crate) struct ReadContext(Option<Parts>);

/// What it holds while in use.
pub(crate) struct Parts {
    /// The Reads and the pages they fill.
    pub(crate) op: KBox<RdmaOp>,
    /// The page the message was received in.
    pub(crate) header: PrivatePage,
    /// Length of the message.
    pub(super) len: usize,
    /// What the parser found.
    pub(super) shape: CallShape,
    /// The call.
    pub(crate) call: KBox<CallContext>,
}

impl ReadContext {
    /// A context not in use.
    pub(crate) fn new() -> Self {
        Self(None)
    }

    /// Takes out what it holds.
    pub(crate) fn take(&mut self) -> Option<Parts> {
        self.0.take()
    }
}

impl SendWork for ReadContext {
    fn chain(&mut self) -> Option<&mut Chain> {
        self.0.as_mut().map(|parts| parts.op.chain_mut())
    }

    fn tail(&self) -> Tail<'_> {
        Tail::Rdma
    }
}

impl Completion for ReadContext {
    type Context = Xprt<Connection>;

    fn done(mut work: Work<Self>, wc: Wc<'_>, conn: &Xprt<Connection>) {
        let good = wc.ok().is_some();
        if let Some(parts) = &mut work.0 {
            conn.windows().put(parts.op.windows_mut(), good);
        }
        if !good {
            if !wc.is_flushed() {
                stats::stats().read_errors.inc();
                ratelimited!(pr_info!(
                    "{}: RDMA Read failed with status {}\n",
                    conn.peer_name(),
                    wc.status()
                ));
            }
            discard(conn, work);
            conn.close_soon();
            return;
        }
        if let Err(work) = conn.inbox().put_read(conn, work) {
            discard(conn, work);
            conn.close_soon();
        }
    }
}

/// Ends a call that comes to nothing.
pub(super) fn abandon(conn: &Xprt<Connection>, mut parts: Parts) {
    // Windows that are still there were not posted.
    conn.windows().put(parts.op.windows_mut(), true);
    conn.depot().put_op(parts.op);
    conn.depot().put_page(parts.header);
    conn.end_call(parts.call);
}

/// Ends a call whose RDMA Reads came to nothing.
pub(super) fn discard(conn: &Xprt<Connection>, mut work: Work<ReadContext>) {
    if let Some(parts) = work.take() {
        abandon(conn, parts);
    }
    conn.depot().put_read(work);
}

/// Why the Reads of a call were not posted.
enum Refusal {
    /// They can never be: the client is told.
    Answer,
    /// The connection is of no use any more.
    Broken,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        // For want of memory the connection is closed: the client sends the call again, where an
        // answer would be an error to the application.
        if error == E2BIG {
            Self::Answer
        } else {
            Self::Broken
        }
    }
}

/// First pass: posts the RDMA Reads of a call.
pub(crate) fn start(
    conn: &Xprt<Connection>,
    call: KBox<CallContext>,
    shape: CallShape,
    header: PrivatePage,
    len: usize,
    work: Work<RecvContext>,
    context: &Sleepable,
) -> Received {
    // The page stays with the call, so the Receive gets one of the pool's.
    recv::repost(conn, work, None, context);
    let fixed = call.fixed();
    let posted = match conn.depot().op(context) {
        Ok(op) => {
            let parts = Parts {
                op,
                header,
                len,
                shape,
                call,
            };
            post(conn, parts, context)
        }
        Err(error) => {
            conn.depot().put_page(header);
            conn.end_call(call);
            Err(error.into())
        }
    };
    match posted {
        Ok(()) => {}
        Err(Refusal::Answer) => recv::refuse(conn, Answer::ErrChunk(fixed), context),
        Err(Refusal::Broken) => conn.close_soon(),
    }
    Received::NOTHING
}

/// What the Reads of a call need, known before anything is allocated.
struct Plan {
    pages: usize,
    windows: usize,
    demand: Demand,
    slots: u32,
    registered: Option<RegisteredReads>,
}

/// # Errors
///
/// `E2BIG` when the Send Queue or the thread's pages can never hold them.
fn plan(conn: &Xprt<Connection>, call: &Call<'_>) -> Result<Plan> {
    let pages = call.sink_pages();
    let registered = conn.registered_reads();
    let windows = registered.map_or(0, |how| pages.div_ceil(how.pages.max(1)));
    let max_sge = match registered {
        // A segment's share of a window is one element, and a window's end splits one segment.
        Some(_) => u32::MAX,
        None => conn.endpoint().geometry().max_read_sge,
    };
    let demand = call.read_demand(NonZeroU32::new(max_sge).ok_or(EINVAL)?);
    // CAST: `u32` to `usize` is lossless on 64-bit.
    let demand = Demand {
        work_requests: (demand.work_requests as usize).saturating_add(windows),
        sges: (demand.sges as usize).saturating_add(windows),
    };
    let slots = windows
        .saturating_mul(2)
        .saturating_add(demand.work_requests);
    let slots = u32::try_from(slots).map_err(|_| E2BIG)?;
    if slots > conn.queues().sq.depth() || pages >= conn.maxpages() {
        return Err(E2BIG);
    }
    Ok(Plan {
        pages,
        windows,
        demand,
        slots,
        registered,
    })
}

/// Plans, waits for room, builds and posts. On error all that `parts` holds is back where it
/// belongs.
fn post(conn: &Xprt<Connection>, mut parts: Parts, context: &Sleepable) -> Result<(), Refusal> {
    // Pages are taken once there is room: threads that wait in line hold none.
    let reserved = (|| -> Result<_> {
        let plan = plan(conn, &parts.view()?)?;
        let credit = conn.reserve_slots(plan.slots, context)?;
        build(conn, &mut parts, &plan, context)?;
        Ok((credit, conn.depot().read(context)?))
    })();
    let (credit, mut read) = match reserved {
        Ok(reserved) => reserved,
        Err(error) => {
            abandon(conn, parts);
            return Err(Refusal::from(error));
        }
    };
    // CAST: At most the slots.
    stats::stats().read_wrs.add(parts.op.rdma_requests() as i64);
    read.0 = Some(parts);
    match conn.endpoint().post_send(conn, read, credit) {
        Ok(()) => Ok(()),
        Err(PostError::Rejected(read)) => {
            discard(conn, read);
            Err(Refusal::Broken)
        }
        Err(PostError::InDoubt) => Err(Refusal::Broken),
    }
}

impl Parts {
    /// The call, seen again.
    pub(super) fn view(&self) -> Result<Call<'_>> {
        let message = self.header.bytes().get(..self.len).ok_or(EINVAL)?;
        Call::from_shape(message, self.shape).ok_or(EINVAL)
    }
}

/// Fetches pages and describes the Reads.
fn build(conn: &Xprt<Connection>, parts: &mut Parts, plan: &Plan, context: &Sleepable) -> Result {
    let mut target = conn.target();
    target.max_sge = conn.endpoint().geometry().max_read_sge;
    let message = parts.header.bytes().get(..parts.len).ok_or(EINVAL)?;
    let call = Call::from_shape(message, parts.shape).ok_or(EINVAL)?;
    let op = &mut parts.op;
    conn.depot().fill(op.private_mut(), plan.pages, context)?;
    op.begin(Opcode::Read, &target, plan.demand)?;
    op.begin_windows(plan.windows)?;
    let inline_counts = matches!(call.layout(), Layout::Stream);
    let mut at = 0usize;
    let mut bytes = 0i64;
    for piece in call.assembly() {
        // CAST: `u32` to `usize` is lossless on 64-bit.
        let len = match piece {
            Piece::Remote {
                handle,
                offset,
                len,
            } => {
                let remote = (handle, offset);
                match &plan.registered {
                    None => op.read(&target, remote, at, len as usize)?,
                    Some(how) => op.read_registered(how, remote, at, len as usize, || {
                        conn.windows().take(conn.endpoint(), context)
                    })?,
                }
                bytes = bytes.saturating_add(len.into());
                len
            }
            Piece::Inline { len, .. } | Piece::Pad { len } if inline_counts => len,
            Piece::Inline { .. } | Piece::Pad { .. } => 0,
        };
        at = at.checked_add(len as usize).ok_or(EINVAL)?;
    }
    if let Some(how) = &plan.registered {
        op.end_window(how)?;
    }
    stats::stats().read_bytes.add(bytes);
    Ok(())
}
