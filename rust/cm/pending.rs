// SPDX-License-Identifier: GPL-2.0

//! Connections that were asked for and not yet accepted.
//!
//! The id's context is the [`Pending`], kept alive by the [`ConnId`] that owns the id. Whoever takes
//! the `ConnId` out of it under the lock is the owner: the thread that accepts, or the handler of
//! a device removal.
//!
//! Locks: `Pending::id`.

use crate::{
    cm::{
        event::Event,
        id::Id, //
    },
    ffi,
    ib::device::Device,
    kern::sockaddr::SockAddr, //
};
use core::ptr::NonNull;
use kernel::{
    ffi::c_int,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

/// Private data of a request that IB carries; iWARP may carry more, which is cut off.
const MAX_PRIVATE_DATA: usize = 56;

/// What is known of a peer that asks for a connection.
#[pin_data]
pub(crate) struct Pending {
    private_data: [u8; MAX_PRIVATE_DATA],
    private_len: usize,
    read_limit: u8,
    ended: Atomic<bool>,
    #[pin]
    id: SpinLock<Option<ConnId>>,
}

/// The id of a connection.
///
/// # Invariants
///
/// The id's context is `pending`, or what [`super::endpoint::Endpoint::accept`] put there.
pub(crate) struct ConnId {
    /// Destroyed first: events may use `pending` until then.
    id: Id,
    pending: Arc<Pending>,
}

/// The right to claim a pending connection. Dropped unclaimed, it refuses the peer.
pub(crate) struct PendingConn(Arc<Pending>);

impl Pending {
    pub(super) fn new(private_data: &[u8], read_limit: u8) -> Result<Arc<Self>> {
        let mut copy = [0u8; MAX_PRIVATE_DATA];
        let private_len = private_data.len().min(MAX_PRIVATE_DATA);
        for (to, from) in copy.iter_mut().zip(private_data) {
            *to = *from;
        }
        Arc::pin_init(
            pin_init!(Self {
                private_data: copy,
                private_len,
                read_limit,
                ended: Atomic::new(false),
                id <- new_spinlock!(None, "svcrdma_rs::pending_id"),
            }),
            GFP_KERNEL,
        )
    }

    /// Makes `this` the owner of `id`.
    ///
    /// # Safety
    ///
    /// `id` is valid, has no other owner, and no handler of it runs.
    pub(super) unsafe fn adopt(this: Arc<Self>, id: NonNull<ffi::rdma_cm_id>) -> PendingConn {
        let context: *const Self = &*this;
        // SAFETY: Valid and not in use by this function's contract.
        unsafe { (*id.as_ptr()).context = context.cast_mut().cast() };
        // SAFETY: As above.
        unsafe { (*id.as_ptr()).event_handler = Some(Self::event) };
        // INVARIANT: The context was just set.
        // SAFETY: Ours by this function's contract.
        let id = unsafe { Id::from_raw(id) };
        *this.id.lock() = Some(ConnId {
            id,
            pending: this.clone(),
        });
        PendingConn(this)
    }

    /// # Safety
    ///
    /// Called by `rdma_cm` for an id whose context is a `Pending`.
    unsafe extern "C" fn event(id: *mut ffi::rdma_cm_id, event: *mut ffi::rdma_cm_event) -> c_int {
        // SAFETY: The invariant of `ConnId` keeps the context alive until the id is destroyed.
        let pending = unsafe { &*(*id).context.cast::<Self>() };
        // SAFETY: The event is valid during the call.
        match unsafe { Event::from_raw(event) } {
            Event::DeviceRemoval => {
                let taken = pending.id.lock().take();
                match taken {
                    Some(conn_id) => {
                        conn_id.surrender();
                        1
                    }
                    // Claimed: the claimer destroys it.
                    None => 0,
                }
            }
            Event::Disconnected | Event::Failed | Event::AddrChange => {
                pending.ended.store(true, Relaxed);
                0
            }
            _ => 0,
        }
    }
}

impl PendingConn {
    /// Takes the id, unless its device went or the peer gave up meanwhile.
    pub(crate) fn claim(self) -> Option<ConnId> {
        let id = self.0.id.lock().take();
        if self.0.ended.load(Relaxed) {
            return None;
        }
        id
    }

    /// Gives the id back to the RDMA core, whose event handler this is called in.
    pub(super) fn surrender(self) {
        let taken = self.0.id.lock().take();
        if let Some(conn_id) = taken {
            conn_id.surrender();
        }
    }
}

impl Drop for PendingConn {
    fn drop(&mut self) {
        // Ends the cycle between `Pending` and `ConnId`; the id goes outside the lock.
        let id = self.0.id.lock().take();
        drop(id);
    }
}

impl ConnId {
    /// Forgets the id without destroying it: its event handler's return value does that.
    fn surrender(self) {
        self.id.forget();
    }

    /// Whether the peer gave up before it was answered.
    pub(super) fn has_ended(&self) -> bool {
        self.pending.ended.load(Relaxed)
    }

    /// The id, for the endpoint built on it.
    pub(super) fn id(&self) -> &Id {
        &self.id
    }

    /// The port of the device the connection is on.
    pub(crate) fn port(&self) -> u32 {
        self.id.port()
    }

    /// The device the connection is on.
    pub(crate) fn device(&self) -> Option<&Device> {
        self.id.device()
    }

    /// The peer's private data. On IB it is padded with zeros.
    pub(crate) fn private_data(&self) -> &[u8] {
        self.pending
            .private_data
            .get(..self.pending.private_len)
            .unwrap_or(&[])
    }

    /// RDMA Reads the peer can serve at a time.
    pub(crate) fn read_limit(&self) -> u8 {
        self.pending.read_limit
    }

    /// The address of this end.
    pub(crate) fn local_addr(&self) -> Result<SockAddr<'_>> {
        self.id.local_addr()
    }

    /// The address of the peer.
    pub(crate) fn peer_addr(&self) -> Result<SockAddr<'_>> {
        self.id.peer_addr()
    }
}
