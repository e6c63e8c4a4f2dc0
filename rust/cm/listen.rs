// SPDX-License-Identifier: GPL-2.0

//! Listening ids and the requests that arrive on them.

use crate::{
    cm::{
        event::Event,
        id::Id,
        pending::{
            Pending,
            PendingConn, //
        }, //
    },
    ffi,
    kern::{
        context::Sleepable,
        net::Net,
        place::Place,
        sockaddr::SockAddr, //
    }, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::c_int,
    prelude::*, //
};

/// What a listener does about events.
///
/// Handlers run in process context and may sleep, with the id's handler mutex held.
pub(crate) trait ListenHandler: Sync + Sized + 'static {
    /// A peer asks for a connection.
    fn connect_request<'e>(&self, request: ConnRequest<'e>) -> Decision<'e>;

    /// The one device an address-bound listener was on goes. Gives up the id, or `None` if it is
    /// being destroyed already.
    fn device_removed(&self) -> Option<ListenId<Self>>;
}

/// A listening id with handler `H`.
pub(crate) struct ListenId<H: ListenHandler> {
    id: Id,
    _handler: PhantomData<fn(H)>,
}

impl<H: ListenHandler> ListenId<H> {
    /// Binds and listens. IPv6 listeners take no IPv4 connections, so both can share a port.
    ///
    /// # Errors
    ///
    /// `EADDRINUSE`, `EADDRNOTAVAIL`, `ENODEV` and whatever else `rdma_bind_addr` and
    /// `rdma_listen` return. `EINVAL` if `place` is not that of `handler`.
    pub(crate) fn listen(
        net: &Net,
        addr: SockAddr<'_>,
        backlog: c_int,
        place: Place<H>,
        handler: &H,
        _context: &Sleepable,
    ) -> Result<Self> {
        if !place.is_of(handler) {
            return Err(EINVAL);
        }
        // SAFETY: The namespace is alive; the handler is a function of this module, and its
        // context is initialized and outlives the id by the invariant of `Place`.
        let id = from_err_ptr(unsafe {
            ffi::__rdma_create_kernel_id(
                net.as_ptr(),
                Some(Self::event),
                place.as_ptr().cast_mut().cast(),
                ffi::rdma_ucm_port_space_RDMA_PS_TCP,
                ffi::ib_qp_type_IB_QPT_RC,
                crate::NAME.as_char_ptr(),
            )
        })?;
        // SAFETY: Just created, and owned by nobody else.
        let id = unsafe { Id::from_raw(NonNull::new(id).ok_or(ENOMEM)?) };
        if addr.is_ipv6() {
            // SAFETY: The id is valid.
            to_result(unsafe { ffi::rdma_set_afonly(id.as_ptr(), 1) })?;
        }
        // SAFETY: The id and the address are valid.
        to_result(unsafe { ffi::rdma_bind_addr(id.as_ptr(), addr.as_ptr()) })?;
        // SAFETY: The id is valid and bound.
        to_result(unsafe { ffi::rdma_listen(id.as_ptr(), backlog) })?;
        Ok(Self {
            id,
            _handler: PhantomData,
        })
    }

    /// The address bound, with the port that was chosen if none was asked for.
    pub(crate) fn local_addr(&self) -> Result<SockAddr<'_>> {
        self.id.local_addr()
    }

    /// # Safety
    ///
    /// Called by `rdma_cm` for an id made by [`ListenId::listen`], or for a new id that inherited
    /// its handler and context.
    unsafe extern "C" fn event(id: *mut ffi::rdma_cm_id, event: *mut ffi::rdma_cm_event) -> c_int {
        // SAFETY: The context is the handler, alive by the invariant of `Place`.
        let handler = unsafe { &*(*id).context.cast::<H>() };
        // SAFETY: The event is valid during the call.
        match unsafe { Event::from_raw(event) } {
            Event::ConnectRequest => {
                // SAFETY: For this event the id is a new one, ours unless we return non-zero.
                let request = unsafe { ConnRequest::from_raw(id, event) };
                handler.connect_request(request).0
            }
            Event::DeviceRemoval => match handler.device_removed() {
                Some(listen) => {
                    // The return value makes the RDMA core destroy the id.
                    listen.id.forget();
                    1
                }
                None => 0,
            },
            _ => 0,
        }
    }
}

/// What becomes of a request: made only by deciding about it.
#[must_use]
pub(crate) struct Decision<'e>(c_int, PhantomData<*mut &'e mut ()>);

/// A peer's request for a connection, during its event.
///
/// # Invariants
///
/// `id` and `event` are valid for `'e`, and the id has no owner.
pub(crate) struct ConnRequest<'e> {
    id: NonNull<ffi::rdma_cm_id>,
    event: NonNull<ffi::rdma_cm_event>,
    _lifetime: PhantomData<*mut &'e mut ()>,
}

impl<'e> ConnRequest<'e> {
    /// # Safety
    ///
    /// Inside the event handler of a connect request, with its two arguments.
    unsafe fn from_raw(id: *mut ffi::rdma_cm_id, event: *mut ffi::rdma_cm_event) -> Self {
        // INVARIANT: By this function's contract.
        // SAFETY: Arguments of an event handler are not null.
        let (id, event) = unsafe { (NonNull::new_unchecked(id), NonNull::new_unchecked(event)) };
        Self {
            id,
            event,
            _lifetime: PhantomData,
        }
    }

    fn private_data(&self) -> &[u8] {
        // SAFETY: Valid by the type invariant; a connect request carries connection parameters.
        let conn = unsafe { &(*self.event.as_ptr()).param.conn };
        if conn.private_data.is_null() {
            return &[];
        }
        // SAFETY: The core says how many bytes there are, valid during the event.
        unsafe {
            core::slice::from_raw_parts(conn.private_data.cast(), conn.private_data_len.into())
        }
    }

    /// Takes the id over; `keep` is given the connection and may hand it back to have the peer
    /// refused after all.
    pub(crate) fn adopt(
        self,
        keep: impl FnOnce(PendingConn) -> Result<(), PendingConn>,
    ) -> Decision<'e> {
        // SAFETY: As in `private_data`.
        let read_limit = unsafe { (*self.event.as_ptr()).param.conn.initiator_depth };
        let Ok(pending) = Pending::new(self.private_data(), read_limit) else {
            return self.refuse();
        };
        // SAFETY: By the type invariant the id is valid and has no owner; its handler mutex is
        // held, so no event for it runs.
        let conn = unsafe { Pending::adopt(pending, self.id) };
        match keep(conn) {
            Ok(()) => Decision(0, PhantomData),
            Err(conn) => {
                conn.surrender();
                Decision(1, PhantomData)
            }
        }
    }

    /// Refuses: the RDMA core tells the peer and destroys the id.
    pub(crate) fn refuse(self) -> Decision<'e> {
        Decision(1, PhantomData)
    }
}
