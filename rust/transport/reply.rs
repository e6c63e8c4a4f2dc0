// SPDX-License-Identifier: GPL-2.0

//! Replies: what goes inline, what into the client's chunks.

use crate::{
    ib::{
        chain::Opcode,
        work::Work, //
    },
    kern::context::Sleepable,
    proto::{
        self,
        plan_reply,
        Answer,
        ReplyForm,
        ReplyLists,
        ReplyPlan, //
    },
    stats,
    svc::{
        rqst::Rqst,
        xdr_buf::XdrBuf,
        xprt::Xprt, //
    },
    transport::{
        connection::Connection,
        rdma_op::{
            Demand,
            RdmaOp, //
        },
        recv,
        send::{
            self,
            SendContext, //
        }, //
    }, //
};
use kernel::prelude::*;

/// Why a reply was not built.
enum Failure {
    /// It does not fit what the client offered: the client is told.
    TooLarge(proto::Fixed),
    /// The connection is closed.
    Broken(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

/// Sends the reply of `rqst`, or closes the connection.
pub(crate) fn send(
    conn: &Xprt<Connection>,
    rqst: &mut Rqst<Connection>,
    context: &Sleepable,
) -> Result {
    if conn.is_dead() {
        return Err(ENOTCONN);
    }
    let mut work = match conn.send_context(context) {
        Ok(work) => work,
        Err(error) => {
            conn.close_soon();
            return Err(error);
        }
    };
    let built = build(conn, rqst, &mut work, context);
    let (len, fixed) = match built {
        Ok(built) => built,
        Err(failure) => {
            conn.put_send(work);
            return fail(conn, failure, context);
        }
    };
    match send::post(conn, work, len, context) {
        Ok(()) => {
            stats::stats().replies.inc();
            Ok(())
        }
        Err(error) if error == E2BIG => fail(conn, Failure::TooLarge(fixed), context),
        Err(error) => {
            conn.close_soon();
            Err(error)
        }
    }
}

fn fail(conn: &Xprt<Connection>, failure: Failure, context: &Sleepable) -> Result {
    match failure {
        Failure::TooLarge(fixed) => {
            recv::refuse(conn, Answer::ErrChunk(fixed), context);
            Err(EMSGSIZE)
        }
        Failure::Broken(error) => {
            conn.close_soon();
            Err(error)
        }
    }
}

/// Writes the message and describes the RDMA Writes; the message's length and the call's header.
fn build(
    conn: &Xprt<Connection>,
    rqst: &mut Rqst<Connection>,
    work: &mut Work<SendContext>,
    context: &Sleepable,
) -> Result<(usize, proto::Fixed), Failure> {
    let reply_pages = rqst.reply_page_count();
    let (Some(call), reply) = rqst.call_and_reply() else {
        return Err(Failure::Broken(EINVAL));
    };
    let fixed = call.fixed();
    if call.overruns() {
        return Err(Failure::TooLarge(fixed));
    }
    // CAST: `u32` to `usize` is lossless on 64-bit.
    call.settle_payloads(|offset| reply.word(offset as usize));
    let lists = call.lists().ok_or(EINVAL)?;
    let plan = plan_reply(&lists, call.payloads(), reply.len(), conn.inline_max())
        .map_err(|_| Failure::TooLarge(fixed))?;
    let len = write_message(work.bytes_mut(), &plan, &lists, &fixed, &reply, conn)?;
    work.set_invalidate(call.inv_rkey().filter(|_| conn.remote_invalidation()));
    if plan.form() == ReplyForm::ReplyChunk {
        stats::stats().replies_chunk.inc();
    }
    if plan.write_count(&lists) == 0 {
        rqst.keep_reply_pages();
        return Ok((len, fixed));
    }
    let mut op = conn.depot().op(context)?;
    let described = write_chunks(&mut op, &plan, &lists, &reply, reply_pages, conn);
    let kept = described.and_then(|()| {
        op.shared_mut().reserve(reply_pages, GFP_KERNEL)?;
        // Pages in exchange for those that leave; what is not used goes back.
        let mut spare = core::mem::take(op.private_mut());
        let _ = conn.depot().fill_pooled(&mut spare, reply_pages);
        let taken = rqst.take_reply_pages(op.shared_mut(), &mut spare);
        conn.depot().put_pages(&mut spare);
        *op.private_mut() = spare;
        op.set_keep_shared(taken?);
        Ok(())
    });
    match kept {
        Ok(()) => {
            work.set_op(op);
            Ok((len, fixed))
        }
        Err(error) => {
            conn.depot().put_op(op);
            Err(Failure::Broken(error))
        }
    }
}

/// The transport header and the inline part of the reply.
fn write_message(
    message: &mut [u8],
    plan: &ReplyPlan,
    lists: &ReplyLists<'_>,
    fixed: &proto::Fixed,
    reply: &XdrBuf<'_>,
    conn: &Xprt<Connection>,
) -> Result<usize> {
    let mut len = plan
        .encode(message, lists, fixed.xid, conn.grant())
        .map_err(|_| EMSGSIZE)?;
    for range in plan.inline_ranges() {
        // CAST: `u32` to `usize` is lossless on 64-bit.
        let end = len.checked_add(range.len as usize).ok_or(EMSGSIZE)?;
        let room = message.get_mut(len..end).ok_or(EMSGSIZE)?;
        reply.copy(range.off as usize, room)?;
        len = end;
    }
    if len != plan.wire_len() {
        return Err(EMSGSIZE);
    }
    Ok(len)
}

/// The RDMA Writes of the reply.
fn write_chunks(
    op: &mut RdmaOp,
    plan: &ReplyPlan,
    lists: &ReplyLists<'_>,
    reply: &XdrBuf<'_>,
    reply_pages: usize,
    conn: &Xprt<Connection>,
) -> Result {
    let target = conn.target();
    let ops = plan.write_count(lists);
    // Each page is one piece, and so are head and tail; the end of a segment splits one more.
    let sges = reply_pages
        .checked_add(ops.checked_mul(2).ok_or(E2BIG)?)
        .and_then(|n| n.checked_add(4))
        .ok_or(E2BIG)?;
    // CAST: `u32` to `usize` is lossless on 64-bit.
    let full = sges / (target.max_sge as usize).max(1);
    let demand = Demand {
        work_requests: ops.checked_add(full).ok_or(E2BIG)?,
        sges,
    };
    op.begin(Opcode::Write, &target, demand)?;
    let mut bytes = 0i64;
    for write in plan.writes(lists) {
        // CAST: As above.
        let pieces = reply.pieces(write.src_off as usize, write.len as usize);
        op.write(&target, (write.handle, write.offset), pieces)?;
        bytes = bytes.saturating_add(write.len.into());
    }
    stats::stats().write_bytes.add(bytes);
    Ok(())
}
