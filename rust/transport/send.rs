// SPDX-License-Identifier: GPL-2.0

//! Sends.
//!
//! A Send has one scatter/gather element: the transport header and whatever of the reply goes
//! inline are copied into a page that stays mapped. A reply is at most a page, and copying it costs
//! less than mapping its parts and giving the thread new pages for them.

use crate::{
    ib::{
        chain::ChainRef,
        client::DeviceGuard,
        dma::SendBuffer,
        qp::{
            PostError,
            SendWork,
            Tail, //
        },
        rdma::Rdma,
        sq::SqCredit,
        wc::Wc,
        work::{
            Completion,
            Work, //
        }, //
    },
    kern::{
        bytes,
        context::Sleepable,
        page::{
            PrivatePage,
            PAGE_SIZE, //
        }, //
    },
    ratelimited,
    stats::{
        self,
        Counted, //
    },
    svc::{
        reply_pages::ReplyPages,
        xprt::Xprt, //
    },
    transport::connection::Connection, //
};
use kernel::prelude::*;

/// RDMA Writes of a reply.
pub(crate) struct Writes {
    /// The work requests and the reply.
    pub(crate) rdma: Rdma<ReplyPages>,
    /// Room that is not in use meanwhile.
    pub(crate) spare: KVec<PrivatePage>,
}

/// The context of a Send.
pub(crate) struct SendContext {
    buffer: SendBuffer,
    len: u32,
    invalidate: Option<u32>,
    writes: Option<Writes>,
    in_use: Option<Counted>,
}

impl SendContext {
    /// A context with a buffer of its own.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(
        device: DeviceGuard,
        page: PrivatePage,
        context: &Sleepable,
    ) -> Result<Work<Self>> {
        Work::new(Self {
            buffer: SendBuffer::new(device, page, context)?,
            len: 0,
            invalidate: None,
            writes: None,
            in_use: None,
        })
    }

    /// The message, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        self.buffer.bytes_mut()
    }

    /// Counts the context as in use, or no longer.
    pub(crate) fn set_in_use(&mut self, in_use: bool) {
        self.in_use = in_use.then(|| Counted::new(&stats::objects().sends));
    }

    /// Has the Send preceded by RDMA Writes.
    pub(crate) fn set_writes(&mut self, writes: Writes) {
        self.writes = Some(writes);
    }

    /// The RDMA Writes.
    pub(crate) fn take_writes(&mut self) -> Option<Writes> {
        self.writes.take()
    }

    /// Has the client's device invalidate a key.
    pub(crate) fn set_invalidate(&mut self, rkey: Option<u32>) {
        self.invalidate = rkey;
    }
}

impl SendWork for SendContext {
    fn chain(&mut self) -> Option<ChainRef<'_>> {
        self.writes.as_mut().map(|writes| writes.rdma.requests())
    }

    fn tail(&self) -> Tail<'_> {
        Tail::Send {
            buffer: &self.buffer,
            len: self.len,
            invalidate: self.invalidate,
        }
    }
}

impl Completion for SendContext {
    type Context = Xprt<Connection>;

    fn done(work: Work<Self>, wc: Wc<'_>, conn: &Xprt<Connection>) {
        let failed = wc.ok().is_none();
        if failed && !wc.is_flushed() {
            stats::stats().send_errors.inc();
            ratelimited!(pr_info!(
                "{}: Send failed with status {}\n",
                conn.peer_name(),
                wc.status()
            ));
        }
        conn.put_send(work);
        if failed {
            conn.close_soon();
        }
    }
}

/// Posts a message whose first `len` bytes are written. The reservation of slots may sleep.
///
/// # Errors
///
/// `E2BIG` when the Send Queue can never hold it, `ENOTCONN` when the connection is or has become
/// of no use; it is being closed in that case.
pub(crate) fn post(
    conn: &Xprt<Connection>,
    mut work: Work<SendContext>,
    len: usize,
    context: &Sleepable,
) -> Result {
    let writes = work.writes.as_ref();
    let writes = writes.map_or(0, |writes| writes.rdma.work_requests());
    let slots = u32::try_from(writes)?.checked_add(1).ok_or(E2BIG)?;
    let credit = match conn.reserve_slots(slots, context) {
        Ok(credit) => credit,
        Err(error) => {
            conn.put_send(work);
            return Err(error);
        }
    };
    stats::stats().write_wrs.add(i64::from(slots) - 1);
    if work.invalidate.is_some() {
        stats::stats().sends_with_inv.inc();
    }
    work.len = u32::try_from(len)?;
    work.buffer.flush(len);
    post_reserved(conn, work, credit)
}

fn post_reserved(conn: &Xprt<Connection>, work: Work<SendContext>, credit: SqCredit<'_>) -> Result {
    match conn.endpoint().post_send(conn, work, credit) {
        Ok(()) => Ok(()),
        Err(error) => {
            if let PostError::Rejected(work) = error {
                conn.put_send(work);
            }
            conn.close_soon();
            Err(ENOTCONN)
        }
    }
}

/// Sends a message of the transport's own.
///
/// # Errors
///
/// As [`post`], and `ENOMEM`.
pub(crate) fn raw(conn: &Xprt<Connection>, message: &[u8], context: &Sleepable) -> Result {
    let mut work = conn.send_context(context)?;
    let room = work.bytes_mut().get_mut(..message.len()).ok_or(EMSGSIZE)?;
    bytes::copy(room, message);
    post(conn, work, message.len(), context)
}

/// Sends a backchannel call that `write` puts into the buffer; it returns the length. Neither
/// allocates nor waits.
///
/// # Errors
///
/// `ENOBUFS` when there is no buffer or no room just now, `ENOTCONN` when the connection is of no
/// use, and what `write` returns.
pub(crate) fn try_send(
    conn: &Xprt<Connection>,
    write: impl FnOnce(&mut [u8; PAGE_SIZE]) -> Result<usize>,
) -> Result {
    let mut work = conn.idle_send().ok_or(ENOBUFS)?;
    let len = match write(work.bytes_mut()) {
        Ok(len) => len,
        Err(error) => {
            conn.put_send(work);
            return Err(error);
        }
    };
    let Some(credit) = conn.queues().sq.try_reserve(1) else {
        conn.put_send(work);
        return Err(ENOBUFS);
    };
    work.len = u32::try_from(len)?;
    work.buffer.flush(len);
    post_reserved(conn, work, credit)
}
