// SPDX-License-Identifier: GPL-2.0

//! Listeners, and the connections that wait on them.
//!
//! Locks: `Listener::waiting` and `Listener::id`, neither held while the other or a handler mutex
//! is taken.

use crate::{
    cm::{
        listen::{
            ConnRequest,
            Decision,
            ListenHandler,
            ListenId, //
        },
        pending::PendingConn, //
    },
    kern::{
        context::Sleepable,
        net::Net,
        place::Place,
        ring::Ring,
        sockaddr::SockAddr, //
    },
    ratelimited,
    stats::{
        self,
        Counted, //
    },
    svc::{
        self,
        class::Class,
        listener::{
            ListenerRef,
            Serv, //
        },
        xprt::{
            Flag,
            Transport,
            Xprt,
            XprtRef, //
        }, //
    },
    transport::{
        accept,
        connection::Connection,
        shared, //
    }, //
};
use kernel::{
    ffi::c_int,
    new_spinlock,
    prelude::*,
    sync::SpinLock,
    workqueue::Queue, //
};

/// Connections that may wait to be accepted; more are refused.
const MAX_WAITING: usize = 1024;

/// A listener's own state.
#[pin_data]
pub(crate) struct Listener {
    place: Place<Xprt<Listener>>,
    #[pin]
    id: SpinLock<ListenState>,
    /// `None` once detached: requests are refused then.
    #[pin]
    waiting: SpinLock<Option<Ring<PendingConn>>>,
    _counted: Counted,
}

/// Where the id is.
enum ListenState {
    /// It is being made.
    Starting,
    /// It listens.
    Listening(ListenId<Xprt<Listener>>),
    /// It is gone or somebody is destroying it.
    Ended,
}

impl Listener {
    /// Takes the id, so that its destruction is the caller's. No id follows.
    fn end(&self) -> Option<ListenId<Xprt<Listener>>> {
        let state = core::mem::replace(&mut *self.id.lock(), ListenState::Ended);
        match state {
            ListenState::Listening(id) => Some(id),
            ListenState::Starting | ListenState::Ended => None,
        }
    }
}

impl ListenHandler for Xprt<Listener> {
    fn connect_request<'e>(&self, request: ConnRequest<'e>) -> Decision<'e> {
        request.adopt(|conn| {
            let mut waiting = self.waiting.lock();
            match &mut *waiting {
                Some(ring) => ring.push(conn)?,
                None => return Err(conn),
            }
            self.set(Flag::Conn);
            drop(waiting);
            self.enqueue();
            Ok(())
        })
    }

    fn device_removed(&self) -> Option<ListenId<Self>> {
        // Without an id to destroy, detaching does not wait for this handler.
        let keep = self.try_ref()?;
        let id = self.end();
        if let (Some(_), Ok(addr)) = (&id, keep.local()) {
            pr_warn!("{addr}: the device of this listener is gone, and the listener with it\n");
        }
        if id.is_some() {
            self.deferred_close();
        }
        id
    }
}

impl Transport for Listener {
    const OPS: &'static svc::ops::Ops = &svc::listener::ops::<Self>();

    fn class() -> &'static Class {
        shared::class()
    }

    fn queue() -> Option<&'static Queue> {
        shared::get().map(|shared| shared.queue.queue())
    }

    fn detach(xprt: &Xprt<Self>, _context: &Sleepable) {
        // Both end here and not in teardown: another listener may be made for the address at once.
        drop(xprt.end());
        let waiting = xprt.waiting.lock().take();
        drop(waiting);
    }

    fn teardown(xprt: &Xprt<Self>, context: &Sleepable) -> Result {
        // A listener that sunrpc never had was not detached.
        Self::detach(xprt, context);
        Ok(())
    }
}

impl svc::listener::Listener for Listener {
    type Connection = Connection;
    /// Bit 31 is clear, and no other transport has the number.
    const IDENT: c_int = 0x7273;
    const MAX_PAYLOAD: u32 = 4 << 20;

    fn create(
        net: &Net,
        serv: Serv,
        addr: SockAddr<'_>,
        context: &Sleepable,
    ) -> Result<ListenerRef<Self>> {
        let xprt = Xprt::make(net, serv.as_ptr(), |place| {
            let ring = Ring::new(MAX_WAITING)?;
            Ok(try_pin_init!(Self {
                place,
                id <- new_spinlock!(ListenState::Starting, "svcrdma_rs::listener_id"),
                waiting <- new_spinlock!(Some(ring), "svcrdma_rs::listener_waiting"),
                _counted: Counted::new(&stats::objects().listeners),
            }? Error))
        })?;
        let listener = ListenerRef::new(xprt);
        let xprt = listener.xprt().ok_or(EINVAL)?;
        let backlog = c_int::try_from(MAX_WAITING)?;
        let id = ListenId::listen(net, addr, backlog, xprt.place, xprt, context);
        let id = id.inspect_err(|error| {
            pr_warn!("cannot listen on {addr}: {error:?}\n");
        })?;
        xprt.set_local(id.local_addr()?);
        let mut state = xprt.id.lock();
        if matches!(*state, ListenState::Starting) {
            *state = ListenState::Listening(id);
            drop(state);
            return Ok(listener);
        }
        // Its device went meanwhile. The id is destroyed outside the lock.
        drop(state);
        drop(id);
        Err(ENODEV)
    }

    fn accept(xprt: &Xprt<Self>, context: &Sleepable) -> Option<XprtRef<Connection>> {
        // Cleared before the look, so that a connection that comes after it sets the flag again.
        xprt.clear(Flag::Conn);
        let mut waiting = xprt.waiting.lock();
        let ring = (*waiting).as_mut()?;
        let pending = ring.pop();
        if !ring.is_empty() {
            xprt.set(Flag::Conn);
        }
        drop(waiting);
        let id = pending?.claim()?;
        match accept::accept(id, xprt, context) {
            Ok(accepted) => accepted.into_ref(),
            Err(error) => {
                stats::stats().refused.inc();
                ratelimited!(pr_info!("a connection was not accepted: {error:?}\n"));
                None
            }
        }
    }
}
