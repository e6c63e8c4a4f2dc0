// SPDX-License-Identifier: GPL-2.0

//! Replies: what goes inline, what into the client's chunks.

use crate::{
    ib::{
        chain::Opcode,
        rdma::{
            Demand,
            Rdma, //
        },
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
        depot::WriteKit,
        recv,
        send::{
            self,
            SendContext,
            Writes, //
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
    let is_nfs4 = proto::is_nfs4(rqst.program());
    let (Some(call), reply) = rqst.call_and_reply() else {
        return Err(Failure::Broken(EINVAL));
    };
    let fixed = call.fixed();
    let lists = call.lists().ok_or(EINVAL)?;
    let mut reports = *call.reports();
    if is_nfs4 {
        // CAST: `u32` to `usize` is lossless on 64-bit.
        reports = reports.settled(|offset| reply.word(offset as usize));
    }
    let plan = reports
        .bind(&lists)
        .and_then(|payloads| plan_reply(&lists, &payloads, reply.len(), conn.inline_max()))
        .map_err(|_| Failure::TooLarge(fixed))?;
    let len = write_message(work.bytes_mut(), &plan, &lists, &fixed, &reply, conn)?;
    work.set_invalidate(call.inv_rkey().filter(|_| conn.remote_invalidation()));
    if plan.form() == ReplyForm::ReplyChunk {
        stats::stats().replies_chunk.inc();
    }
    if plan.write_count(&lists) == 0 {
        rqst.keep_reply_pages();
    } else {
        work.set_writes(write_chunks(conn, rqst, &plan, context)?);
    }
    Ok((len, fixed))
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

/// The RDMA Writes of the reply, which is taken from the thread.
fn write_chunks(
    conn: &Xprt<Connection>,
    rqst: &mut Rqst<Connection>,
    plan: &ReplyPlan,
    context: &Sleepable,
) -> Result<Writes> {
    let target = conn.target();
    let (pages, own) = rqst.reply_page_counts()?;
    let lists = rqst.call().and_then(|call| call.lists()).ok_or(EINVAL)?;
    let ops = plan.write_count(&lists);
    // Each page is one piece, and so are head and tail; the end of a segment splits one more.
    let sges = pages
        .checked_add(ops.checked_mul(2).ok_or(E2BIG)?)
        .and_then(|n| n.checked_add(4))
        .ok_or(E2BIG)?;
    // CAST: `u32` to `usize` is lossless on 64-bit.
    let full = sges / (target.max_sge as usize).max(1);
    let demand = Demand {
        work_requests: ops.checked_add(full).ok_or(E2BIG)?,
        sges,
        windows: 0,
    };
    let mut kit = conn.depot().write_kit();
    // Pages in exchange for the thread's own that leave; what is not used goes back.
    let taken = (|| {
        kit.room.reserve(demand)?;
        kit.list.reserve(pages, GFP_KERNEL)?;
        conn.depot().fill_pooled(&mut kit.spare, own)?;
        rqst.take_reply(core::mem::take(&mut kit.list), &mut kit.spare)
    })();
    let reply = match taken {
        Ok(reply) => reply,
        Err(error) => {
            conn.depot().put_write_kit(kit);
            return Err(error);
        }
    };
    let WriteKit {
        room, mut spare, ..
    } = kit;
    conn.depot().put_pages(&mut spare);
    let mut writes = Writes {
        rdma: Rdma::begin(Opcode::Write, &target, reply, room),
        spare,
    };
    match describe(rqst, plan, &mut writes, context) {
        Ok(()) => Ok(writes),
        Err(error) => {
            conn.depot().put_writes(writes);
            Err(error)
        }
    }
}

/// Adds the Writes.
fn describe(
    rqst: &mut Rqst<Connection>,
    plan: &ReplyPlan,
    writes: &mut Writes,
    context: &Sleepable,
) -> Result {
    let lists = rqst.call().and_then(|call| call.lists()).ok_or(EINVAL)?;
    let mut bytes = 0i64;
    for write in plan.writes(&lists) {
        let remote = (write.handle, write.offset);
        // CAST: `u32` to `usize` is lossless on 64-bit.
        let (at, len) = (write.src_off as usize, write.len as usize);
        writes.rdma.transfer(remote, at, len, context)?;
        bytes = bytes.saturating_add(write.len.into());
    }
    stats::stats().write_bytes.add(bytes);
    Ok(())
}
