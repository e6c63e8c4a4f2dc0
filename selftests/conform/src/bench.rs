// SPDX-License-Identifier: GPL-2.0
//! What one case works with: a connection, memory with canaries, and the evidence.

use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::{
    answers::{Answers, Next},
    connection::{Connection, Event, Options},
    explain::{explain, is_call, Seen},
    frame::{hex, Lists, Segment},
    memory::{Access, Region, GUARD},
    message::Message,
    outcome::{Accept, Outcome, BROKEN, DROP},
    private::Settings,
    rpc::Call,
    send::Send,
    window::Window,
    world::World,
};

/// Units of silence after which a message counts as dropped, if a probe is answered then.
const GRACE: u32 = 8;

pub struct Bench<'w> {
    pub world: &'w mut World,
    pub accept: Accept,
    pub evidence: Vec<Value>,
    /// Calls of the reverse direction that came meanwhile.
    pub reverse: Vec<Vec<u8>>,
    /// Keys that the server has invalidated.
    pub invalidated: Vec<u32>,
    connection: Option<Connection>,
    options: Options,
    threshold: usize,
    regions: Vec<(Region, Vec<u8>)>,
    writable: Vec<Segment>,
}

impl<'w> Bench<'w> {
    pub fn new(world: &'w mut World, accept: Accept, connection: Option<Connection>) -> Self {
        let options = Options::default();
        let mut bench = Self {
            world,
            accept,
            evidence: Vec::new(),
            reverse: Vec::new(),
            invalidated: Vec::new(),
            connection,
            options,
            threshold: 4096,
            regions: Vec::new(),
            writable: Vec::new(),
        };
        bench.set_threshold();
        bench
    }

    fn set_threshold(&mut self) {
        let mine =
            Settings::find(&self.options.private).map_or(1024, |s| Settings::bytes(s.receive));
        let peer = self
            .connection
            .as_ref()
            .and_then(|c| Settings::find(&c.peer));
        self.threshold = mine.min(peer.map_or(1024, |s| Settings::bytes(s.send)));
    }

    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// What the server takes at most in one Send.
    pub fn call_limit(&mut self) -> Result<usize, String> {
        let peer = Settings::find(&self.connection()?.peer);
        Ok(peer.map_or(1024, |s| Settings::bytes(s.receive)))
    }

    pub fn connection(&mut self) -> Result<&mut Connection, String> {
        if self.connection.is_none() {
            self.reconnect(&Options::default())?;
        }
        Ok(self.connection.as_mut().expect("just made"))
    }

    /// Close the connection and open one with other settings. Memory goes with it.
    pub fn reconnect(&mut self, options: &Options) -> Result<(), String> {
        self.close()?;
        self.note(
            "cm",
            format!("connect, private data {}", hex(&options.private)),
        );
        let made = self.world.connect(options)?;
        self.note(
            "cm",
            format!(
                "established, private data {}",
                hex(&made.peer[..made.peer.len().min(64)])
            ),
        );
        self.connection = Some(made);
        self.options = options.clone();
        self.set_threshold();
        Ok(())
    }

    /// Let the connection and its memory go, after a look at the canaries.
    pub fn close(&mut self) -> Result<(), String> {
        let intact = self.canaries();
        self.regions.clear();
        self.writable.clear();
        self.connection = None;
        intact
    }

    pub fn note(&mut self, kind: &str, text: String) {
        self.evidence.push(json!({ kind: text }));
    }

    // Memory

    pub fn region(&mut self, len: usize) -> Result<usize, String> {
        self.region_at(len, Access::ReadWrite, 0)
    }

    pub fn region_at(
        &mut self,
        len: usize,
        access: Access,
        page_offset: usize,
    ) -> Result<usize, String> {
        let domain = self.connection()?.domain.clone();
        Ok(self.keep(Region::new(&domain, len, access, page_offset).map_err(|e| e.to_string())?))
    }

    /// Registered to the byte: the device refuses what goes beyond.
    pub fn region_exact(&mut self, len: usize, access: Access) -> Result<usize, String> {
        let domain = self.connection()?.domain.clone();
        Ok(self.keep(Region::exact(&domain, len, access, 0).map_err(|e| e.to_string())?))
    }

    /// Memory behind a key that the server can invalidate.
    pub fn window(&mut self, len: usize) -> Result<Segment, String> {
        let index = self.region_at(len, Access::Windowed, 0)?;
        let domain = self.connection()?.domain.clone();
        let window = Window::new(&domain).map_err(|e| e.to_string())?;
        let region = &mut self.regions[index].0;
        let (request, key) = window.bind(region);
        region.windows.push(key);
        let segment = Segment {
            handle: key,
            ..region.segment(0, len)
        };
        let connection = self.connection()?;
        connection
            .bind(window, request)
            .map_err(|e| format!("bind: {e}"))?;
        Ok(segment)
    }

    /// Take a region over; its content now is what has to stay.
    pub fn keep(&mut self, region: Region) -> usize {
        let before = region.snapshot();
        self.regions.push((region, before));
        self.regions.len() - 1
    }

    pub fn get(&mut self, region: usize) -> &mut Region {
        &mut self.regions[region].0
    }

    pub fn segment(&self, region: usize, offset: usize, len: usize) -> Segment {
        self.regions[region].0.segment(offset, len)
    }

    pub fn fill(&mut self, region: usize, offset: usize, data: &[u8]) {
        let (region, before) = &mut self.regions[region];
        region.fill(offset, data);
        before[GUARD + offset..GUARD + offset + data.len()].copy_from_slice(data);
    }

    /// A chunk of one region per segment, each with a key and canaries of its own.
    pub fn chunk(&mut self, lengths: &[usize]) -> Result<Vec<Segment>, String> {
        lengths
            .iter()
            .map(|&len| {
                let region = self.region(len)?;
                Ok(self.segment(region, 0, len))
            })
            .collect()
    }

    /// As chunk(), with this data in it.
    pub fn source(&mut self, data: &[u8], lengths: &[usize]) -> Result<Vec<Segment>, String> {
        let mut from = 0;
        lengths
            .iter()
            .map(|&len| {
                let region = self.region(len)?;
                let to = (from + len).min(data.len());
                self.fill(region, 0, &data[from.min(to)..to]);
                from = to;
                Ok(self.segment(region, 0, len))
            })
            .collect()
    }

    /// Segments next to each other in one region, all with its key.
    pub fn slices(&mut self, count: usize, len: usize) -> Result<Vec<Segment>, String> {
        let region = self.region(count * len)?;
        Ok((0..count)
            .map(|i| self.segment(region, i * len, len))
            .collect())
    }

    /// Bytes outside what the server was allowed to write must not have changed.
    pub fn canaries(&self) -> Result<(), String> {
        for (region, before) in &self.regions {
            if let Some(at) = region.spoilt(before, &self.writable) {
                return Err(format!(
                    "memory outside the advertised or reported ranges was written: offset {at} of a region of {}",
                    region.len()
                ));
            }
        }
        Ok(())
    }

    // Messages

    pub fn xid(&mut self) -> u32 {
        self.world.xid()
    }

    /// Give a call its XID.
    pub fn number(&mut self, call: Call) -> Call {
        let xid = self.xid();
        call.xid(xid)
    }

    pub fn post(&mut self, message: &Message) -> Result<(), String> {
        self.post_as(message, Send::Plain, 1)
    }

    pub fn post_as(&mut self, message: &Message, kind: Send, pieces: usize) -> Result<(), String> {
        self.note("sent", hex(&message.bytes));
        self.connection()?
            .send_as(&message.bytes, kind, pieces)
            .map_err(|e| format!("send: {e}"))
    }

    /// Send and see what comes of it.
    pub fn ask(&mut self, message: &Message) -> Result<Seen, String> {
        self.post(message)?;
        self.answer(message)
    }

    /// A call inline without lists that has to succeed.
    pub fn must(&mut self, call: Call) -> Result<Seen, String> {
        let call = self.number(call);
        let seen = self.ask(&Message::inline(&call, Lists::default()))?;
        if seen.outcome == Outcome::Ok {
            Ok(seen)
        } else {
            Err(format!("a plain call: {}", seen.describe()))
        }
    }

    /// What an answer says.
    pub fn understand(&mut self, bytes: &[u8], sent: &Message) -> Result<Seen, String> {
        let regions = &self.regions;
        let seen = explain(bytes, sent, &|s| regions.iter().find_map(|(r, _)| r.at(s)))?;
        let lists = if matches!(seen.outcome, Outcome::Ok | Outcome::RpcError) {
            &seen.lists
        } else {
            &sent.lists
        };
        self.writable.extend(lists.echoed().flatten());
        Ok(seen)
    }

    fn received(
        &mut self,
        bytes: &[u8],
        invalidated: Option<u32>,
        immediate: bool,
    ) -> Result<(), String> {
        self.note("received", hex(bytes));
        if bytes.len() > self.threshold {
            return Err(format!(
                "a Send of {} bytes, the threshold is {}",
                bytes.len(),
                self.threshold
            ));
        }
        if immediate {
            return Err("a Send with immediate data".into());
        }
        if let Some(key) = invalidated {
            self.note("invalidated", format!("{key:#x}"));
            self.invalidated.push(key);
            let mine = Settings::find(&self.options.private).is_some_and(|s| s.flags & 1 != 0);
            let theirs = Settings::find(&self.connection()?.peer).is_some_and(|s| s.flags & 1 != 0);
            if !mine || !theirs {
                return Err(
                    "Send with Invalidate, and not both sides have said that they support it"
                        .into(),
                );
            }
        }
        Ok(())
    }

    /// The next message that is an answer, or how the connection ended.
    pub fn next_message(&mut self, until: Instant) -> Result<Next, String> {
        let mut broken = None;
        let mut until = until;
        loop {
            let Some(event) = self.connection()?.next(until) else {
                return Ok(broken.map_or(Next::Silence, Next::Broken));
            };
            match event {
                Event::Sent => {}
                Event::Received {
                    bytes,
                    invalidated,
                    immediate,
                } => {
                    self.received(&bytes, invalidated, immediate)?;
                    if is_call(&bytes) {
                        self.reverse.push(bytes);
                    } else {
                        return Ok(Next::Message(bytes));
                    }
                }
                Event::Disconnected => {
                    self.note("cm", "disconnected".into());
                    return Ok(Next::Closed);
                }
                Event::Failed(text) => {
                    if broken.is_none() {
                        self.note("completion", text.clone());
                        let wait = if self.accept.has(Outcome::Broken) {
                            200
                        } else {
                            self.world.patience
                        };
                        until = Instant::now() + self.world.unit * wait;
                        broken = Some(text);
                    }
                }
                Event::Other(text) => self.note("cm", text),
            }
        }
    }

    /// What a message leads to.
    pub fn answer(&mut self, sent: &Message) -> Result<Seen, String> {
        let units = if self.accept.has(Outcome::Drop) {
            GRACE
        } else {
            self.world.patience
        };
        let until = Instant::now() + self.world.unit * units;
        match self.next_message(until)? {
            Next::Message(bytes) => self.understand(&bytes, sent),
            Next::Silence => self.probe(sent),
            end => Ok(self.ended(end, sent)),
        }
    }

    fn ended(&mut self, end: Next, sent: &Message) -> Seen {
        self.writable.extend(sent.lists.echoed().flatten());
        let mut seen = Seen::only(if matches!(end, Next::Closed) {
            Outcome::Close
        } else {
            Outcome::Broken
        });
        if let Next::Broken(text) = end {
            seen.note = text;
        }
        seen
    }

    /// Silence: does the connection live?
    fn probe(&mut self, sent: &Message) -> Result<Seen, String> {
        let xid = self.world.probe_xid();
        let probe = Message::inline(&Call::null().xid(xid), Lists::default());
        self.post(&probe)?;
        let until = Instant::now() + self.world.limit();
        match self.next_message(until)? {
            Next::Silence => return Ok(Seen::only(Outcome::Hang)),
            Next::Message(bytes) => {
                if bytes.get(..4) != Some(&xid.to_be_bytes()) {
                    // Late, but an answer. The probe's has to follow.
                    let seen = self.understand(&bytes, sent)?;
                    return self.answer(&probe).map(|_| seen);
                }
                self.understand(&bytes, &probe)?;
            }
            end => return Ok(self.ended(end, sent)),
        }
        let until = Instant::now() + self.world.unit * GRACE;
        match self.next_message(until)? {
            Next::Silence => Ok(Seen::only(Outcome::Drop)),
            Next::Message(bytes) => self.understand(&bytes, sent),
            end => Ok(self.ended(end, sent)),
        }
    }

    /// Answers to several messages, as they come, until there is one for each, the
    /// connection has ended, or nothing comes any more.
    pub fn answers(&mut self, sent: &[Message], wanted: usize) -> Result<Answers, String> {
        self.gather(sent, wanted, self.world.limit())
    }

    /// How many answers are here already, without waiting for any.
    pub fn arrived(&mut self, sent: &[Message]) -> Result<usize, String> {
        Ok(self.gather(sent, sent.len(), Duration::ZERO)?.count)
    }

    fn gather(
        &mut self,
        sent: &[Message],
        wanted: usize,
        wait: Duration,
    ) -> Result<Answers, String> {
        let mut out = Answers {
            seen: vec![Vec::new(); sent.len()],
            count: 0,
            end: None,
        };
        while out.count < wanted {
            let until = Instant::now() + wait;
            match self.next_message(until)? {
                Next::Message(bytes) => {
                    let xid = bytes
                        .get(..4)
                        .map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
                    let index = sent
                        .iter()
                        .enumerate()
                        .position(|(i, m)| {
                            m.xid == xid
                                && (out.seen[i].is_empty()
                                    || sent[i + 1..].iter().all(|l| l.xid != xid))
                        })
                        .ok_or_else(|| format!("an answer with XID {xid:#x} that no call had"))?;
                    let seen = self.understand(&bytes, &sent[index])?;
                    out.seen[index].push(seen);
                    out.count += 1;
                }
                Next::Silence => {
                    out.end = Some(Outcome::Hang);
                    break;
                }
                end => {
                    sent.iter()
                        .for_each(|m| self.writable.extend(m.lists.echoed().flatten()));
                    out.end = Some(if matches!(end, Next::Closed) {
                        Outcome::Close
                    } else {
                        Outcome::Broken
                    });
                    break;
                }
            }
        }
        Ok(out)
    }

    /// After the case: nothing unexplained is in flight, a living connection
    /// answers, no canary has changed.
    pub fn finish(&mut self) -> Result<(), String> {
        self.accept = self.accept | DROP | BROKEN;
        if self.connection.as_ref().is_some_and(|c| !c.dead) {
            let xid = self.world.probe_xid();
            let probe = Message::inline(&Call::null().xid(xid), Lists::default());
            self.post(&probe)?;
            let until = Instant::now() + self.world.limit();
            match self.next_message(until)? {
                Next::Message(bytes) => {
                    let seen = explain(&bytes, &probe, &|_| None)
                        .map_err(|e| format!("probe after the case: {e}"))?;
                    if seen.outcome != Outcome::Ok {
                        return Err(format!("probe after the case: {}", seen.describe()));
                    }
                }
                Next::Silence => return Err("HANG: a probe after the case is not answered".into()),
                Next::Closed => return Err("the connection was closed after the case".into()),
                Next::Broken(text) => {
                    return Err(format!("the queue pair broke after the case: {text}"))
                }
            }
        }
        self.canaries()
    }
}
