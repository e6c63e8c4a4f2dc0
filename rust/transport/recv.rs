// SPDX-License-Identifier: GPL-2.0

//! Receives, and what a message that one brought is.
//!
//! Each posted Receive owns one page, mapped while it is posted. The page of a call is exchanged
//! for one of the thread's; that one is posted with the next Receive.

use crate::{
    ib::{
        client::DeviceGuard,
        dma::RecvBuffer,
        qp::RecvWork,
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
            SharedPage, //
        }, //
    },
    proto::{
        self,
        Answer,
        Call,
        Ingress, //
    },
    ratelimited,
    stats::{
        self,
        Counted, //
    },
    svc::{
        rqst::{
            CallPages,
            Received,
            Rqst, //
        },
        xprt::Xprt, //
    },
    transport::{
        backchannel,
        call::CallContext,
        connection::{
            CallSlot,
            Connection, //
        },
        geometry::INLINE_SIZE,
        read::{
            self,
            Parts, //
        },
        send, //
    }, //
};
use kernel::prelude::*;

/// The context of a Receive.
pub(crate) struct RecvContext {
    buffer: RecvBuffer,
    _counted: Counted,
}

/// A message in the hands of the CPU.
pub(crate) struct Message {
    work: Work<RecvContext>,
    len: usize,
}

impl RecvContext {
    /// A context with an empty buffer.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(device: DeviceGuard) -> Result<Work<Self>> {
        Work::new(Self {
            buffer: RecvBuffer::new(device),
            _counted: Counted::new(&stats::objects().receive_contexts),
        })
    }
}

impl RecvWork for RecvContext {
    fn buffer(&self) -> &RecvBuffer {
        &self.buffer
    }
}

impl Completion for RecvContext {
    type Context = Xprt<Connection>;

    fn done(work: Work<Self>, wc: Wc<'_>, conn: &Xprt<Connection>) {
        let len = match wc.ok() {
            // An RDMA Write with immediate data completes a Receive too, and its length is not
            // that of anything in the buffer.
            Some(ok) if ok.is_recv() && ok.byte_len() <= INLINE_SIZE => ok.byte_len(),
            Some(_) => {
                stats::stats().receive_errors.inc();
                conn.close_soon();
                return;
            }
            None => {
                if !wc.is_flushed() {
                    stats::stats().receive_errors.inc();
                }
                conn.close_soon();
                return;
            }
        };
        stats::stats().receives.inc();
        // CAST: `u32` to `usize` is lossless on 64-bit.
        let message = Message {
            work,
            len: len as usize,
        };
        if conn.inbox().put_message(conn, message).is_err() {
            conn.close_soon();
        }
    }
}

/// Posts a Receive with `page`, or one from the pool.
pub(crate) fn post(
    conn: &Xprt<Connection>,
    mut work: Work<RecvContext>,
    page: Option<PrivatePage>,
    context: &Sleepable,
) -> Result {
    let page = match page {
        Some(page) => page,
        None => conn.depot().page(context)?,
    };
    work.buffer.load(page, context)?;
    conn.endpoint().post_recv(conn, work).map_err(|_| ENOTCONN)
}

/// As [`post`], for a connection that goes on: without the Receive it would be short of one for
/// good, so a failure closes it.
pub(crate) fn repost(
    conn: &Xprt<Connection>,
    work: Work<RecvContext>,
    page: Option<SharedPage>,
    context: &Sleepable,
) {
    let page = page.and_then(|page| page.try_into_private().ok());
    if post(conn, work, page, context).is_err() {
        conn.close_soon();
    }
}

/// Deals with a message.
pub(crate) fn receive(
    conn: &Xprt<Connection>,
    rqst: &mut Rqst<Connection>,
    message: Message,
    slot: CallSlot<'_>,
    context: &Sleepable,
) -> Received {
    let Message { mut work, len } = message;
    let Some(page) = work.buffer.unload() else {
        conn.close_soon();
        return Received::NOTHING;
    };
    let bytes = page.bytes().get(..len).unwrap_or(&[]);
    let parsed = proto::parse(bytes, conn.limits()).and_then(|ingress| match &ingress {
        Ingress::Call(call) if !call.payload().is_empty() => {
            call.check_reducible(call.payload()).map(|()| ingress)
        }
        _ => Ok(ingress),
    });
    let call = match parsed {
        Ok(Ingress::Call(call)) => call,
        Ok(Ingress::ReverseReply { fixed, payload }) => {
            backchannel::receive(conn, &fixed, Some(payload));
            repost(conn, work, Some(page.into_shared()), context);
            return Received::NOTHING;
        }
        Ok(Ingress::PeerError { fixed }) => {
            backchannel::receive(conn, &fixed, None);
            repost(conn, work, Some(page.into_shared()), context);
            return Received::NOTHING;
        }
        Err(reject) => {
            ratelimited!(pr_info!(
                "{}: malformed message: {:?}\n",
                conn.peer_name(),
                reject.reason()
            ));
            let answer = reject.answer();
            // The answer grants credits, so the Receive must be there before.
            repost(conn, work, Some(page.into_shared()), context);
            refuse(conn, answer, context);
            return Received::NOTHING;
        }
    };
    let plan = call.has_read_chunks().then(|| read::plan(conn, &call));
    let Ok(plan) = plan.transpose() else {
        // It can never be fetched.
        let answer = Answer::ErrChunk(call.fixed());
        repost(conn, work, Some(page.into_shared()), context);
        refuse(conn, answer, context);
        return Received::NOTHING;
    };
    let Ok(remembered) = remember(conn, slot, &call, context) else {
        conn.close_soon();
        return Received::NOTHING;
    };
    if let Some(plan) = plan {
        let parts = Parts {
            shape: call.shape(),
            header: page,
            len,
            call: remembered,
        };
        return read::start(conn, parts, &plan, work, context);
    }
    let head = call.header_len()..len;
    stats::stats().calls_inline.inc();
    let mut displaced = None;
    let received = rqst.install(CallPages::Inline { page, call: head }, remembered, |page| {
        displaced = Some(page);
    });
    repost(conn, work, displaced, context);
    received.unwrap_or_else(|(_, call)| {
        conn.end_call(call);
        conn.close_soon();
        Received::NOTHING
    })
}

/// Makes the context of a call.
fn remember(
    conn: &Xprt<Connection>,
    slot: CallSlot<'_>,
    call: &Call<'_>,
    context: &Sleepable,
) -> Result<KBox<CallContext>> {
    let page = if CallContext::needs_page(call) {
        Some(conn.depot().page(context)?)
    } else {
        None
    };
    let mut remembered = slot.begin(context)?;
    match remembered.remember(call, page) {
        Ok(()) => Ok(remembered),
        Err(error) => {
            conn.end_call(remembered);
            Err(error)
        }
    }
}

/// Gives a message that is no call the answer it deserves.
pub(crate) fn refuse(conn: &Xprt<Connection>, answer: Answer, context: &Sleepable) {
    let sent = match answer {
        Answer::Silent => {
            stats::stats().dropped.inc();
            return;
        }
        Answer::ErrVers(fixed) => {
            stats::stats().err_vers.inc();
            send::raw(conn, &proto::encode_err_vers(&fixed, conn.grant()), context)
        }
        Answer::ErrChunk(fixed) => {
            stats::stats().err_chunk.inc();
            send::raw(
                conn,
                &proto::encode_err_chunk(&fixed, conn.grant()),
                context,
            )
        }
    };
    if sent.is_err() {
        // RFC 8166 section 4.5.4: who cannot tell the peer of an error ends the connection.
        ratelimited!(pr_warn!(
            "{}: cannot answer a malformed message\n",
            conn.peer_name()
        ));
        conn.close_soon();
    }
}
