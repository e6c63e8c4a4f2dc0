// SPDX-License-Identifier: GPL-2.0
//! One connection: queue pair, Receives, Sends of every kind, and what came of them.

use std::{
    collections::VecDeque,
    io, mem,
    net::SocketAddr,
    ptr,
    rc::Rc,
    time::{Duration, Instant},
};

use verbs_sys as sys;

use crate::{
    cm::{self, Channel, Id},
    frame::Segment,
    memory::{failed, Access, Domain, Region},
    private::Settings,
    send::Send,
    window::Window,
};

/// How to connect.
#[derive(Clone)]
pub struct Options {
    pub private: Vec<u8>,
    pub receives: usize,
    pub receive_size: usize,
    /// Reads (and atomics) of the server that may be under way: what the server
    /// may use as its depth. Zero means that it cannot read.
    pub responder_resources: u8,
    pub initiator_depth: u8,
    /// How often the server repeats what no Receive was there for. Of our own Sends the
    /// server's answer says so, if `own` does not.
    pub rnr_retry: u8,
    pub retry: u8,
    pub own: Option<Own>,
    pub port_space: u32,
    pub repost: bool,
    /// The Receives of these messages are lost.
    pub loses: Option<fn(&[u8]) -> bool>,
    /// Sends that may be under way.
    pub sends: usize,
}

/// What our queue pair is to do whatever the handshake says: a hostile client is not bound by it.
#[derive(Clone, Copy)]
pub struct Own {
    /// How often our Sends are repeated that no Receive was there for.
    pub rnr_retry: u8,
    /// Reads and atomics under way, in either direction.
    pub depth: u8,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            private: Settings {
                flags: 0,
                send: 3,
                receive: 3,
            }
            .encode(),
            receives: 40,
            receive_size: 16384,
            responder_resources: 16,
            initiator_depth: 0,
            rnr_retry: 0,
            retry: 6,
            own: None,
            port_space: sys::RDMA_PS_TCP,
            repost: true,
            loses: None,
            sends: 512,
        }
    }
}

/// Something that happened on a connection.
#[derive(Clone, Debug)]
pub enum Event {
    Received {
        bytes: Vec<u8>,
        invalidated: Option<u32>,
        immediate: bool,
    },
    Sent,
    /// A work request ended badly: our queue pair is in error.
    Failed(String),
    /// The server (or its end of the connection) closed it.
    Disconnected,
    Other(String),
}

pub struct Connection {
    pub domain: Rc<Domain>,
    pub peer: Vec<u8>,
    /// How many Reads and atomics of ours the peer allows at once.
    pub peer_depth: u8,
    pub dead: bool,
    options: Options,
    /// Elements of a Send at most.
    pieces: usize,
    queue: *mut sys::ibv_cq,
    completions: *mut sys::ibv_comp_channel,
    /// What all Receives go to, each to a slot of its own.
    receives: Option<Region>,
    windows: Vec<Window>,
    /// Work requests under way, with the memory they send from.
    sending: Vec<(u64, Option<Region>)>,
    /// Regions that were sent from, to be used again: registering one takes long.
    spare: Vec<Region>,
    sent: u64,
    inbox: VecDeque<Event>,
    id: Id,
}

impl Connection {
    pub fn connect(server: SocketAddr, options: &Options, limit: Duration) -> io::Result<Self> {
        let mut connection = Self::prepare(server, options, limit)?;
        connection.establish(limit)?;
        Ok(connection)
    }

    /// Everything but the request for the connection.
    pub fn prepare(server: SocketAddr, options: &Options, limit: Duration) -> io::Result<Self> {
        let id = Id::new(options.port_space)?;
        id.resolve(server, limit)?;
        Self::on(id, options)
    }

    /// Queue pair and Receives on an identifier that has a device.
    pub fn on(id: Id, options: &Options) -> io::Result<Self> {
        let domain = Domain::new(id.verbs())?;
        let mut this = Self {
            domain,
            peer: Vec::new(),
            peer_depth: 0,
            dead: false,
            options: options.clone(),
            pieces: 1,
            queue: ptr::null_mut(),
            completions: ptr::null_mut(),
            receives: None,
            windows: Vec::new(),
            sending: Vec::new(),
            spare: Vec::new(),
            sent: 0,
            inbox: VecDeque::new(),
            id,
        };
        // With iWARP it is the device that brings the queue pair up.
        if this.is_iwarp() {
            this.options.own = None;
        }
        // SAFETY: the context is the identifier's; what is made here is destroyed in drop().
        unsafe {
            this.completions = sys::ibv_create_comp_channel(this.id.verbs());
            if this.completions.is_null() {
                return Err(failed("ibv_create_comp_channel"));
            }
            libc::fcntl((*this.completions).fd, libc::F_SETFL, libc::O_NONBLOCK);
            let entries = (options.sends + options.receives + 64) as i32;
            this.queue = sys::ibv_create_cq(
                this.id.verbs(),
                entries,
                ptr::null_mut(),
                this.completions,
                0,
            );
            if this.queue.is_null() {
                return Err(failed("ibv_create_cq"));
            }
            sys::ibv_req_notify_cq(this.queue, 0);
            let mut attributes: sys::ibv_qp_init_attr = mem::zeroed();
            attributes.send_cq = this.queue;
            attributes.recv_cq = this.queue;
            attributes.qp_type = if options.port_space == sys::RDMA_PS_UDP {
                sys::IBV_QPT_UD
            } else {
                sys::IBV_QPT_RC
            };
            attributes.cap.max_send_wr = options.sends as u32;
            attributes.cap.max_recv_wr = options.receives.max(1) as u32;
            let mut device: sys::ibv_device_attr = mem::zeroed();
            if sys::ibv_query_device(this.id.verbs(), &mut device) != 0 {
                return Err(failed("ibv_query_device"));
            }
            attributes.cap.max_send_sge = device.max_sge.clamp(1, 16) as u32;
            this.pieces = attributes.cap.max_send_sge as usize;
            attributes.cap.max_recv_sge = 1;
            if sys::rdma_create_qp(this.id.raw, this.domain.0, &mut attributes) != 0 {
                return Err(failed("rdma_create_qp"));
            }
        }
        let size = options.receives * options.receive_size;
        this.receives = Some(Region::new(&this.domain, size, Access::Local, 0)?);
        for slot in 0..options.receives {
            this.post_receive(slot)?;
        }
        Ok(this)
    }

    fn parameters(&self) -> sys::rdma_conn_param {
        sys::rdma_conn_param {
            private_data: self.options.private.as_ptr().cast(),
            private_data_len: self.options.private.len() as u8,
            responder_resources: self.options.responder_resources,
            initiator_depth: self.options.initiator_depth,
            retry_count: self.options.retry,
            rnr_retry_count: self.options.rnr_retry,
            ..Default::default()
        }
    }

    pub fn request(&mut self) -> io::Result<()> {
        let mut parameters = self.parameters();
        // SAFETY: identifier and parameters exist during the call.
        if unsafe { sys::rdma_connect(self.id.raw, &mut parameters) } != 0 {
            return Err(failed("rdma_connect"));
        }
        Ok(())
    }

    /// Add to the private data.
    pub fn say(&mut self, more: &[u8]) {
        self.options.private.extend_from_slice(more);
    }

    pub fn accept(&mut self) -> io::Result<()> {
        let mut parameters = self.parameters();
        if self.options.own.is_some() {
            self.raise(sys::IBV_QPS_RTS)?;
            // SAFETY: the queue pair exists.
            parameters.qp_num = unsafe { (*self.qp()).qp_num };
        }
        let mut accept = |id| {
            // SAFETY: identifier and parameters exist during the call.
            unsafe { sys::rdma_accept(id, &mut parameters) }
        };
        let done = match self.options.own {
            Some(_) => self.without_qp(accept),
            None => accept(self.id.raw),
        };
        if done != 0 {
            return Err(failed("rdma_accept"));
        }
        Ok(())
    }

    pub fn establish(&mut self, limit: Duration) -> io::Result<()> {
        if self.options.own.is_some() {
            self.half_open(sys::IBV_QPS_RTS, limit)?;
            return self.complete_handshake();
        }
        self.request()?;
        let event = self.id.expect(sys::RDMA_CM_EVENT_ESTABLISHED, limit)?;
        self.peer_depth = event.initiator_depth;
        self.peer = event.private;
        Ok(())
    }

    /// Ask for a connection, and bring the queue pair to a state (RTR, RTS) when the server has
    /// answered, without telling the server so: establish() would.
    pub fn half_open(&mut self, state: sys::ibv_qp_state, limit: Duration) -> io::Result<()> {
        self.request()?;
        let channel = self.id.channel.clone();
        let answer =
            self.without_qp(|_| channel.expect(sys::RDMA_CM_EVENT_CONNECT_RESPONSE, limit))?;
        self.peer_depth = answer.initiator_depth;
        self.peer = answer.private;
        self.raise(state)
    }

    /// Bring the queue pair to a state, with what was agreed upon, or Options::own.
    fn raise(&mut self, state: sys::ibv_qp_state) -> io::Result<()> {
        for next in [sys::IBV_QPS_INIT, sys::IBV_QPS_RTR, sys::IBV_QPS_RTS] {
            let mut attributes = sys::ibv_qp_attr {
                qp_state: next,
                ..Default::default()
            };
            let mut mask = 0;
            // SAFETY: identifier and attributes exist during the call.
            if unsafe { sys::rdma_init_qp_attr(self.id.raw, &mut attributes, &mut mask) } != 0 {
                return Err(failed("rdma_init_qp_attr"));
            }
            if let Some(own) = self.options.own {
                attributes.rnr_retry = own.rnr_retry;
                attributes.max_rd_atomic = attributes.max_rd_atomic.max(own.depth);
                attributes.max_dest_rd_atomic = attributes.max_dest_rd_atomic.max(own.depth);
                if own.depth > 0 {
                    attributes.qp_access_flags |=
                        sys::IBV_ACCESS_REMOTE_READ | sys::IBV_ACCESS_REMOTE_ATOMIC;
                }
            }
            // SAFETY: queue pair and attributes exist during the call.
            if unsafe { sys::ibv_modify_qp(self.qp(), &mut attributes, mask) } != 0 {
                return Err(failed("ibv_modify_qp"));
            }
            if next == state {
                break;
            }
        }
        Ok(())
    }

    /// After half_open(): now tell the server.
    pub fn complete_handshake(&mut self) -> io::Result<()> {
        let done = self.without_qp(|id| {
            // SAFETY: the identifier exists.
            unsafe { sys::rdma_establish(id) }
        });
        if done != 0 {
            return Err(failed("rdma_establish"));
        }
        Ok(())
    }

    /// librdmacm does more by itself with an identifier that has a queue pair.
    fn without_qp<T>(&mut self, act: impl FnOnce(*mut sys::rdma_cm_id) -> T) -> T {
        let (id, qp) = (self.id.raw, self.qp());
        // SAFETY: the identifier exists; its queue pair is put back before anything else needs it.
        unsafe { (*id).qp = ptr::null_mut() };
        let result = act(id);
        // SAFETY: as above.
        unsafe { (*id).qp = qp };
        result
    }

    pub fn is_iwarp(&self) -> bool {
        // SAFETY: the identifier has a device.
        unsafe { (*(*self.id.verbs()).device).transport_type == sys::IBV_TRANSPORT_IWARP }
    }

    fn qp(&self) -> *mut sys::ibv_qp {
        // SAFETY: the identifier exists.
        unsafe { (*self.id.raw).qp }
    }

    fn post_receive(&mut self, slot: usize) -> io::Result<()> {
        let region = self.receives.as_ref().expect("made with the queue pair");
        let mut element = sys::ibv_sge {
            addr: region.address() + (slot * self.options.receive_size) as u64,
            length: self.options.receive_size as u32,
            lkey: region.local_key(),
        };
        let mut request = sys::ibv_recv_wr {
            wr_id: slot as u64,
            sg_list: &mut element,
            num_sge: 1,
            ..Default::default()
        };
        let mut bad = ptr::null_mut();
        // SAFETY: the region lives as long as the queue pair.
        match unsafe { sys::ibv_post_recv(self.qp(), &mut request, &mut bad) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send_as(bytes, Send::Plain, 1)
    }

    /// Post one work request; the bytes are spread over `pieces` elements, or as many as the device takes.
    pub fn send_as(&mut self, bytes: &[u8], kind: Send, pieces: usize) -> io::Result<()> {
        let fitting = self.spare.iter().position(|r| r.len() >= bytes.len());
        let mut region = match fitting {
            Some(index) => self.spare.swap_remove(index),
            None => Region::new(&self.domain, bytes.len().max(4096), Access::Local, 0)?,
        };
        region.fill(0, bytes);
        let step = bytes.len().div_ceil(pieces.clamp(1, self.pieces)).max(1);
        let mut elements: Vec<_> = (0..bytes.len())
            .step_by(step)
            .map(|from| sys::ibv_sge {
                addr: region.address() + from as u64,
                length: step.min(bytes.len() - from) as u32,
                lkey: region.local_key(),
            })
            .collect();
        // SAFETY: zero is valid for all fields, unions included.
        let mut request: sys::ibv_send_wr = unsafe { mem::zeroed() };
        request.wr_id = 1 << 32 | self.sent;
        request.sg_list = elements.as_mut_ptr();
        request.num_sge = elements.len() as i32;
        request.send_flags = sys::IBV_SEND_SIGNALED;
        request.opcode = sys::IBV_WR_SEND;
        kind.apply(&mut request);
        let mut bad = ptr::null_mut();
        // SAFETY: the region is kept in `sending` until the request has completed.
        let error = unsafe { sys::ibv_post_send(self.qp(), &mut request, &mut bad) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        self.sent += 1;
        self.sending.push((request.wr_id, Some(region)));
        Ok(())
    }

    /// RDMA Read into a region, which has to be kept until nothing is outstanding.
    pub fn fetch(&mut self, into: &Region, at: usize, from: &Segment) -> io::Result<()> {
        let mut element = sys::ibv_sge {
            addr: into.address() + at as u64,
            length: from.length,
            lkey: into.local_key(),
        };
        // SAFETY: zero is valid for all fields, unions included.
        let mut request: sys::ibv_send_wr = unsafe { mem::zeroed() };
        request.wr_id = 1 << 32 | self.sent;
        request.sg_list = &mut element;
        request.num_sge = 1;
        request.send_flags = sys::IBV_SEND_SIGNALED;
        let kind = Send::Read {
            key: from.handle,
            address: from.offset,
        };
        kind.apply(&mut request);
        let mut bad = ptr::null_mut();
        // SAFETY: a region that is gone is withdrawn from the device first.
        let error = unsafe { sys::ibv_post_send(self.qp(), &mut request, &mut bad) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        self.sent += 1;
        self.sending.push((request.wr_id, None));
        Ok(())
    }

    /// Work requests that have not ended.
    pub fn outstanding(&self) -> usize {
        self.sending.len()
    }

    /// Bind a memory window, which lives as long as the connection.
    pub fn bind(&mut self, window: Window, mut request: sys::ibv_send_wr) -> io::Result<()> {
        request.wr_id = 1 << 32 | self.sent;
        let mut bad = ptr::null_mut();
        self.windows.push(window);
        // SAFETY: the window is kept; Sends behind it wait for the binding.
        let error = unsafe { sys::ibv_post_send(self.qp(), &mut request, &mut bad) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        self.sent += 1;
        self.sending.push((request.wr_id, None));
        Ok(())
    }

    /// The next event, waiting for it until then.
    pub fn next(&mut self, until: Instant) -> Option<Event> {
        loop {
            if let Some(event) = self.inbox.pop_front() {
                return Some(event);
            }
            self.harvest();
            if !self.inbox.is_empty() {
                continue;
            }
            // SAFETY: the queue exists. Armed first, looked at again, then slept.
            unsafe { sys::ibv_req_notify_cq(self.queue, 0) };
            self.harvest();
            if !self.inbox.is_empty() {
                continue;
            }
            // SAFETY: the completion channel exists.
            let completions = unsafe { (*self.completions).fd };
            if !cm::poll(&[completions, self.id.channel.descriptor()], until) {
                return None;
            }
            let (mut queue, mut context) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the channel is non-blocking; each event got is acknowledged.
            while unsafe { sys::ibv_get_cq_event(self.completions, &mut queue, &mut context) } == 0
            {
                // SAFETY: one event of this queue.
                unsafe { sys::ibv_ack_cq_events(queue, 1) };
            }
        }
    }

    /// Collect completions, then what the connection manager says (in this order:
    /// a message that was received before a disconnect counts).
    fn harvest(&mut self) {
        let mut wc: [sys::ibv_wc; 16] = Default::default();
        loop {
            // SAFETY: room for 16.
            let count = unsafe { sys::ibv_poll_cq(self.queue, 16, wc.as_mut_ptr()) };
            if count <= 0 {
                break;
            }
            for completion in &wc[..count as usize] {
                self.complete(completion);
            }
        }
        while let Some(event) = self.id.channel.next() {
            // A server that closes before it has seen our last word of the
            // handshake says so with a rejection.
            let ends = [sys::RDMA_CM_EVENT_DISCONNECTED, sys::RDMA_CM_EVENT_REJECTED];
            if ends.contains(&event.kind) {
                self.dead = true;
                self.inbox.push_back(Event::Disconnected);
            } else if event.kind != sys::RDMA_CM_EVENT_TIMEWAIT_EXIT {
                self.inbox.push_back(Event::Other(event.name()));
            }
        }
    }

    fn complete(&mut self, wc: &sys::ibv_wc) {
        let of_send = wc.wr_id >> 32 != 0;
        if of_send {
            if let Some(at) = self.sending.iter().position(|(id, _)| *id == wc.wr_id) {
                self.spare.extend(self.sending.swap_remove(at).1);
            }
        }
        if wc.status != sys::IBV_WC_SUCCESS {
            // SAFETY: returns a constant string for any number.
            let text = unsafe { std::ffi::CStr::from_ptr(sys::ibv_wc_status_str(wc.status)) };
            self.dead = true;
            if wc.status != sys::IBV_WC_WR_FLUSH_ERR
                || !self.inbox.iter().any(|e| matches!(e, Event::Failed(_)))
            {
                let what = if of_send { "send" } else { "receive" };
                self.inbox
                    .push_back(Event::Failed(format!("{what}: {}", text.to_string_lossy())));
            }
            return;
        }
        if of_send {
            self.inbox.push_back(Event::Sent);
            return;
        }
        let slot = wc.wr_id as usize;
        let flags = wc.wc_flags;
        // rxe has the kernel's value of the flag, which is this one here; connections have no other use for it.
        let with_key = sys::IBV_WC_WITH_INV | sys::IBV_WC_IP_CSUM_OK;
        // SAFETY: either member is a plain word.
        let invalidated =
            (flags & with_key != 0).then(|| unsafe { wc.__bindgen_anon_1.invalidated_rkey });
        let bytes = self
            .receives
            .as_ref()
            .expect("made with the queue pair")
            .bytes(slot * self.options.receive_size, wc.byte_len as usize);
        let lost = self.options.loses.is_some_and(|loses| loses(&bytes));
        self.inbox.push_back(Event::Received {
            bytes,
            invalidated,
            immediate: flags & sys::IBV_WC_WITH_IMM != 0,
        });
        if self.options.repost && !lost {
            let _ = self.post_receive(slot);
        }
    }

    /// Whether the server may send something like this here.
    pub fn vet(&self, len: usize, invalidated: bool, immediate: bool) -> Result<(), String> {
        let (mine, theirs) = (&self.options.private, &self.peer);
        let threshold = Settings::threshold(mine, theirs);
        if len > threshold {
            return Err(format!(
                "a Send of {len} bytes, the threshold is {threshold}"
            ));
        }
        if immediate {
            return Err("a Send with immediate data".into());
        }
        if invalidated && !(Settings::invalidates(mine) && Settings::invalidates(theirs)) {
            return Err(
                "Send with Invalidate, and not both sides have said that they support it".into(),
            );
        }
        Ok(())
    }

    pub fn region(&self, len: usize) -> io::Result<Region> {
        Region::new(&self.domain, len, Access::ReadWrite, 0)
    }

    /// Let go at once: the connection manager tells the server.
    pub fn disconnect(&mut self) {
        // SAFETY: the identifier exists.
        unsafe { sys::rdma_disconnect(self.id.raw) };
    }

    /// Only break our queue pair; the server has to find out.
    pub fn break_queue(&mut self) {
        let mut attributes = sys::ibv_qp_attr {
            qp_state: sys::IBV_QPS_ERR,
            ..Default::default()
        };
        // SAFETY: the queue pair exists.
        unsafe { sys::ibv_modify_qp(self.qp(), &mut attributes, sys::IBV_QP_STATE as i32) };
    }

    /// Whether the server closes the connection until then; nothing is said to it.
    pub fn ends(&mut self, until: Instant) -> bool {
        loop {
            match self.next(until) {
                Some(Event::Disconnected) => return true,
                Some(_) => {}
                None => return false,
            }
        }
    }

    /// Whether our queue pair has what Options::own says.
    pub fn unbound(&self) -> bool {
        self.options.own.is_some()
    }

    pub fn cm_channel(&self) -> &Rc<Channel> {
        &self.id.channel
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // rxe does not let a queue pair go that windows are bound to.
        self.windows.clear();
        // SAFETY: in the order of dependence; the identifier goes last (a field),
        // regions after the queue pair that uses them.
        unsafe {
            if !self.qp().is_null() {
                sys::rdma_disconnect(self.id.raw);
                sys::rdma_destroy_qp(self.id.raw);
            }
            if !self.queue.is_null() {
                sys::ibv_destroy_cq(self.queue);
            }
            if !self.completions.is_null() {
                sys::ibv_destroy_comp_channel(self.completions);
            }
        }
    }
}
