// SPDX-License-Identifier: GPL-2.0

//! A connection.
//!
//! Made in `xpo_accept` with everything it needs, so there is no half-built state. Detach moves its
//! queue pair to the error state; teardown, on the module's workqueue, waits for what is posted and
//! then lets it all go.

use crate::{
    cm::{
        endpoint::{
            ConnHandler,
            Endpoint, //
        },
        event::Event,
        pending::ConnId, //
    },
    ib::{
        client::DeviceGuard,
        qp::Queues,
        rdma::{
            RegisteredReads,
            Target, //
        },
        sq::SqCredit,
        work::{
            QueueContext,
            Work, //
        }, //
    },
    kern::{
        context::Sleepable,
        place::Place, //
    },
    proto::Limits,
    stats::{
        self,
        Counted, //
    },
    svc::{
        self,
        class::Class,
        connection::Busy,
        rqst::{
            Received,
            Rqst, //
        },
        xprt::{
            Flag,
            Transport,
            Xprt, //
        }, //
    },
    transport::{
        accept::Terms,
        assemble,
        call::CallContext,
        depot::Depot,
        geometry::{
            self,
            Reader, //
        },
        inbox::{
            Inbox,
            Item, //
        },
        read,
        recv,
        reply,
        send::SendContext,
        shared::{
            self,
            Shared, //
        },
        windows::Windows, //
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
            Full,
            Relaxed, //
        },
        SpinLock, //
    },
    workqueue::Queue, //
};

/// Send contexts kept when idle.
const MAX_IDLE_SENDS: usize = 32;

/// A connection's own state.
#[pin_data]
pub(crate) struct Connection {
    /// Memory regions go before their protection domain, once nothing is posted any more.
    #[pin]
    windows: Windows,
    /// After it nothing calls into the rest. The queue pair goes with it, before `queues`.
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
    reader: Reader,
    shared: &'static Shared,
    _counted: Counted,
}

impl Connection {
    /// The initializer of a connection at `place`, with its queues empty.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and what the device's driver returns.
    pub(super) fn new<'a>(
        place: Place<Xprt<Self>>,
        id: ConnId,
        device: DeviceGuard,
        terms: Terms,
        shared: &'static Shared,
        context: &'a Sleepable,
    ) -> Result<impl PinInit<Self, Error> + 'a> {
        let geometry = terms.geometry;
        let inbox = Inbox::new(
            usize::try_from(geometry.recv_depth)?,
            usize::try_from(geometry::MAX_CALLS)?,
        )?;
        let idle = KVec::with_capacity(MAX_IDLE_SENDS, GFP_KERNEL)?;
        let windows = Windows::new(match terms.reader {
            Reader::Local => 0,
            Reader::Registered { pages, .. } => pages,
        })?;
        Ok(try_pin_init!(Self {
            windows <- windows,
            queues <- Queues::new(geometry.send_depth),
            inbox <- inbox,
            idle_sends <- new_spinlock!(idle, "svcrdma_rs::idle_sends"),
            calls: Atomic::new(0),
            limits: terms.limits,
            inline_max: terms.inline_max,
            remote_inv: terms.remote_inv,
            max_seg_size: terms.max_seg_size,
            reader: terms.reader,
            shared,
            _counted: Counted::new(&stats::objects().connections),
            // Last: from here on the device may have something to say of its queue pair.
            endpoint: Endpoint::new(id, device, place, geometry, context)?,
        }? Error))
    }

    /// The RDMA side.
    pub(crate) fn endpoint(&self) -> &Endpoint<Xprt<Connection>> {
        &self.endpoint
    }

    /// The bookkeeping of the queues.
    pub(crate) fn queues(&self) -> &Queues {
        &self.queues
    }

    /// The windows for RDMA Reads into registered memory.
    pub(crate) fn windows(&self) -> &Windows {
        &self.windows
    }

    /// How RDMA Reads use windows, if they do.
    pub(crate) fn registered_reads(&self) -> Option<RegisteredReads> {
        match self.reader {
            Reader::Local => None,
            Reader::Registered {
                pages,
                read_inv,
                remote_write,
            } => Some(RegisteredReads {
                pages,
                read_inv,
                remote_write,
            }),
        }
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

    /// Whether one more call may begin.
    fn has_room(&self) -> bool {
        // CAST: A small constant.
        self.calls.load(Relaxed) < geometry::MAX_CALLS as i32
    }

    /// A Send context that is idle.
    pub(crate) fn idle_send(&self) -> Option<Work<SendContext>> {
        let mut send = self.idle_sends.lock().pop()?;
        send.set_in_use(true);
        Some(send)
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
        let mut send = SendContext::new(self.endpoint.device().again(), page, context)?;
        send.set_in_use(true);
        Ok(send)
    }

    /// Takes a Send context back, with what it holds.
    pub(crate) fn put_send(&self, mut send: Work<SendContext>) {
        if let Some(writes) = send.take_writes() {
            self.depot().put_writes(writes);
        }
        send.set_invalidate(None);
        send.set_in_use(false);
        self.keep_send(send);
    }

    /// Keeps an idle Send context, or frees it.
    pub(super) fn keep_send(&self, send: Work<SendContext>) {
        // Freed, if at all, after the lock is released.
        let refused = self.idle_sends.lock().push_within_capacity(send);
        drop(refused);
    }
}

impl Xprt<Connection> {
    /// Has the connection closed. Threads that wait for room on the Send Queue stop waiting: one
    /// of them may be needed to do it.
    ///
    /// # Context
    ///
    /// Any that may take spinlocks.
    pub(crate) fn close_soon(&self) {
        self.queues.sq.close();
        self.deferred_close();
    }

    /// Reserves slots of the Send Queue. While threads wait for some sunrpc sends no more; who
    /// waited asks for the next.
    ///
    /// # Errors
    ///
    /// See [`Sq::reserve`](crate::ib::sq::Sq::reserve).
    pub(crate) fn reserve_slots(&self, slots: u32, context: &Sleepable) -> Result<SqCredit<'_>> {
        let credit = self.queues.sq.reserve(slots, || !self.is_dead(), context)?;
        if credit.has_waited() && !self.queues.sq.has_waiters() {
            self.enqueue();
        }
        Ok(credit)
    }

    /// Ends a call. Asks for a thread if messages waited for room.
    pub(crate) fn end_call(&self, call: KBox<CallContext>) {
        self.depot().put_call(call);
        self.release_slot();
    }

    /// Takes room for one more call, if there is any. Only `recvfrom` does, while it is alone.
    fn take_slot(&self) -> Option<CallSlot<'_>> {
        self.has_room().then(|| {
            self.calls.add(1, Relaxed);
            CallSlot(self)
        })
    }

    fn release_slot(&self) {
        // ORDERING: The room must be seen before `svc_xprt_ready` looks, and this may be a completion
        // handler with nothing else in between; pairs with the barrier in `svc_xprt_ready`.
        // CAST: A small constant.
        if self.calls.fetch_sub(1, Full) == geometry::MAX_CALLS as i32 {
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

/// Room for one call, until the call that begins in it ends.
pub(crate) struct CallSlot<'a>(&'a Xprt<Connection>);

impl CallSlot<'_> {
    /// A context for a call that begins; [`Xprt::end_call`] gives the room back.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn begin(self, context: &Sleepable) -> Result<KBox<CallContext>> {
        let mut call = self.0.depot().call(context)?;
        call.set_in_use();
        core::mem::forget(self);
        Ok(call)
    }
}

impl Drop for CallSlot<'_> {
    fn drop(&mut self) {
        self.0.release_slot();
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
        self.close_soon();
    }

    fn queue_error(&self) {
        // Whoever waits for room on the Send Queue sees it at the next tick.
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
        xprt.endpoint.drain(xprt, context, |seconds| {
            pr_warn!("{}: still draining after {seconds} s\n", xprt.peer_name());
        })?;
        // Nobody comes for what is left.
        while let Some(item) = xprt.inbox.take(xprt, true) {
            if let Item::ReadDone(read) = item {
                read::discard(xprt, read);
            }
        }
        Ok(())
    }
}

impl svc::connection::Connection for Connection {
    type Call = CallContext;

    fn has_wspace(xprt: &Xprt<Self>) -> bool {
        // Calls that sunrpc deferred are among those that take the room.
        let useful = xprt.has_room() || xprt.inbox.has_reads() || xprt.is_set(Flag::Deferred);
        useful && !xprt.queues.sq.has_waiters()
    }

    fn recvfrom(
        xprt: &Xprt<Self>,
        rqst: &mut Rqst<Self>,
        busy: Busy<'_, Self>,
        context: &Sleepable,
    ) -> Received {
        let slot = xprt.take_slot();
        let item = xprt.inbox.take(xprt, slot.is_some());
        busy.release();
        match item {
            Some(Item::Message(message)) => match slot {
                Some(slot) => recv::receive(xprt, rqst, message, slot, context),
                None => Received::NOTHING,
            },
            Some(Item::ReadDone(read)) => assemble::finish(xprt, rqst, read, context),
            None => Received::NOTHING,
        }
    }

    fn sendto(xprt: &Xprt<Self>, rqst: &mut Rqst<Self>, context: &Sleepable) -> Result {
        reply::send(xprt, rqst, context)
    }

    fn result_payload(call: &mut CallContext, offset: u32, len: u32) {
        call.report(offset, len);
    }

    fn release(xprt: &Xprt<Self>, call: KBox<CallContext>, _context: &Sleepable) {
        xprt.end_call(call);
    }
}
