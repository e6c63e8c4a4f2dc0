// SPDX-License-Identifier: GPL-2.0

//! A connection.
//!
//! Made in `xpo_accept` with everything it needs, so there is no half-built state. Detach moves its
//! queue pair to the error state; teardown, on the module's workqueue, waits for what is posted and
//! then lets it all go.

use crate::{
    cm::{
        endpoint::{
            AcceptParams,
            ConnHandler,
            Endpoint, //
        },
        event::Event,
        pending::ConnId, //
    },
    ib::{
        qp::Queues,
        work::{
            QueueContext,
            Work, //
        }, //
    },
    kern::{
        context::Sleepable,
        page::PAGE_SIZE,
        place::Place, //
    },
    proto::{
        self,
        CmPrivate,
        Limits, //
    },
    stats::{
        self,
        Counted, //
    },
    svc::{
        self,
        class::Class,
        connection::Busy,
        listener::{
            AcceptedRef,
            Serv, //
        },
        rqst::{
            Received,
            Rqst, //
        },
        xprt::{
            Transport,
            Xprt, //
        }, //
    },
    transport::{
        call::CallContext,
        depot::Depot,
        geometry,
        inbox::{
            Inbox,
            Item, //
        },
        listener::Listener,
        rdma_op::Target,
        read,
        recv::{
            self,
            RecvContext, //
        },
        reply,
        send::SendContext,
        shared::{
            self,
            Shared, //
        }, //
    }, //
};
use core::num::NonZeroU32;
use kernel::{
    fmt,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        SpinLock, //
    },
    workqueue::Queue, //
};

/// Send contexts kept when idle.
const MAX_IDLE_SENDS: usize = 32;
/// Send contexts made at accept, so that callbacks find one.
const FIRST_SENDS: usize = 2;

/// A connection's own state.
#[pin_data]
pub(crate) struct Connection {
    // Dropped first: after it nothing calls into the rest.
    endpoint: Endpoint<Xprt<Connection>>,
    #[pin]
    queues: Queues,
    #[pin]
    inbox: Inbox,
    #[pin]
    idle_sends: SpinLock<KVec<Work<SendContext>>>,
    /// Calls between receipt and release.
    calls: Atomic<i32>,
    limits: Limits,
    /// Bytes the client can receive, or this end can send, in one message.
    inline_max: u32,
    /// Both ends agreed on remote invalidation.
    remote_inv: bool,
    max_seg_size: usize,
    shared: &'static Shared,
    _counted: Counted,
}

/// What decides how a connection speaks.
struct Agreement {
    inline_max: u32,
    remote_inv: bool,
    read_depth: u8,
    private_data: [u8; 8],
}

/// Agrees with the peer on sizes and abilities (RFC 8797).
fn agree(id: &ConnId, can_invalidate: bool, max_rd_atom: u32) -> Result<Agreement> {
    let theirs = proto::cm_private(id.private_data());
    let ours = CmPrivate {
        remote_inv: can_invalidate,
        send: geometry::INLINE_SIZE,
        recv: geometry::INLINE_SIZE,
    };
    let max_rd_atom = u8::try_from(max_rd_atom).unwrap_or(u8::MAX);
    let read_depth = id.read_limit().min(max_rd_atom);
    if read_depth == 0 {
        // Without RDMA Reads most calls could only be refused.
        return Err(EPROTO);
    }
    Ok(Agreement {
        inline_max: ours.send.min(theirs.recv),
        remote_inv: ours.remote_inv && theirs.remote_inv,
        read_depth,
        private_data: proto::encode_cm_private(&ours).ok_or(EINVAL)?,
    })
}

impl Connection {
    /// Accepts the connection of `id` for the service of `listener`.
    ///
    /// # Errors
    ///
    /// `ENODEV` when the device goes, `EPROTO` when the client allows no RDMA Reads, and what the
    /// device's driver returns.
    pub(crate) fn accept(
        id: ConnId,
        listener: &Xprt<Listener>,
        context: &Sleepable,
    ) -> Result<AcceptedRef<Self>> {
        let shared = shared::get().ok_or(ENODEV)?;
        let device = shared.devices.guard(id.device().ok_or(ENODEV)?)?;
        let caps = device.caps();
        let geometry = geometry::of(&caps)?;
        let agreement = agree(&id, caps.mem_mgt_extensions, caps.max_rd_atom)?;
        let net = Serv::net_of(listener);
        let serv = Serv::of(listener).ok_or(EINVAL)?;
        let max_seg_size = usize::try_from(caps.max_seg_size)?;
        // One page of a message is the transport header's; see `CallPages`.
        let pages = listener.maxpages().saturating_sub(1);
        let limits = Limits {
            max_segments: geometry::MAX_SEGMENTS,
            max_call_bytes: u32::try_from(pages.saturating_mul(PAGE_SIZE))?,
        };
        let xprt = Xprt::make(net, serv.as_ptr(), |place: Place<Xprt<Self>>| {
            let endpoint = Endpoint::new(id, device, place, geometry, context)?;
            let messages = usize::try_from(geometry.recv_depth)?;
            let reads = usize::try_from(geometry::MAX_CALLS)?;
            let inbox = Inbox::new(messages, reads)?;
            let idle = KVec::with_capacity(MAX_IDLE_SENDS, GFP_KERNEL)?;
            Ok(try_pin_init!(Self {
                endpoint,
                queues <- Queues::new(geometry.send_depth),
                inbox <- inbox,
                idle_sends <- new_spinlock!(idle, "svcrdma_rs::idle_sends"),
                calls: Atomic::new(0),
                limits,
                inline_max: agreement.inline_max,
                remote_inv: agreement.remote_inv,
                max_seg_size,
                shared,
                _counted: Counted::new(&stats::objects().connections),
            }? Error))
        })?;
        let accepted = AcceptedRef::new(xprt);
        let conn = accepted.xprt().ok_or(EINVAL)?;
        conn.set_local(conn.endpoint.id().local_addr()?);
        conn.set_remote(conn.endpoint.id().peer_addr()?);
        shared.connections.add(conn, context)?;
        for _ in 0..FIRST_SENDS {
            let send =
                SendContext::new(conn.endpoint.device().again(), shared.depot.page(context)?)?;
            conn.keep_send(send);
        }
        for _ in 0..geometry.recv_depth {
            let receive = RecvContext::new(conn.endpoint.device().again())?;
            recv::post(conn, receive, None, context)?;
        }
        conn.endpoint.accept(
            conn,
            &AcceptParams {
                private_data: &agreement.private_data,
                initiator_depth: agreement.read_depth,
                rnr_retry_count: 7,
            },
            context,
        )?;
        stats::stats().accepts.inc();
        Ok(accepted)
    }

    /// The RDMA side.
    pub(crate) fn endpoint(&self) -> &Endpoint<Xprt<Connection>> {
        &self.endpoint
    }

    /// The bookkeeping of the queues.
    pub(crate) fn queues(&self) -> &Queues {
        &self.queues
    }

    /// What waits for sunrpc.
    pub(crate) fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// The pools.
    pub(crate) fn depot(&self) -> &'static Depot {
        &self.shared.depot
    }

    /// What a message may have.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Bytes of the longest message to the client.
    pub(crate) fn inline_max(&self) -> u32 {
        self.inline_max
    }

    /// Whether replies may invalidate keys of the client.
    pub(crate) fn remote_invalidation(&self) -> bool {
        self.remote_inv
    }

    /// Credits granted with each reply. Each is backed by a Receive.
    pub(crate) fn grant(&self) -> NonZeroU32 {
        const GRANT: NonZeroU32 = NonZeroU32::MIN.saturating_add(geometry::CREDITS - 1);
        GRANT
    }

    /// The device, for RDMA operations.
    pub(crate) fn target(&self) -> Target<'_> {
        Target {
            device: self.endpoint.device(),
            lkey: self.endpoint.lkey(),
            max_sge: self.endpoint.geometry().max_sge,
            max_seg_size: self.max_seg_size,
        }
    }

    /// A context for a call that begins.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn begin_call(&self, context: &Sleepable) -> Result<KBox<CallContext>> {
        let call = self.depot().call(context)?;
        self.calls.add(1, Relaxed);
        stats::objects().calls.inc();
        Ok(call)
    }

    /// Whether one more call may begin.
    fn has_room(&self) -> bool {
        // CAST: A small constant.
        self.calls.load(Relaxed) < geometry::MAX_CALLS as i32
    }

    /// A Send context that is idle.
    pub(crate) fn idle_send(&self) -> Option<Work<SendContext>> {
        let send = self.idle_sends.lock().pop();
        if send.is_some() {
            stats::objects().sends.inc();
        }
        send
    }

    /// A Send context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn send_context(&self, context: &Sleepable) -> Result<Work<SendContext>> {
        if let Some(send) = self.idle_send() {
            return Ok(send);
        }
        let page = self.depot().page(context)?;
        let send = SendContext::new(self.endpoint.device().again(), page)?;
        stats::objects().sends.inc();
        Ok(send)
    }

    /// Takes a Send context back, with what it holds.
    pub(crate) fn put_send(&self, mut send: Work<SendContext>) {
        if let Some(op) = send.take_op() {
            self.depot().put_op(op);
        }
        send.set_invalidate(None);
        stats::objects().sends.dec();
        self.keep_send(send);
    }

    fn keep_send(&self, send: Work<SendContext>) {
        let _ = self.idle_sends.lock().push_within_capacity(send);
    }
}

impl Xprt<Connection> {
    /// Ends a call. Asks for a thread if messages waited for room.
    pub(crate) fn end_call(&self, call: KBox<CallContext>) {
        self.depot().put_call(call);
        stats::objects().calls.dec();
        // CAST: A small constant.
        if self.calls.fetch_sub(1, Relaxed) == geometry::MAX_CALLS as i32 {
            self.enqueue();
        }
    }

    /// The peer's address, to print.
    pub(crate) fn peer_name(&self) -> impl fmt::Display + '_ {
        struct Name<'a>(&'a Xprt<Connection>);
        impl fmt::Display for Name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0.remote() {
                    Ok(addr) => f.write_fmt(fmt!("{} {}", self.0.endpoint.device().name(), addr)),
                    Err(_) => f.write_str("?"),
                }
            }
        }
        Name(self)
    }
}

impl QueueContext for Xprt<Connection> {
    fn queues(&self) -> &Queues {
        &self.queues
    }
}

impl ConnHandler for Xprt<Connection> {
    fn established(&self) {
        // A message may have come before.
        self.enqueue();
    }

    fn lost(&self, _why: Event) {
        self.deferred_close();
    }

    fn queue_error(&self) {
        self.deferred_close();
    }
}

impl Transport for Connection {
    const OPS: &'static svc::ops::Ops = &svc::connection::ops::<Self>();

    fn class() -> &'static Class {
        shared::class()
    }

    fn queue() -> Option<&'static Queue> {
        shared::get().map(|shared| shared.queue.queue())
    }

    fn detach(xprt: &Xprt<Self>, context: &Sleepable) {
        xprt.queues.sq.close();
        xprt.endpoint.disconnect(context);
    }

    fn teardown(xprt: &Xprt<Self>, context: &Sleepable) -> Result {
        xprt.shared.connections.remove(xprt, context);
        xprt.endpoint.drain(xprt, context)
    }
}

impl svc::connection::Connection for Connection {
    type Call = CallContext;

    fn has_wspace(xprt: &Xprt<Self>) -> bool {
        xprt.has_room() || xprt.inbox.has_reads()
    }

    fn recvfrom(
        xprt: &Xprt<Self>,
        rqst: &mut Rqst<Self>,
        busy: Busy<'_, Self>,
        context: &Sleepable,
    ) -> Received {
        let item = xprt.inbox.take(xprt, xprt.has_room());
        busy.release();
        match item {
            Some(Item::Message(message)) => recv::receive(xprt, rqst, message, context),
            Some(Item::ReadDone(read)) => read::finish(xprt, rqst, read, context),
            None => Received::NOTHING,
        }
    }

    fn sendto(xprt: &Xprt<Self>, rqst: &mut Rqst<Self>, context: &Sleepable) -> Result {
        reply::send(xprt, rqst, context)
    }

    fn result_payload(call: &mut CallContext, offset: u32, len: u32) -> Result {
        call.add_payload(offset, len)
    }

    fn release(xprt: &Xprt<Self>, call: KBox<CallContext>, _context: &Sleepable) {
        xprt.end_call(call);
    }
}
