// SPDX-License-Identifier: GPL-2.0

//! Calls with Read chunks.
//!
//! The first pass posts the RDMA Reads into pages of the pool and lets go of its thread; it touches
//! none of the thread's pages. The second pass, on whatever thread comes, takes the pages back from
//! the device, completes them with what was inline, and exchanges them for the thread's. The
//! page the message was received in stays with the context in between.

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
        page::{
            PrivatePage,
            PAGE_SIZE, //
        }, //
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
        rqst::{
            CallPages,
            Received,
            Rqst, //
        },
        xprt::Xprt, //
    },
    transport::{
        call::CallContext,
        connection::Connection,
        rdma_op::{
            Demand,
            RdmaOp, //
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
    len: usize,
    shape: CallShape,
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

    fn done(work: Work<Self>, wc: Wc<'_>, conn: &Xprt<Connection>) {
        if wc.ok().is_none() {
            if !wc.is_flushed() {
                stats::stats().read_errors.inc();
                ratelimited!(pr_info!(
                    "{}: RDMA Read failed with status {}\n",
                    conn.peer_name(),
                    wc.status()
                ));
            }
            discard(conn, work);
            conn.deferred_close();
            return;
        }
        if let Err(work) = conn.inbox().put_read(conn, work) {
            discard(conn, work);
            conn.deferred_close();
        }
    }
}

/// Ends a call whose RDMA Reads came to nothing.
fn discard(conn: &Xprt<Connection>, mut work: Work<ReadContext>) {
    if let Some(parts) = work.take() {
        conn.depot().put_op(parts.op);
        conn.depot().put_page(parts.header);
        conn.end_call(parts.call);
    }
    conn.depot().put_read(work);
}

/// First pass: posts the RDMA Reads of a call.
pub(crate) fn start(
    conn: &Xprt<Connection>,
    call: Result<KBox<CallContext>>,
    shape: CallShape,
    header: PrivatePage,
    len: usize,
    work: Work<RecvContext>,
    context: &Sleepable,
) -> Received {
    // The page stays with the call, so the Receive gets one of the pool's.
    recv::repost(conn, work, None, context);
    let Ok(call) = call else {
        conn.depot().put_page(header);
        conn.deferred_close();
        return Received::NOTHING;
    };
    let fixed = call.fixed();
    let parts = Parts {
        // Replaced by one of the pool's in `post`; an error before leaves it there.
        op: match conn.depot().op(context) {
            Ok(op) => op,
            Err(_) => {
                conn.depot().put_page(header);
                conn.end_call(call);
                conn.deferred_close();
                return Received::NOTHING;
            }
        },
        header,
        len,
        shape,
        call,
    };
    match post(conn, parts, context) {
        Ok(()) => {}
        Err(Refusal::TooLarge) => recv::refuse(conn, Answer::ErrChunk(fixed), context),
        Err(Refusal::Broken) => conn.deferred_close(),
    }
    Received::NOTHING
}

/// Why the Reads of a call were not posted.
enum Refusal {
    /// They can never be: the client is told.
    TooLarge,
    /// The connection is of no use any more.
    Broken,
}

/// Builds and posts the chain. On error all that `parts` holds is back where it belongs.
fn post(conn: &Xprt<Connection>, mut parts: Parts, context: &Sleepable) -> Result<(), Refusal> {
    let give_up = |parts: Parts, why: Refusal| {
        conn.depot().put_op(parts.op);
        conn.depot().put_page(parts.header);
        conn.end_call(parts.call);
        Err(why)
    };
    match build(conn, &mut parts, context) {
        Ok(()) => {}
        Err(error) if error == E2BIG => return give_up(parts, Refusal::TooLarge),
        Err(_) => return give_up(parts, Refusal::Broken),
    }
    let Ok(slots) = u32::try_from(parts.op.work_requests()) else {
        return give_up(parts, Refusal::TooLarge);
    };
    let Ok(credit) = conn.queues().sq.reserve(slots, context) else {
        return give_up(parts, Refusal::Broken);
    };
    let mut read = match conn.depot().read(context) {
        Ok(read) => read,
        Err(_) => return give_up(parts, Refusal::Broken),
    };
    stats::stats().read_wrs.add(slots.into());
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

/// Fetches pages and describes the Reads.
///
/// # Errors
///
/// `E2BIG` when the Send Queue or the thread's pages can never hold them; found before anything
/// is allocated.
fn build(conn: &Xprt<Connection>, parts: &mut Parts, context: &Sleepable) -> Result {
    let target = conn.target();
    let message = parts.header.bytes().get(..parts.len).ok_or(EINVAL)?;
    let call = Call::from_shape(message, parts.shape).ok_or(EINVAL)?;
    let max_sge = NonZeroU32::new(target.max_sge).ok_or(EINVAL)?;
    let demand = call.read_demand(max_sge);
    let pages = call.sink_pages();
    if demand.work_requests > conn.queues().sq.depth() || pages >= conn.maxpages() {
        return Err(E2BIG);
    }
    conn.depot().fill(parts.op.private_mut(), pages, context)?;
    // CAST: `u32` to `usize` is lossless on 64-bit.
    parts.op.begin(
        Opcode::Read,
        &target,
        Demand {
            work_requests: demand.work_requests as usize,
            sges: demand.sges as usize,
        },
    )?;
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
                parts.op.read(&target, (handle, offset), at, len as usize)?;
                bytes = bytes.saturating_add(len.into());
                len
            }
            Piece::Inline { len, .. } | Piece::Pad { len } if inline_counts => len,
            Piece::Inline { .. } | Piece::Pad { .. } => 0,
        };
        at = at.checked_add(len as usize).ok_or(EINVAL)?;
    }
    stats::stats().read_bytes.add(bytes);
    Ok(())
}

/// Second pass: completes a call whose RDMA Reads are done and hands it to the thread.
pub(crate) fn finish(
    conn: &Xprt<Connection>,
    rqst: &mut Rqst<Connection>,
    mut work: Work<ReadContext>,
    context: &Sleepable,
) -> Received {
    let parts = work.take();
    conn.depot().put_read(work);
    let Some(mut parts) = parts else {
        return Received::NOTHING;
    };
    // From here on the pages are the CPU's.
    parts.op.finish();
    match assemble(&mut parts) {
        Ok(how) => install(conn, rqst, parts, how),
        Err(answer) => {
            conn.depot().put_op(parts.op);
            conn.depot().put_page(parts.header);
            conn.end_call(parts.call);
            recv::refuse(conn, answer, context);
            Received::NOTHING
        }
    }
}

/// How a completed call lies in memory.
enum Shape {
    /// The argument in pages, the rest in the page of the message, split at `split`.
    Single {
        start: usize,
        split: usize,
        padded: usize,
    },
    /// All of it in pages.
    Stream { len: usize },
}

/// Writes what did not come by RDMA Read: inline parts and padding.
fn assemble(parts: &mut Parts) -> Result<Shape, Answer> {
    let Parts {
        op,
        header,
        len,
        shape,
        call: remembered,
    } = parts;
    let broken = Answer::ErrChunk(remembered.fixed());
    let message = header.bytes().get(..*len).unwrap_or(&[]);
    let Some(call) = Call::from_shape(message, *shape) else {
        return Err(broken);
    };
    let start = call.header_len();
    match call.layout() {
        // CAST: `u32` to `usize` is lossless on 64-bit.
        Layout::Single {
            position,
            chunk_len,
        } => {
            let padded = (chunk_len as usize).next_multiple_of(4);
            if !fill(op, chunk_len as usize, padded, None) {
                return Err(broken);
            }
            Ok(Shape::Single {
                start,
                split: start.saturating_add(position as usize),
                padded,
            })
        }
        Layout::Inline | Layout::Stream => {
            let mut at = 0usize;
            for piece in call.assembly() {
                let (piece_len, source) = match piece {
                    Piece::Remote { len, .. } => (len as usize, Source::Device),
                    Piece::Pad { len } => (len as usize, Source::Zeros),
                    Piece::Inline { off, len } => {
                        let bytes = usize::try_from(off)
                            .ok()
                            .and_then(|off| call.payload().get(off..))
                            .and_then(|rest| rest.get(..len as usize))
                            .ok_or(broken)?;
                        (len as usize, Source::Bytes(bytes))
                    }
                };
                let end = at.saturating_add(piece_len);
                let filled = match source {
                    Source::Device => true,
                    Source::Zeros => fill(op, at, end, None),
                    Source::Bytes(bytes) => fill(op, at, end, Some(bytes)),
                };
                if !filled {
                    return Err(broken);
                }
                at = end;
            }
            let first = op.private_mut().first();
            let first = first.and_then(|page| page.bytes().get(..at.min(PAGE_SIZE)));
            call.check_assembled(first.unwrap_or(&[]))
                .map_err(|reject| reject.answer())?;
            Ok(Shape::Stream { len: at })
        }
    }
}

/// Where a piece's bytes come from.
enum Source<'a> {
    Device,
    Zeros,
    Bytes(&'a [u8]),
}

/// Writes `from..to` of the operation's pages, with `bytes` or zeros; whether it could.
fn fill(op: &mut RdmaOp, from: usize, to: usize, bytes: Option<&[u8]>) -> bool {
    let pages = op.private_mut();
    let mut at = from;
    let mut rest = bytes;
    while at < to {
        let in_page = at % PAGE_SIZE;
        let len = to.saturating_sub(at).min(PAGE_SIZE.saturating_sub(in_page));
        let slot = pages
            .get_mut(at / PAGE_SIZE)
            .and_then(|page| page.bytes_mut().get_mut(in_page..))
            .and_then(|slot| slot.get_mut(..len));
        let Some(slot) = slot else {
            return false;
        };
        match rest {
            None => slot.fill(0),
            Some(bytes) => {
                let Some((now, later)) = bytes.split_at_checked(len) else {
                    return false;
                };
                slot.copy_from_slice(now);
                rest = Some(later);
            }
        }
        at = at.saturating_add(len);
    }
    true
}

/// Gives the completed call to the thread.
fn install(
    conn: &Xprt<Connection>,
    rqst: &mut Rqst<Connection>,
    parts: Parts,
    how: Shape,
) -> Received {
    let Parts {
        mut op,
        header,
        len,
        call,
        ..
    } = parts;
    let pages = match how {
        Shape::Single {
            start,
            split,
            padded,
        } => CallPages::Single {
            page: header,
            head: start..split,
            tail: split..len,
            sink: op.private_mut(),
            sink_len: padded,
        },
        Shape::Stream { len } => {
            conn.depot().put_page(header);
            CallPages::Stream {
                sink: op.private_mut(),
                len,
            }
        }
    };
    let received = rqst.install(pages, call, |page| conn.depot().put_shared(page));
    conn.depot().put_op(op);
    match received {
        Ok(received) => {
            stats::stats().calls_read.inc();
            received
        }
        Err((_, call)) => {
            conn.end_call(call);
            conn.deferred_close();
            Received::NOTHING
        }
    }
}
