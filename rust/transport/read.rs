// SPDX-License-Identifier: GPL-2.0

//! Calls with Read chunks: the first pass.
//!
//! It posts the RDMA Reads into pages of the pool and lets go of its thread; it touches none of the
//! thread's pages. The page the message was received in stays with the context until the second
//! pass, which is [`assemble`](super::assemble).

use crate::{
    ib::{
        chain::{
            ChainRef,
            Opcode, //
        },
        qp::{
            PostError,
            SendWork,
            Tail, //
        },
        rdma::{
            Demand,
            Rdma,
            RegisteredReads, //
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
        depot::ReadKit,
        recv::{
            self,
            RecvContext, //
        }, //
    }, //
};
use core::num::NonZeroU32;
use kernel::prelude::*;

/// RDMA Reads into pages of the pool.
pub(crate) type Reads = Rdma<KVec<PrivatePage>>;

/// The context of a chain of RDMA Reads.
pub(crate) struct ReadContext(Option<(Reads, Parts)>);

/// A call whose Reads are not done.
pub(crate) struct Parts {
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
    pub(crate) fn take(&mut self) -> Option<(Reads, Parts)> {
        self.0.take()
    }
}

impl SendWork for ReadContext {
    fn chain(&mut self) -> Option<ChainRef<'_>> {
        self.0.as_mut().map(|(reads, _)| reads.requests())
    }

    fn tail(&self) -> Tail<'_> {
        Tail::Rdma
    }
}

impl Completion for ReadContext {
    type Context = Xprt<Connection>;

    fn done(mut work: Work<Self>, wc: Wc<'_>, conn: &Xprt<Connection>) {
        let good = wc.ok().is_some();
        if let Some((reads, _)) = &mut work.0 {
            reads.release_windows(|window| conn.windows().put(window, good));
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
pub(super) fn abandon(conn: &Xprt<Connection>, parts: Parts) {
    conn.depot().put_page(parts.header);
    conn.end_call(parts.call);
}

/// Takes back Reads that were not posted.
fn unwind(conn: &Xprt<Connection>, mut reads: Reads) {
    reads.release_windows(|window| conn.windows().put(window, true));
    conn.depot().put_reads(reads);
}

/// Ends a call whose RDMA Reads came to nothing.
pub(super) fn discard(conn: &Xprt<Connection>, mut work: Work<ReadContext>) {
    if let Some((reads, parts)) = work.take() {
        unwind(conn, reads);
        abandon(conn, parts);
    }
    conn.depot().put_read(work);
}

/// First pass: posts the RDMA Reads of a call.
pub(crate) fn start(
    conn: &Xprt<Connection>,
    parts: Parts,
    plan: &Plan,
    work: Work<RecvContext>,
    context: &Sleepable,
) -> Received {
    // The page stays with the call, so the Receive gets one of the pool's.
    recv::repost(conn, work, None, context);
    // The client sends the call again, where an answer would be an error to the application.
    if post(conn, parts, plan, context).is_err() {
        conn.close_soon();
    }
    Received::NOTHING
}

/// What the Reads of a call need, known before anything is allocated for it.
pub(crate) struct Plan {
    pages: usize,
    demand: Demand,
    slots: u32,
    registered: Option<RegisteredReads>,
}

/// Plans the Reads of a call.
///
/// # Errors
///
/// `E2BIG` when the Send Queue or the thread's pages can never hold them.
pub(crate) fn plan(conn: &Xprt<Connection>, call: &Call<'_>) -> Result<Plan> {
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
        windows,
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
        demand,
        slots,
        registered,
    })
}

/// Waits for room, builds and posts. On error all that `parts` holds is back where it
/// belongs.
fn post(conn: &Xprt<Connection>, parts: Parts, plan: &Plan, context: &Sleepable) -> Result {
    // Pages are taken once there is room: threads that wait in line hold none.
    let reserved = (|| -> Result<_> {
        let credit = conn.reserve_slots(plan.slots, context)?;
        let read = conn.depot().read(context)?;
        Ok((credit, read, build(conn, &parts, plan, context)?))
    })();
    let (credit, mut read, reads) = match reserved {
        Ok(reserved) => reserved,
        Err(error) => {
            abandon(conn, parts);
            return Err(error);
        }
    };
    // CAST: At most the slots.
    stats::stats().read_wrs.add(reads.rdma_requests() as i64);
    read.0 = Some((reads, parts));
    match conn.endpoint().post_send(conn, read, credit) {
        Ok(()) => Ok(()),
        Err(PostError::Rejected(read)) => {
            discard(conn, read);
            Err(EIO)
        }
        Err(PostError::InDoubt) => Err(EIO),
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
fn build(
    conn: &Xprt<Connection>,
    parts: &Parts,
    plan: &Plan,
    context: &Sleepable,
) -> Result<Reads> {
    let mut kit = conn.depot().read_kit();
    let filled = conn.depot().fill(&mut kit.pages, plan.pages, context);
    if let Err(error) = filled.and_then(|()| kit.room.reserve(plan.demand)) {
        conn.depot().put_read_kit(kit);
        return Err(error);
    }
    let mut target = conn.target();
    target.max_sge = conn.endpoint().geometry().max_read_sge;
    let ReadKit { room, pages } = kit;
    let mut reads = Rdma::begin(Opcode::Read, &target, pages, room);
    match describe(conn, parts, plan, &mut reads, context) {
        Ok(()) => Ok(reads),
        Err(error) => {
            unwind(conn, reads);
            Err(error)
        }
    }
}

/// Adds the Reads.
fn describe(
    conn: &Xprt<Connection>,
    parts: &Parts,
    plan: &Plan,
    reads: &mut Reads,
    context: &Sleepable,
) -> Result {
    let call = parts.view()?;
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
                    None => reads.transfer(remote, at, len as usize, context)?,
                    Some(how) => {
                        let take = || conn.windows().take(conn.endpoint(), context);
                        reads.transfer_registered(how, remote, at, len as usize, take, context)?;
                    }
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
        reads.end_window(how)?;
    }
    stats::stats().read_bytes.add(bytes);
    Ok(())
}
