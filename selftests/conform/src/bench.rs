// SPDX-License-Identifier: GPL-2.0
//! What one case works with: a connection, memory with canaries, and the evidence.

mod memory;

use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::{
    answers::{Answers, Next},
    callback::Callback,
    case::setup,
    connection::{Connection, Event, Options},
    evidence,
    explain::{explain, is_call, unexplained, Seen},
    frame::{hex, Lists, Segment},
    memory::Region,
    message::Message,
    outcome::{Accept, Outcome, BROKEN, DROP},
    private::Settings,
    rpc::Call,
    send::Send,
    world::World,
};

/// Units of silence after which a message counts as dropped, if a probe is answered then.
const GRACE: u32 = 8;

/// Units that an answer may take: there need be none if DROP is right.
pub fn due(accept: Accept, patience: u32) -> u32 {
    if accept.has(Outcome::Drop) {
        GRACE
    } else {
        patience
    }
}

/// A message that a case would have sent, and what it names.
pub struct Taken {
    pub message: Message,
    pub regions: Vec<Memory>,
}

/// A region as it is then.
pub struct Memory {
    pub key: u32,
    pub address: u64,
    pub content: Vec<u8>,
}

/// For the evidence.
fn private_data(data: &[u8]) -> String {
    format!("private data {}", hex(data))
}

pub struct Bench<'w> {
    pub world: &'w mut World,
    pub accept: Accept,
    pub evidence: Vec<Value>,
    /// Calls of the reverse direction that came meanwhile, and when.
    pub reverse: Vec<(Instant, Vec<u8>)>,
    /// Keys that the server has invalidated.
    pub invalidated: Vec<u32>,
    /// The first message is to be taken from here, not sent.
    pub taken: Option<Option<Taken>>,
    /// Those that were made.
    sessions: Vec<[u8; 16]>,
    /// The case is about messages that are longer than what the server takes.
    pub longer: bool,
    /// Why the case cannot be run with this server.
    pub lacks: Option<String>,
    /// A session on this connection has, or has been asked for, callbacks.
    pub backchannel: bool,
    /// What was waited for last, as long as anything is, has not come.
    pub hung: bool,
    connection: Option<Connection>,
    options: Options,
    threshold: usize,
    regions: Vec<(Region, Vec<u8>)>,
    writable: Vec<Segment>,
    /// All that has been advertised for writing.
    advertised: Vec<Segment>,
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
            taken: None,
            sessions: Vec::new(),
            longer: false,
            lacks: None,
            backchannel: false,
            hung: false,
            connection,
            options,
            threshold: 4096,
            regions: Vec::new(),
            writable: Vec::new(),
            advertised: Vec::new(),
        };
        bench.set_threshold();
        bench.note_earlier();
        bench
    }

    /// The connection that a case is given.
    fn note_earlier(&mut self) {
        if let Some(peer) = self.connection.as_ref().map(|c| c.peer.clone()) {
            let own = private_data(&self.options.private);
            self.note("cm", format!("connected before the case, {own}"));
            self.note_established(&peer);
        }
    }

    fn note_established(&mut self, peer: &[u8]) {
        let theirs = private_data(&peer[..peer.len().min(64)]);
        self.note("cm", format!("established, {theirs}"));
    }

    fn set_threshold(&mut self) {
        let peer = self.connection.as_ref().map_or(&[][..], |c| &c.peer);
        self.threshold = Settings::threshold(&self.options.private, peer);
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

    /// Let all go but the connection.
    pub fn leave(mut self) -> Option<Connection> {
        self.connection.take()
    }

    /// Close the connection and open one with other settings. Memory goes with it.
    pub fn reconnect(&mut self, options: &Options) -> Result<(), String> {
        self.close()?;
        let own = private_data(&options.private);
        self.note("cm", format!("connect, {own}"));
        let made = self.world.connect(options)?;
        self.note_established(&made.peer);
        self.connection = Some(made);
        self.backchannel = false;
        self.options = options.clone();
        self.set_threshold();
        Ok(())
    }

    /// Let the connection and its memory go, after a look at the canaries and at callbacks.
    pub fn close(&mut self) -> Result<(), String> {
        let intact = self.callbacks().and(self.canaries());
        self.regions.clear();
        self.writable.clear();
        self.advertised.clear();
        self.connection = None;
        intact
    }

    pub fn note(&mut self, kind: &str, text: String) {
        self.evidence.push(json!({ kind: text }));
    }

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
        if let Some(taken) = &mut self.taken {
            let regions = self.regions.iter().map(|(region, _)| Memory {
                key: region.key,
                address: region.address(),
                content: region.bytes(0, region.len()),
            });
            taken.get_or_insert_with(|| Taken {
                message: message.clone(),
                regions: regions.collect(),
            });
            return Err("taken, not sent".into());
        }
        let (len, limit) = (message.bytes.len(), self.call_limit()?);
        if len > limit && !self.longer {
            let why = format!("a message of {len} bytes, the server takes {limit}");
            self.lacks = Some(why.clone());
            return Err(why);
        }
        let mut step = json!({ "sent": hex(&message.bytes), "opcode": kind.name() });
        if !message.lists.reads.is_empty() {
            step["offered"] = evidence::offered(&message.lists, &|s| self.found(s)).into();
        }
        self.evidence.push(step);
        self.advertised.extend(message.lists.echoed().flatten());
        self.connection()?
            .send_as(&message.bytes, kind, pieces)
            .map_err(|e| format!("send: {e}"))
    }

    /// What one of our segments names.
    fn found(&self, segment: &Segment) -> Option<Vec<u8>> {
        self.regions.iter().find_map(|(r, _)| r.at(segment))
    }

    /// Send and see what comes of it.
    pub fn ask(&mut self, message: &Message) -> Result<Seen, String> {
        self.post(message)?;
        self.answer(message)
    }

    /// A call inline without lists that has to succeed before a case can go on.
    pub fn must(&mut self, call: Call) -> Result<Seen, String> {
        setup(self.succeed(call))
    }

    /// A call inline without lists that has to succeed: what a case looks at.
    pub fn succeed(&mut self, call: Call) -> Result<Seen, String> {
        let call = self.number(call);
        let seen = self.ask(&Message::inline(&call, Lists::default()))?;
        if seen.outcome == Outcome::Ok && seen.results.status == 0 {
            Ok(seen)
        } else {
            Err(format!("a plain call: {}", seen.describe()))
        }
    }

    /// What an answer says.
    pub fn understand(&mut self, bytes: &[u8], sent: &Message) -> Result<Seen, String> {
        let explained = explain(bytes, sent, &|s| self.found(s));
        if explained.is_err() {
            // What it reports is not known.
            self.writable.extend(sent.lists.echoed().flatten());
        }
        let seen = explained?;
        self.world.compare(&seen, sent)?;
        if seen.lists.echoed().flatten().any(|s| s.length > 0) {
            let placed = evidence::placed(&seen.lists, &|s| self.found(s));
            self.evidence.push(json!({ "placed": placed }));
        }
        // CREATE_SESSION says whether the server calls back on this connection.
        if seen.results.ops.contains(&(43, 0)) {
            self.backchannel = seen.results.flags & 2 != 0;
            self.sessions.extend(seen.results.sequence);
            self.called()?;
        }
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
        self.hung = false;
        if let Some(key) = invalidated {
            self.note("invalidated", format!("{key:#x}"));
            self.invalidated.push(key);
        }
        let vetted = self
            .connection()?
            .vet(bytes.len(), invalidated.is_some(), immediate);
        if vetted.is_err() {
            // Nobody looks at what it reports.
            self.writable.append(&mut self.advertised);
        }
        vetted
    }

    /// Calls of the reverse direction may come only where a session has them.
    fn called(&self) -> Result<(), String> {
        if self.backchannel || self.reverse.is_empty() {
            Ok(())
        } else {
            Err(unexplained(
                "a call, on a connection that no session has callbacks on",
            ))
        }
    }

    /// What nobody has looked at of the reverse direction is callbacks of sessions of the case.
    pub fn callbacks(&mut self) -> Result<(), String> {
        for (_, bytes) in std::mem::take(&mut self.reverse) {
            let call = Callback::parse(&bytes).map_err(unexplained)?;
            if !self.sessions.contains(&call.session) {
                return Err(unexplained("a callback of a session that is none"));
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
                        self.reverse.push((Instant::now(), bytes));
                        self.called()?;
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
        let units = due(self.accept, self.world.patience);
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
            Next::Silence => {
                self.hung = true;
                return Ok(Seen::only(Outcome::Hang));
            }
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
                    // arrived() waits for nothing.
                    self.hung = !wait.is_zero();
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
                    self.nothing_more()?;
                }
                Next::Silence => {
                    self.hung = true;
                    return Err("HANG: a probe after the case is not answered".into());
                }
                Next::Closed => return Err("the connection was closed after the case".into()),
                Next::Broken(text) => {
                    return Err(format!("the queue pair broke after the case: {text}"))
                }
            }
        }
        self.callbacks()?;
        self.canaries()
    }

    /// Answers of the server may overtake one another: an unasked one has come by now.
    fn nothing_more(&mut self) -> Result<(), String> {
        let until = Instant::now() + self.world.unit * GRACE;
        match self.next_message(until)? {
            Next::Silence => Ok(()),
            Next::Message(bytes) => Err(unexplained(format!(
                "behind the probe after the case came {}",
                hex(&bytes[..bytes.len().min(64)])
            ))),
            Next::Closed if self.accept.has(Outcome::Close) => Ok(()),
            Next::Closed => Err("the connection was closed after the case".into()),
            Next::Broken(_) if self.accept.has(Outcome::Close) => Ok(()),
            Next::Broken(text) => Err(format!("the queue pair broke after the case: {text}")),
        }
    }
}
