// SPDX-License-Identifier: GPL-2.0
//! Valid messages with one to three mutations, under the same oracle as the cases.
//!
//! Message `i` of a seed is always mutated in the same way; what differs between
//! runs are the memory keys and addresses that the device gives out.

mod bases;
mod run;
mod shapes;
mod watch;

pub use run::run;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use serde_json::{json, Value};

use shapes::Shape;
use watch::Written;

use crate::{
    connection::{self, Connection, Event},
    explain::{explain, hidden, is_call, unexplained, Seen},
    frame::{hex, Lists, Segment},
    handle::Handle,
    memory::Region,
    message::Message,
    outcome::{Accept, Outcome},
    rpc::{Call, Kind},
    world::World,
};

/// Messages under way at once, with a probe behind them.
const ROUND: usize = 16;

/// Regions that a message can name: four for data, one with a whole call. Those behind them are
/// what cases have.
const SIZES: [usize; 5] = [4096, 1000, 16384, 64, 1024];
const WHOLE: usize = 4;

/// Regions that are kept for late answers before a new connection is made.
const KEPT: usize = 64;

/// A region, and what it held when it was last looked at.
struct Watched {
    region: Region,
    before: Vec<u8>,
}

/// A message that was sent, and the XID of the call in it.
#[derive(Clone)]
struct Sent {
    message: Message,
    inner: u32,
    /// The server may not close the connection because of it.
    stays: bool,
    /// What the server has to answer, if that is certain.
    must: Option<Accept>,
    /// The Payload stream, if no data are missing in it.
    call: Vec<u8>,
    /// What is in the file if the server carries it out.
    written: Option<Written>,
    /// It names the file of its place in a round.
    names_file: bool,
    answer: Answer,
}

/// What has come of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Awaited,
    /// None came in its round.
    Dropped,
    Come,
}

/// One that no answer has come to yet: its number, and its two XIDs.
struct Waiting {
    number: u64,
    xids: [u32; 2],
    stays: bool,
    must: Option<Accept>,
    names_file: bool,
}

/// How messages ended.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<&'static str, u64>,
    closed: u64,
    failures: Vec<Value>,
}

struct Fuzzer<'a> {
    world: &'a mut World,
    seed: u64,
    connection: Option<Connection>,
    /// By place in a round and index of SIZES: answers overtake one another, so each
    /// message of a round has its own. Made when first named.
    regions: BTreeMap<(usize, usize), Watched>,
    /// Those of messages without an answer. It may come late, so nothing else gets there.
    kept: Vec<Watched>,
    /// By XID, where the server may write.
    writable: HashMap<u32, Vec<Segment>>,
    /// XIDs of those that have been answered since the last look at what was written.
    over: Vec<u32>,
    /// WRITEs that have succeeded since then, and how many bytes.
    stored: Vec<(Written, u32)>,
    recent: HashMap<u32, Sent>,
    /// The last messages that came.
    received: VecDeque<String>,
    /// Those under way, for a report.
    current: Range<u64>,
    /// Files to write to, one for each place in a round.
    scratch: Vec<Handle>,
    shapes: Vec<Shape>,
    tally: Tally,
}

impl<'a> Fuzzer<'a> {
    fn new(world: &'a mut World, seed: u64) -> Result<Self, String> {
        let scratch = (0..ROUND)
            .map(|_| world.fresh_file())
            .collect::<Result<_, _>>()?;
        let shapes = shapes::shapes(world)?;
        Ok(Self {
            world,
            seed,
            connection: None,
            regions: BTreeMap::new(),
            kept: Vec::new(),
            writable: HashMap::new(),
            over: Vec::new(),
            stored: Vec::new(),
            recent: HashMap::new(),
            received: VecDeque::new(),
            current: 0..0,
            scratch,
            shapes,
            tally: Tally::default(),
        })
    }

    /// These messages, until one fails the oracle or another thread's has.
    fn run(&mut self, range: Range<u64>, stop: &AtomicBool) -> Result<(), String> {
        let mut next = range.start;
        while next < range.end && !stop.load(Ordering::Relaxed) {
            let end = (next + ROUND as u64).min(range.end);
            let numbers: Vec<_> = (next..end).collect();
            self.current = next..end;
            self.judge(&numbers)?;
            if next / 100 != end / 100 {
                self.world.check_control()?;
            }
            if next / 1000 != end / 1000 {
                eprintln!("# {end} of {} to {}", range.start, range.end);
            }
            next = end;
        }
        self.close()?;
        self.world.check_control()
    }

    fn failure(&self, text: &str) -> Value {
        let (seed, Range { start, end }) = (self.seed, self.current.clone());
        let mut recent: Vec<_> = self.recent.iter().collect();
        recent.sort_by_key(|(xid, _)| **xid);
        let sent = recent
            .iter()
            .rev()
            .map(|(_, sent)| hex(&sent.message.bytes));
        json!({
            "reason": format!("messages {start} to {} of seed {seed}: {text}", end.saturating_sub(1)),
            "again": format!("--seed {seed} --fuzz {} --fuzz-from {start} --jobs 1", end - start),
            "sent": sent.take(2 * ROUND).collect::<Vec<_>>(),
            "received": self.received,
        })
    }

    fn connect(&mut self) -> Result<(), String> {
        self.connection = Some(self.world.connect(&connection::Options {
            receives: ROUND + 16,
            receive_size: 8192,
            ..connection::Options::default()
        })?);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let intact = self.canaries();
        self.regions.clear();
        self.kept.clear();
        self.writable.clear();
        self.over.clear();
        self.recent.clear();
        self.connection = None;
        intact
    }

    fn count(&mut self, outcome: Outcome) {
        *self.tally.counts.entry(outcome.name()).or_default() += 1;
    }

    /// Send messages together, but those one by one that name memory which is none: a
    /// server closes the connection then. If it does so anyway, those without an
    /// answer are sent again one by one, as only one of them need be the cause.
    fn judge(&mut self, numbers: &[u64]) -> Result<(), String> {
        let mut together = Vec::new();
        let mut alone = Vec::new();
        for &i in numbers {
            if self.names_nothing(i)? {
                alone.push(i);
            } else {
                together.push(i);
            }
        }
        if !together.is_empty() {
            let left = self.round(&together)?;
            alone.extend(left.iter().map(|waiting| waiting.number));
        }
        for i in alone {
            self.single(i)?;
        }
        Ok(())
    }

    /// One message by itself. A connection that is closed where it has to stay is tried again: what
    /// was sent in front may have been the cause.
    fn single(&mut self, i: u64) -> Result<(), String> {
        for _ in 0..3 {
            match self.round(&[i])?.first() {
                None => return Ok(()),
                Some(waiting) if !waiting.stays => {
                    self.count(Outcome::Close);
                    return Ok(());
                }
                Some(_) => {}
            }
        }
        // For the report: one like it.
        self.ready()?;
        let sent = self.message(i)?;
        self.recent.insert(sent.message.xid, sent);
        Err(format!(
            "CLOSE, three times, at message {i}: the connection has to stay"
        ))
    }

    /// Whether message `i` has a segment that is not in one of our regions.
    fn names_nothing(&mut self, i: u64) -> Result<bool, String> {
        self.ready()?;
        let lists = self.message(i)?.message.lists;
        let reads = lists.reads.iter().map(|(_, segment)| segment);
        Ok(reads
            .chain(lists.echoed().flatten())
            .any(|s| !self.watched().any(|w| w.region.has(s))))
    }

    /// There is a connection.
    fn ready(&mut self) -> Result<(), String> {
        if self.recent.len() > 2000 || self.kept.len() > KEPT {
            self.close()?;
        }
        if self.connection.is_none() {
            self.connect()?;
        }
        Ok(())
    }

    /// The messages without an answer if the connection was closed.
    fn round(&mut self, numbers: &[u64]) -> Result<Vec<Waiting>, String> {
        self.ready()?;
        let mut waiting = Vec::new();
        for &number in numbers {
            let sent = self.message(number)?;
            self.open(&sent);
            waiting.push(Waiting {
                number,
                xids: [sent.message.xid, sent.inner],
                stays: sent.stays,
                must: sent.must,
                names_file: sent.names_file,
            });
            self.send(&sent.message.bytes);
            self.recent
                .entry(sent.inner)
                .or_insert_with(|| sent.clone());
            self.recent.insert(sent.message.xid, sent);
        }
        let probe = Message::inline(&Call::null().xid(self.world.probe_xid()), Lists::default());
        self.send(&probe.bytes);
        let lives = self.collect(&probe, &mut waiting)?;
        self.canaries()?;
        self.files()?;
        for slow in waiting.iter().filter(|w| w.names_file) {
            // It may be carried out yet: nothing else gets into that file.
            self.scratch[slow.number as usize % ROUND] = self.world.fresh_file()?;
        }
        if lives {
            if let Some(lost) = waiting.iter().find(|w| w.must.is_some()) {
                return Err(format!(
                    "DROP at message {}, which has to be answered",
                    lost.number
                ));
            }
            for waiting in &waiting {
                self.count(Outcome::Drop);
                self.settle(waiting.xids[0], Answer::Dropped)?;
                self.keep(waiting.xids[0]);
            }
            return Ok(Vec::new());
        }
        self.tally.closed += 1;
        self.close()?;
        Ok(waiting)
    }

    fn watched(&self) -> impl Iterator<Item = &Watched> {
        self.regions.values().chain(&self.kept)
    }

    /// Give later messages other regions than those of this one.
    fn keep(&mut self, xid: u32) {
        let Some(sent) = self.recent.get(&xid) else {
            return;
        };
        let lists = sent.message.lists.clone();
        let reads = lists.reads.iter().map(|(_, segment)| segment);
        let named: Vec<_> = reads.chain(lists.echoed().flatten()).collect();
        let keys: Vec<_> = self.regions.keys().copied().collect();
        for key in keys {
            let is_named = |w: &Watched| named.iter().any(|s| w.region.has_key(s.handle));
            if self.regions.get(&key).is_some_and(is_named) {
                self.kept.extend(self.regions.remove(&key));
            }
        }
    }

    /// Note what has come of a message. One that was taken for dropped may have been slow.
    fn settle(&mut self, xid: u32, answer: Answer) -> Result<(), String> {
        let Some(first) = self.recent.get(&xid) else {
            return Ok(());
        };
        let (before, xids) = (first.answer, [first.message.xid, first.inner]);
        match before {
            Answer::Come => {
                return Err(unexplained(format!("a second answer to {:#x}", xids[0])));
            }
            Answer::Dropped => {
                let dropped = self.tally.counts.entry(Outcome::Drop.name()).or_default();
                *dropped = dropped.saturating_sub(1);
            }
            Answer::Awaited => {}
        }
        for xid in xids {
            if let Some(sent) = self
                .recent
                .get_mut(&xid)
                .filter(|s| s.message.xid == xids[0])
            {
                sent.answer = answer;
            }
        }
        Ok(())
    }

    /// A send that fails because the server has just closed shows as an event.
    fn send(&mut self, bytes: &[u8]) {
        if let Some(connection) = self.connection.as_mut().filter(|c| !c.dead) {
            let _ = connection.send(bytes);
        }
    }

    /// Answers until the probe's; true if the connection lives.
    fn collect(&mut self, probe: &Message, waiting: &mut Vec<Waiting>) -> Result<bool, String> {
        let limit = Instant::now() + self.world.limit();
        let mut grace = limit;
        let mut probed = false;
        loop {
            // Answers may overtake one another; a late one is still explained in a later round,
            // but for those that have to come.
            let until = match waiting.iter().any(|w| w.must.is_some()) {
                true => limit,
                false => grace,
            };
            let Some(connection) = self.connection.as_mut() else {
                return Ok(false);
            };
            match connection.next(until) {
                Some(Event::Received {
                    bytes,
                    invalidated,
                    immediate,
                }) => {
                    self.received.push_back(hex(&bytes));
                    if self.received.len() > 2 * ROUND {
                        self.received.pop_front();
                    }
                    connection.vet(bytes.len(), invalidated.is_some(), immediate)?;
                    if is_call(&bytes) {
                        return Err(unexplained("a call, where no session has callbacks"));
                    }
                    if bytes.starts_with(&probe.xid.to_be_bytes()) {
                        if probed {
                            return Err(unexplained("a second reply to the probe"));
                        }
                        explain(&bytes, probe, &|_| None)
                            .map_err(|e| format!("the probe's reply: {e}"))?;
                        probed = true;
                        grace = Instant::now() + self.world.unit;
                    } else {
                        let seen = self.understand(&bytes)?;
                        waiting.retain(|w| {
                            !w.xids.iter().any(|x| bytes.starts_with(&x.to_be_bytes()))
                        });
                        self.count(seen.outcome);
                        let xid = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                        self.narrow(xid, &seen);
                        self.settle(xid, Answer::Come)?;
                    }
                    if waiting.is_empty() && probed {
                        return Ok(true);
                    }
                }
                Some(Event::Disconnected) => return Ok(false),
                Some(_) => {}
                None if probed => return Ok(true),
                None => {
                    return Err("HANG: the probe is not answered and the connection is open".into())
                }
            }
        }
    }

    /// What one of our segments names, canaries included.
    fn found(&self, segment: &Segment) -> Option<Vec<u8>> {
        self.watched().find_map(|w| w.region.around(segment))
    }

    fn understand(&mut self, bytes: &[u8]) -> Result<Seen, String> {
        let text = |e: String| format!("{e}; received {}", hex(bytes));
        let xid = bytes
            .get(..4)
            .map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
        let known = self
            .recent
            .get(&xid)
            .ok_or_else(|| text(format!("an answer with XID {xid:#x} that nothing had")))?;
        let Sent { message, inner, .. } = known;
        // A call whose two XIDs differ may be answered with either, and with both (M042, M082).
        let mut mirrored = bytes.to_vec();
        mirrored.splice(..4, inner.to_be_bytes());
        let called = Message {
            xid: *inner,
            ..message.clone()
        };
        // Operations that mutation has made others than those that are known.
        let any = |of: &Message| Message {
            kind: Kind::Any,
            ..of.clone()
        };
        let mut tries = vec![(bytes, message.clone())];
        if *inner != message.xid {
            tries.push((&mirrored, called.clone()));
        }
        let mut errors = Vec::new();
        for (reply, sent) in tries {
            let explained = explain(reply, &sent, &|s| self.found(s));
            let seen = explained.or_else(|first| match sent.kind {
                Kind::Compound(ops) if ops.known().is_none() && first.contains("no decoder") => {
                    explain(reply, &any(&sent), &|s| self.found(s)).map_err(|_| first)
                }
                _ => Err(first),
            });
            let seen = seen.or_else(|first| hidden(reply, &sent).ok_or(first));
            let compared = seen.and_then(|seen| {
                self.world.compare(&seen, &sent)?;
                self.world.compare_data(&seen, sent.kind, &known.call)?;
                Ok(seen)
            });
            match compared {
                Ok(seen) => match known.must.filter(|must| !must.has(seen.outcome)) {
                    Some(must) => {
                        return Err(text(format!("{}, accepted: {must}", seen.describe())));
                    }
                    None => return Ok(seen),
                },
                Err(error) => errors.push(error),
            }
        }
        Err(text(errors.swap_remove(0)))
    }
}
