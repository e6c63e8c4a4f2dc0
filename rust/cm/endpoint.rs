// SPDX-License-Identifier: GPL-2.0

//! A connection's id with the verbs objects built on it.
//!
//! The order in which they may go (queue pair, completion queue, protection domain, id, device) is
//! the order of the fields, and nothing outside can take one away.

use crate::{
    cm::{
        event::Event,
        pending::ConnId, //
    },
    ffi,
    ib::{
        client::DeviceGuard,
        cq::Cq,
        pd::{
            LocalKey,
            Pd, //
        },
        qp::{
            PostError,
            Qp,
            RecvWork,
            SendWork, //
        },
        sq::SqCredit,
        work::{
            Completion,
            QueueContext,
            Work, //
        }, //
    },
    kern::{
        context::Sleepable,
        place::Place, //
    },
    stats, //
};
use kernel::{
    error::to_result,
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};

/// What a connection does about events.
pub(crate) trait ConnHandler: QueueContext {
    /// The handshake is complete.
    fn established(&self);
    /// The connection is, or soon will be, of no use.
    fn lost(&self, why: Event);
    /// The queue pair failed.
    ///
    /// # Context
    ///
    /// Any, interrupts included: some drivers call this from their own interrupt handlers, so it
    /// takes no lock that others take with interrupts on.
    fn queue_error(&self);
}

/// The size of a connection's queues.
#[derive(Clone, Copy)]
pub(crate) struct Geometry {
    /// Receives posted at most.
    pub(crate) recv_depth: u32,
    /// Send Queue slots in use at most.
    pub(crate) send_depth: u32,
    /// Scatter/gather elements of a Send or RDMA Write.
    pub(crate) max_sge: u32,
    /// Scatter/gather elements of an RDMA Read.
    pub(crate) max_read_sge: u32,
}

/// What is answered to the peer.
pub(crate) struct AcceptParams<'a> {
    /// Private data of the answer.
    pub(crate) private_data: &'a [u8],
    /// RDMA Reads this end will have outstanding at a time.
    pub(crate) initiator_depth: u8,
    /// How often the peer retries a Send for which no Receive is posted; 7 is without end.
    pub(crate) rnr_retry_count: u8,
}

/// Everything of a connection that the RDMA core knows.
///
/// # Invariants
///
/// The id's queue pair is `qp`. The completion queue's context is the `C` that owns the endpoint; so
/// is the queue pair's, once the peer was answered.
pub(crate) struct Endpoint<C: ConnHandler> {
    // Dropped in this order.
    qp: Qp<C>,
    _cq: Cq<C>,
    pd: Arc<Pd>,
    id: ConnId,
    device: DeviceGuard,
    geometry: Geometry,
    lkey: LocalKey,
    place: Place<C>,
}

impl<C: ConnHandler> Endpoint<C> {
    /// Makes the verbs objects for `id`.
    ///
    /// # Errors
    ///
    /// What the device's driver returns.
    pub(crate) fn new(
        id: ConnId,
        device: DeviceGuard,
        place: Place<C>,
        geometry: Geometry,
        sleepable: &Sleepable,
    ) -> Result<Self> {
        let pd = Arc::new(Pd::alloc(&device, sleepable)?, GFP_KERNEL)?;
        // One entry more per queue, for the markers of `Qp::drain`.
        let send_wr = geometry.send_depth.checked_add(1).ok_or(EINVAL)?;
        let recv_wr = geometry.recv_depth.checked_add(1).ok_or(EINVAL)?;
        let entries = send_wr.checked_add(recv_wr).ok_or(EINVAL)?;
        let cq = Cq::alloc(&device, place, entries, sleepable)?;
        let mut attr: ffi::ib_qp_init_attr = pin_init::zeroed();
        attr.event_handler = Some(Self::queue_event);
        // `accept` sets the context: before it there is nothing that an event could be told to.
        attr.send_cq = cq.as_ptr();
        attr.recv_cq = cq.as_ptr();
        attr.sq_sig_type = ffi::ib_sig_type_IB_SIGNAL_REQ_WR;
        attr.qp_type = ffi::ib_qp_type_IB_QPT_RC;
        attr.cap.max_send_wr = send_wr;
        attr.cap.max_recv_wr = recv_wr;
        attr.cap.max_send_sge = geometry.max_sge;
        attr.cap.max_recv_sge = 1;
        // SAFETY: All objects are valid and of the same device.
        to_result(unsafe { ffi::rdma_create_qp(id.id().as_ptr(), pd.as_ptr(), &mut attr) })?;
        let lkey = pd.local_dma_lkey();
        // SAFETY: The id's queue pair was just made with a completion queue of context `C`, and
        // the order of the fields keeps the id alive.
        let qp = unsafe { Qp::from_id(id.id().as_non_null(), lkey) }?;
        stats::objects().endpoints.inc();
        // INVARIANT: Made so above.
        Ok(Self {
            qp,
            _cq: cq,
            pd,
            id,
            device,
            geometry,
            lkey,
            place,
        })
    }

    /// Answers the peer. From here on events go to `context`, which owns this endpoint.
    ///
    /// # Errors
    ///
    /// What `rdma_accept` returns; the peer is refused then, or when the id is destroyed. `EINVAL` for
    /// a context that is not the one the endpoint was made for, `ENOTCONN` if the peer gave up.
    pub(crate) fn accept(
        &self,
        context: &C,
        params: &AcceptParams<'_>,
        _sleepable: &Sleepable,
    ) -> Result {
        if !self.place.is_of(context) {
            return Err(EINVAL);
        }
        let id = self.id.id().as_ptr();
        let mut conn: ffi::rdma_conn_param = pin_init::zeroed();
        conn.private_data = params.private_data.as_ptr().cast();
        conn.private_data_len = u8::try_from(params.private_data.len())?;
        conn.initiator_depth = params.initiator_depth;
        conn.rnr_retry_count = params.rnr_retry_count;
        // SAFETY: The id is valid; no lock is held that its handlers take.
        unsafe { ffi::rdma_lock_handler(id) };
        // SAFETY: No handler runs while the lock is held.
        unsafe { (*id).context = self.place.as_ptr().cast_mut().cast() };
        // SAFETY: As above.
        unsafe { (*id).event_handler = Some(Self::event) };
        // SAFETY: By the invariant of `Place` the context owns this endpoint.
        unsafe { self.qp.set_event_context(self.place.as_ptr()) };
        let result = if self.id.has_ended() {
            // Its event came before the handler was changed.
            Err(ENOTCONN)
        } else {
            // SAFETY: The id is valid and its handler lock is held.
            to_result(unsafe { ffi::rdma_accept(id, &mut conn) })
        };
        // SAFETY: Locked above.
        unsafe { ffi::rdma_unlock_handler(id) };
        result
    }

    /// Posts a Receive; see [`Qp::post_recv`]. `context` owns this endpoint, else the work comes back.
    pub(crate) fn post_recv<T>(&self, context: &C, work: Work<T>) -> Result<(), Work<T>>
    where
        T: RecvWork + Completion<Context = C>,
    {
        if !self.place.is_of(context) {
            return Err(work);
        }
        self.qp.post_recv(context.queues(), work)
    }

    /// Posts a chain; see [`Qp::post_send`]. `context` owns this endpoint, else the work comes back.
    pub(crate) fn post_send<T>(
        &self,
        context: &C,
        work: Work<T>,
        credit: SqCredit<'_>,
    ) -> Result<(), PostError<T>>
    where
        T: SendWork + Completion<Context = C>,
    {
        if !self.place.is_of(context) {
            return Err(PostError::Rejected(work));
        }
        self.qp.post_send(context.queues(), work, credit)
    }

    /// Ends the connection: the queue pair goes to the error state and what is posted is flushed.
    pub(crate) fn disconnect(&self, _sleepable: &Sleepable) {
        // SAFETY: The id is valid; on one that is not connected the call does nothing.
        unsafe { ffi::rdma_disconnect(self.id.id().as_ptr()) };
    }

    /// Waits until nothing is posted any more; see [`Qp::drain`].
    pub(crate) fn drain(
        &self,
        context: &C,
        sleepable: &Sleepable,
        late: impl FnMut(u64),
    ) -> Result {
        self.qp.drain(context.queues(), sleepable, late)
    }

    /// The id.
    pub(crate) fn id(&self) -> &ConnId {
        &self.id
    }

    /// The device.
    pub(crate) fn device(&self) -> &DeviceGuard {
        &self.device
    }

    /// The queues' sizes.
    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The protection domain.
    pub(crate) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// The key for memory mapped for DMA.
    pub(crate) fn lkey(&self) -> LocalKey {
        self.lkey
    }

    /// # Safety
    ///
    /// Called by `rdma_cm` for an id that [`Endpoint::accept`] was called on.
    unsafe extern "C" fn event(id: *mut ffi::rdma_cm_id, event: *mut ffi::rdma_cm_event) -> c_int {
        // SAFETY: By the type invariant; the id is destroyed before its context.
        let context = unsafe { &*(*id).context.cast::<C>() };
        // SAFETY: The event is valid during the call.
        match unsafe { Event::from_raw(event) } {
            Event::Established => context.established(),
            Event::ConnectRequest => {}
            other => context.lost(other),
        }
        0
    }

    /// # Safety
    ///
    /// Called by the RDMA core for the queue pair of an endpoint.
    unsafe extern "C" fn queue_event(event: *mut ffi::ib_event, context: *mut c_void) {
        // SAFETY: Null until `accept`, then the context by the type invariant; the queue pair is
        // destroyed before it.
        let Some(context) = (unsafe { context.cast::<C>().as_ref() }) else {
            return;
        };
        // SAFETY: The event is valid during the call.
        match unsafe { (*event).event } {
            ffi::ib_event_type_IB_EVENT_COMM_EST
            | ffi::ib_event_type_IB_EVENT_PATH_MIG
            | ffi::ib_event_type_IB_EVENT_SQ_DRAINED
            | ffi::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED => {}
            _ => context.queue_error(),
        }
    }
}

impl<C: ConnHandler> Drop for Endpoint<C> {
    fn drop(&mut self) {
        stats::objects().endpoints.dec();
    }
}
