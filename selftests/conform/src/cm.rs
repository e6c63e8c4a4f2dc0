// SPDX-License-Identifier: GPL-2.0
//! Connection manager identifiers and their events.

use std::{
    io,
    net::SocketAddr,
    ptr,
    rc::Rc,
    time::{Duration, Instant},
};

use verbs_sys as sys;

use crate::memory::failed;

/// An event channel; identifiers keep it alive.
pub struct Channel(pub *mut sys::rdma_event_channel);

impl Channel {
    pub fn new() -> io::Result<Rc<Self>> {
        // SAFETY: no arguments.
        let channel = unsafe { sys::rdma_create_event_channel() };
        if channel.is_null() {
            return Err(failed("rdma_create_event_channel"));
        }
        // SAFETY: a descriptor of the channel just made.
        unsafe { libc::fcntl((*channel).fd, libc::F_SETFL, libc::O_NONBLOCK) };
        Ok(Rc::new(Self(channel)))
    }

    pub fn descriptor(&self) -> i32 {
        // SAFETY: the channel exists as long as self.
        unsafe { (*self.0).fd }
    }

    /// The next event, acknowledged.
    pub fn next(&self) -> Option<Event> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel exists; an event that is got is acknowledged once,
        // after everything of it was copied.
        unsafe {
            if sys::rdma_get_cm_event(self.0, &mut raw) != 0 {
                return None;
            }
            let from = &*raw;
            let conn = from.param.conn;
            let private = if conn.private_data.is_null() {
                Vec::new()
            } else {
                std::slice::from_raw_parts(
                    conn.private_data.cast::<u8>(),
                    conn.private_data_len.into(),
                )
                .to_vec()
            };
            let event = Event {
                id: from.id,
                kind: from.event,
                status: from.status,
                private,
                initiator_depth: conn.initiator_depth,
            };
            sys::rdma_ack_cm_event(raw);
            Some(event)
        }
    }

    pub fn wait(&self, until: Instant) -> Option<Event> {
        loop {
            if let Some(event) = self.next() {
                return Some(event);
            }
            if !poll(&[self.descriptor()], until) {
                return None;
            }
        }
    }

    pub fn expect(&self, kind: u32, limit: Duration) -> io::Result<Event> {
        match self.wait(Instant::now() + limit) {
            Some(event) if event.kind == kind => Ok(event),
            Some(event) => Err(io::Error::other(event.name())),
            None => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "no event of the connection manager",
            )),
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: every identifier on it is gone, they hold an Rc of it.
        unsafe { sys::rdma_destroy_event_channel(self.0) };
    }
}

/// Wait until a descriptor can be read; false when the time is over.
pub fn poll(descriptors: &[i32], until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    let mut set: Vec<_> = descriptors
        .iter()
        .map(|&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let millis = left.min(Duration::from_secs(3600)).as_millis() as i32;
    // SAFETY: the array is as long as said.
    unsafe { libc::poll(set.as_mut_ptr(), set.len() as libc::nfds_t, millis.max(1)) };
    true
}

/// What the connection manager said.
#[derive(Clone, Debug)]
pub struct Event {
    pub id: *mut sys::rdma_cm_id,
    pub kind: u32,
    pub status: i32,
    pub private: Vec<u8>,
    pub initiator_depth: u8,
}

impl Event {
    pub fn name(&self) -> String {
        // SAFETY: returns a constant string for any number.
        let name = unsafe { std::ffi::CStr::from_ptr(sys::rdma_event_str(self.kind)) };
        format!(
            "{} {}",
            name.to_string_lossy().trim_start_matches("RDMA_CM_EVENT_"),
            self.status
        )
    }
}

/// An identifier, on an event channel of its own.
pub struct Id {
    pub raw: *mut sys::rdma_cm_id,
    pub channel: Rc<Channel>,
}

impl Id {
    pub fn new(space: u32) -> io::Result<Self> {
        let channel = Channel::new()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the channel exists, and the identifier keeps it.
        if unsafe { sys::rdma_create_id(channel.0, &mut raw, ptr::null_mut(), space) } != 0 {
            return Err(failed("rdma_create_id"));
        }
        Ok(Self { raw, channel })
    }

    /// Take over the identifier of a connection request, onto a channel of its own.
    pub fn adopt(raw: *mut sys::rdma_cm_id) -> io::Result<Self> {
        let channel = Channel::new()?;
        // SAFETY: the identifier came with an event that is acknowledged.
        if unsafe { sys::rdma_migrate_id(raw, channel.0) } != 0 {
            return Err(failed("rdma_migrate_id"));
        }
        Ok(Self { raw, channel })
    }

    /// Find device and path to a server.
    pub fn resolve(&self, server: SocketAddr, limit: Duration) -> io::Result<()> {
        let mut address = Address::new(server);
        let millis = limit.as_millis() as i32;
        // SAFETY: the identifier and the address exist during the calls.
        unsafe {
            if sys::rdma_resolve_addr(self.raw, ptr::null_mut(), address.pointer(), millis) != 0 {
                return Err(failed("rdma_resolve_addr"));
            }
            self.expect(sys::RDMA_CM_EVENT_ADDR_RESOLVED, limit)?;
            if sys::rdma_resolve_route(self.raw, millis) != 0 {
                return Err(failed("rdma_resolve_route"));
            }
        }
        self.expect(sys::RDMA_CM_EVENT_ROUTE_RESOLVED, limit)?;
        Ok(())
    }

    pub fn expect(&self, kind: u32, limit: Duration) -> io::Result<Event> {
        self.channel.expect(kind, limit)
    }

    pub fn verbs(&self) -> *mut sys::ibv_context {
        // SAFETY: the identifier exists.
        unsafe { (*self.raw).verbs }
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: its queue pair is gone (Connection's drop) and no event of it is held.
        unsafe { sys::rdma_destroy_id(self.raw) };
    }
}

/// A socket address in C's form.
pub struct Address {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
    six: bool,
}

impl Address {
    pub fn new(address: SocketAddr) -> Self {
        // SAFETY: plain numbers, zero is valid.
        let (mut v4, mut v6): (libc::sockaddr_in, libc::sockaddr_in6) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        match address {
            SocketAddr::V4(a) => {
                v4.sin_family = libc::AF_INET as u16;
                v4.sin_port = a.port().to_be();
                v4.sin_addr.s_addr = u32::from(*a.ip()).to_be();
            }
            SocketAddr::V6(a) => {
                v6.sin6_family = libc::AF_INET6 as u16;
                v6.sin6_port = a.port().to_be();
                v6.sin6_addr.s6_addr = a.ip().octets();
                v6.sin6_scope_id = a.scope_id();
            }
        }
        Self {
            v4,
            v6,
            six: address.is_ipv6(),
        }
    }

    pub fn pointer(&mut self) -> *mut sys::sockaddr {
        if self.six {
            ptr::from_mut(&mut self.v6).cast()
        } else {
            ptr::from_mut(&mut self.v4).cast()
        }
    }
}
