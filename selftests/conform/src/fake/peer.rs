// SPDX-License-Identifier: GPL-2.0
//! One connection of a fake peer that hands calls on to an NFS server over TCP: a
//! right responder, but for what its mutant does.

mod post;

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use super::{
    heard::{understand, Assembled, Assembly, Heard, Request},
    items::{self, Procedure},
    mutants::Mutant,
    place::{change, place, spoil},
    word,
};
use crate::{
    connection::{Connection, Event},
    frame::{words, Header, Lists, Segment, ERROR, MSG, NOMSG},
    memory::Region,
    tcp::Tcp,
};

/// When clients that leave have gone, and when an answer to a callback comes too late.
const TOO_LATE: Duration = Duration::from_secs(1);

const DESTROY_SESSION: u32 = 44;

/// How late something is done that should have been done before.
const LATE: Duration = Duration::from_millis(20);

/// What connections of a peer have in common.
pub struct Shared {
    pub mutant: Mutant,
    pub tcp: SocketAddr,
    /// Connections since the suite's last probe.
    pub connections: u32,
    /// A connection with a call under way has gone since then.
    pub scarred: bool,
    /// What was said to which call, without its XID.
    said: HashMap<Vec<u8>, Vec<u8>>,
}

impl Shared {
    pub fn new(mutant: Mutant, tcp: SocketAddr) -> Self {
        Self {
            mutant,
            tcp,
            connections: 0,
            scarred: false,
            said: HashMap::new(),
        }
    }
}

/// A call that the NFS server has not answered.
struct Waiting {
    xid: u32,
    lists: Lists,
    procedure: Procedure,
    /// EXCHANGE_ID or CREATE_SESSION, if it begins with that.
    session: Option<u32>,
    /// Without its XID.
    call: Vec<u8>,
}

enum Late {
    Write(Segment, Vec<u8>),
    Send(Vec<u8>),
    /// To the NFS server.
    Call(Vec<u8>),
}

pub struct Peer {
    pub connection: Connection,
    pub silent: bool,
    /// It has heard nothing yet.
    pub fresh: bool,
    /// What it lets anybody read and write.
    _open: Option<Region>,
    /// What both sides take in one Send.
    threshold: usize,
    /// Whether the client lets its memory be read, and keys be invalidated.
    readable: bool,
    invalidates: bool,
    /// Of its own, as callbacks come on the connection that a session was made on.
    tcp: Option<Tcp>,
    waiting: Vec<Waiting>,
    callbacks: Vec<u32>,
    /// Those for which there is no credit, and how many may be under way.
    queued: VecDeque<Vec<u8>>,
    window: usize,
    /// Calls that are answered late.
    dawdles: u32,
    /// A callback has been sent.
    called: bool,
    /// COMPOUNDs since a session was made on this connection.
    compounds: Option<u32>,
    /// Read chunks of the call before.
    again: Vec<Segment>,
    backlog: VecDeque<Event>,
    late: Vec<(Instant, Late)>,
    calls: u32,
    last_key: Option<u32>,
}

impl Peer {
    pub fn new(connection: Connection, open: Option<Region>, client: &Client) -> Self {
        Self {
            connection,
            silent: false,
            fresh: true,
            _open: open,
            threshold: client.threshold,
            readable: client.readable,
            invalidates: client.invalidates,
            tcp: None,
            waiting: Vec::new(),
            callbacks: Vec::new(),
            queued: VecDeque::new(),
            window: 1,
            dawdles: 0,
            called: false,
            compounds: None,
            again: Vec::new(),
            backlog: VecDeque::new(),
            late: Vec::new(),
            calls: 0,
            last_key: None,
        }
    }

    pub fn next(&mut self) -> Option<Event> {
        let waiting = self.backlog.pop_front();
        waiting.or_else(|| self.connection.next(Instant::now()))
    }

    /// Whether calls are under way.
    pub fn busy(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A right answer, or the mutant's. An error ends the connection.
    pub fn handle(&mut self, shared: &mut Shared, bytes: &[u8]) -> io::Result<()> {
        let (xid, mutant) = (word(bytes, 0), &shared.mutant);
        let heard = understand(bytes, mutant);
        let closes = mutant.is("callback-closes") && self.called;
        if closes && !matches!(heard, Heard::Call(_)) {
            return Err(io::Error::other("no call"));
        }
        match heard {
            Heard::Nothing => Ok(()),
            Heard::Versions => {
                let high = if mutant.is("odd-versions") { 2 } else { 1 };
                let own = mutant.is("own-version");
                let vers = if own { 1 } else { word(bytes, 4) };
                let grant = mutant.credits();
                self.connection
                    .send(&words(&[xid, vers, grant, ERROR, 1, 1, high]))
            }
            Heard::Malformed => self.refuse(mutant, xid),
            Heard::Reply(payload) => match self.answered(xid) {
                true => {
                    self.window = mutant.window(word(bytes, 8));
                    self.tcp(shared)?.send(&payload)
                }
                false => Ok(()),
            },
            // RPC has no such answer. PROG_UNAVAIL is one that is not asked for again.
            Heard::Failed => match self.answered(xid) {
                true => self.tcp(shared)?.send(&words(&[xid, 1, 0, 0, 0, 1])),
                false => Ok(()),
            },
            Heard::Call(request) => self.call(shared, &request),
        }
    }

    /// Whether a callback of this XID was under way; it is no more.
    fn answered(&mut self, xid: u32) -> bool {
        let before = self.callbacks.len();
        self.callbacks.retain(|x| *x != xid);
        self.callbacks.len() < before
    }

    fn tcp(&mut self, shared: &Shared) -> io::Result<&mut Tcp> {
        if self.tcp.is_none() {
            self.tcp = Some(Tcp::connect(shared.tcp)?);
        }
        Ok(self.tcp.as_mut().expect("just made"))
    }

    fn refuse(&mut self, mutant: &Mutant, xid: u32) -> io::Result<()> {
        if mutant.is("closes") {
            return Err(io::Error::other("closed instead of ERR_CHUNK"));
        }
        self.connection
            .send(&words(&[xid, 1, mutant.credits(), ERROR, 2]))
    }

    /// Hand a call on.
    fn call(&mut self, shared: &mut Shared, request: &Request) -> io::Result<()> {
        let (xid, mutant) = (request.xid, &shared.mutant);
        self.calls += 1;
        let lost = mutant.is("lossy") && self.calls % mutant.number(16) == 0
            || mutant.is("fading") && self.calls > mutant.number(1);
        let confused = mutant.is("callback-confused") && self.callbacks.contains(&xid);
        if lost || confused {
            return Ok(());
        }
        if !self.readable && !request.lists.reads.is_empty() {
            return self.refuse(mutant, xid);
        }
        let wrong = Assembly {
            unpadded: mutant.is("no-pad"),
            anywhere: mutant.is("any-place") || mutant.is("boundless"),
            stale: mutant.is("stale-read"),
        };
        let mut stream = match request.assemble(wrong, |chunk| self.read(chunk))? {
            Assembled::Call(stream) => stream,
            Assembled::Nothing => return Ok(()),
            Assembled::Misplaced => return self.refuse(mutant, xid),
            Assembled::Differs(rpc) => {
                let named = if mutant.is("inner-xid") { rpc } else { xid };
                return self.refuse(mutant, named);
            }
        };
        if !self.again.is_empty() {
            let chunk = std::mem::take(&mut self.again);
            self.read(&chunk)?;
        }
        if let Some(said) = shared
            .said
            .get(&stream[4..])
            .filter(|_| mutant.is("replay"))
        {
            return self.connection.send(said);
        }
        if mutant.is("spoil-write") {
            spoil_call(&mut stream);
        }
        if mutant.is("weary") && shared.connections >= mutant.number(6) {
            let failed = [xid, 1, mutant.credits(), 0, 0, 0, 0, xid, 1, 0, 0, 0, 5];
            return self.connection.send(&words(&failed));
        }
        let procedure = Procedure::of(&stream);
        if mutant.is("callback-blocks") && self.called && procedure == Procedure::COMPOUND {
            return Ok(());
        }
        if mutant.is("callback-echo") && items::first_operation(&stream) == Some(DESTROY_SESSION) {
            let header = words(&[xid, 1, 1, 0, 0, 0, 0]);
            self.connection.send(&[header, stream.clone()].concat())?;
        }
        self.waiting.push(Waiting {
            xid,
            lists: request.lists.clone(),
            procedure,
            session: items::begins_session(&stream),
            call: stream[4..].to_vec(),
        });
        if mutant.is("scarred") && procedure == Procedure::GETATTR {
            return Ok(());
        }
        if mutant.is("scarred") && self.calls > 1 {
            // The client goes first.
            let due = Instant::now() + TOO_LATE;
            self.late.push((due, Late::Call(stream)));
            return Ok(());
        }
        self.tcp(shared)?.send(&stream)
    }

    /// Pass on what has come over TCP, and do what is late.
    pub fn pass_on(&mut self, shared: &mut Shared) -> io::Result<()> {
        while let Some(tcp) = &mut self.tcp {
            if !tcp.pending()? {
                break;
            }
            let record = tcp.receive()?;
            if word(&record, 4) == 0 {
                self.queued.push_back(record);
                continue;
            }
            let xid = word(&record, 0);
            if let Some(at) = self.waiting.iter().position(|w| w.xid == xid) {
                let waiting = self.waiting.remove(at);
                self.answer(shared, &waiting, record)?;
            }
        }
        let flood = shared.mutant.is("callback-flood");
        while flood || self.callbacks.len() < self.window {
            let Some(record) = self.queued.pop_front() else {
                break;
            };
            self.call_back(&shared.mutant, &record)?;
        }
        let now = Instant::now();
        while self.late.first().is_some_and(|(due, _)| *due <= now) {
            match self.late.remove(0).1 {
                Late::Write(segment, data) => self.write(&segment, &data)?,
                Late::Send(message) => self.connection.send(&message)?,
                Late::Call(stream) => self.tcp(shared)?.send(&stream)?,
            }
        }
        Ok(())
    }

    fn answer(
        &mut self,
        shared: &mut Shared,
        waiting: &Waiting,
        mut stream: Vec<u8>,
    ) -> io::Result<()> {
        // Nothing is wrong with the beginning of sessions, so that cases get behind it.
        let right = Mutant::none();
        let mutant = match waiting.session {
            Some(_) => &right,
            None => &shared.mutant,
        };
        if mutant.is("stores") {
            return self.refuse(mutant, waiting.xid);
        }
        let found = items::of_reply(waiting.procedure, &stream);
        if mutant.is("spoil-read") || mutant.is("scarred") && shared.scarred {
            spoil(&mut stream, &found);
        }
        let repeated = shared.said.contains_key(&waiting.call);
        change(&mut stream, repeated, mutant);
        let Some(placed) = place(&stream, &found, &waiting.lists, self.threshold, mutant) else {
            return self.refuse(mutant, waiting.xid);
        };
        let late = Instant::now() + LATE;
        for (segment, data) in placed.writes {
            match mutant.is("hasty") {
                true => self.late.push((late, Late::Write(segment, data))),
                false => self.write(&segment, &data)?,
            }
        }
        let proc = if placed.stream.is_some() { MSG } else { NOMSG };
        let mut header = Header::new(waiting.xid, proc, placed.lists);
        header.credits = mutant.credits();
        header.xid ^= u32::from(mutant.is("wrong-xid"));
        let message = header.message(&placed.stream.unwrap_or_default());
        if self.dawdles > 0 {
            self.dawdles -= 1;
            let due = Instant::now() + TOO_LATE;
            self.late.push((due, Late::Send(message.clone())));
        } else {
            self.say(mutant, &waiting.lists, &message)?;
        }
        if mutant.is("twice") {
            self.connection.send(&message)?;
        }
        let compound = waiting.procedure == Procedure::COMPOUND;
        self.compounds = match waiting.session {
            Some(43) => Some(0),
            _ => self.compounds.map(|n| n + u32::from(compound)),
        };
        // RECLAIM_COMPLETE is the first in a session, then comes what a case looks at.
        let plain = compound && waiting.session.is_none();
        let strange = plain && matches!(self.compounds, None | Some(2));
        if shared.mutant.is("callback-unasked") && strange {
            let call = [9, 1, 2, 0, 0, 0, 0, 9, 0, 2, 0x4000_0000, 1, 0, 0, 0, 0, 0];
            self.late.push((late, Late::Send(words(&call))));
        }
        if mutant.is("late-read") {
            self.again = waiting.lists.reads.iter().map(|(_, s)| *s).collect();
        }
        if waiting.call.len() < 4096 {
            shared.said.insert(waiting.call.clone(), message);
        }
        Ok(())
    }
}

/// What a client has said of itself.
pub struct Client {
    pub threshold: usize,
    pub readable: bool,
    pub invalidates: bool,
}

/// Change a byte of what is to be stored: the first of the data, or of what is probably data.
fn spoil_call(stream: &mut [u8]) {
    let at = match items::of_call(stream) {
        Some((at, len)) if len > 0 => at,
        _ if stream.len() > 1000 => stream.len() / 2,
        _ => return,
    };
    if let Some(byte) = stream.get_mut(at) {
        *byte ^= 1;
    }
}
