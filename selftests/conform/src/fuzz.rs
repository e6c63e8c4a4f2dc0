// SPDX-License-Identifier: GPL-2.0
//! Valid messages with one to three mutations, under the same oracle as the cases.
//!
//! Message `i` of a seed is always mutated in the same way; what differs between
//! runs are the memory keys and addresses that the device gives out.

use std::{
    collections::{btree_map::Entry, BTreeMap, HashMap},
    net::SocketAddr,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use crate::{
    connection::{self, Connection, Event},
    explain::{explain, Seen},
    frame::{hex, Header, Lists, Segment, MSG, NOMSG},
    memory::{Region, GUARD},
    message::Message,
    mutate::{kind, mutate, parse},
    nfs3,
    nfs4::Compound,
    options::Options,
    outcome::Outcome,
    rng::Rng,
    rpc::{Call, Kind},
    world::World,
};

/// Messages under way at once, with a probe behind them.
const ROUND: usize = 16;

/// Regions that a message can name.
const SIZES: [usize; 4] = [4096, 1000, 16384, 64];

/// A region, what it held when it was last looked at, and where the server may write.
struct Watched {
    region: Region,
    before: Vec<u8>,
    open: Vec<bool>,
}

/// How messages ended.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<&'static str, u64>,
    closed: u64,
}

/// `--fuzz`: messages from `--fuzz-from` on, shared out between `--jobs` threads with
/// connections and files of their own. False if one fails the oracle.
pub fn run(server: SocketAddr, options: &Options, count: u64) -> Result<bool, String> {
    let begin = Instant::now();
    let stop = AtomicBool::new(false);
    let share = count.div_ceil(options.jobs.into());
    println!("1..1");
    let results: Vec<_> = thread::scope(|scope| {
        let start = |part| {
            let from = u64::from(part) * share;
            let range = options.fuzz_from + from..options.fuzz_from + count.min(from + share);
            let stop = &stop;
            scope.spawn(move || {
                let result = part_of(server, options, part, range, stop);
                stop.fetch_or(result.is_err(), Ordering::Relaxed);
                result
            })
        };
        let threads: Vec<_> = (0..options.jobs).map(start).collect();
        let panicked = |_| Err("a thread panicked".to_string());
        let joined = threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(panicked));
        joined.collect()
    });
    let mut all = Tally::default();
    for result in results {
        match result {
            Ok(tally) => {
                all.closed += tally.closed;
                for (name, n) in tally.counts {
                    *all.counts.entry(name).or_default() += n;
                }
            }
            Err(text) => {
                println!("not ok 1 - {text}");
                return Ok(false);
            }
        }
    }
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    let counts: Vec<_> = all.counts.iter().map(|(k, n)| format!("{k} {n}")).collect();
    println!("ok 1 - {count} mutated messages of seed {}", options.seed);
    println!(
        "# {}; {} connections closed; {rate:.0} a second",
        counts.join(", "),
        all.closed
    );
    Ok(true)
}

fn part_of(
    server: SocketAddr,
    options: &Options,
    part: u32,
    range: Range<u64>,
    stop: &AtomicBool,
) -> Result<Tally, String> {
    let mut world = World::new(server, options, part)?;
    world.open_control()?;
    let mut fuzzer = Fuzzer::new(&mut world, options.seed)?;
    fuzzer.run(range, stop)?;
    let tally = fuzzer.tally;
    world.clean();
    Ok(tally)
}

struct Fuzzer<'a> {
    world: &'a mut World,
    seed: u64,
    connection: Option<Connection>,
    /// By place in a round and index of SIZES: answers overtake one another, so each
    /// message of a round has its own. Made when first named.
    regions: BTreeMap<(usize, usize), Watched>,
    recent: HashMap<u32, Message>,
    scratch: Vec<u8>,
    tally: Tally,
}

impl<'a> Fuzzer<'a> {
    fn new(world: &'a mut World, seed: u64) -> Result<Self, String> {
        let scratch = world.fresh_file()?;
        Ok(Self {
            world,
            seed,
            connection: None,
            regions: BTreeMap::new(),
            recent: HashMap::new(),
            scratch,
            tally: Tally::default(),
        })
    }

    /// These messages, until one fails the oracle or another thread's has.
    fn run(&mut self, range: Range<u64>, stop: &AtomicBool) -> Result<(), String> {
        let mut next = range.start;
        while next < range.end && !stop.load(Ordering::Relaxed) {
            let end = (next + ROUND as u64).min(range.end);
            let numbers: Vec<_> = (next..end).collect();
            self.judge(&numbers)
                .map_err(|text| self.failure(next, end, &text))?;
            if next / 1000 != end / 1000 {
                self.world.check_control()?;
                eprintln!("# {end} of {} to {}", range.start, range.end);
            }
            next = end;
        }
        self.close()?;
        self.world.check_control()
    }

    fn failure(&self, next: u64, end: u64, text: &str) -> String {
        let seed = self.seed;
        let mut lines = format!(
            "messages {next} to {} of seed {seed}: {text}\n# again: --seed {seed} --fuzz {} --fuzz-from {next} --jobs 1",
            end - 1,
            end - next
        );
        let mut recent: Vec<_> = self.recent.iter().collect();
        recent.sort_by_key(|(xid, _)| **xid);
        for (_, message) in recent.iter().rev().take(2 * ROUND) {
            lines.push_str(&format!("\n# sent {}", hex(&message.bytes)));
        }
        lines
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
            alone.extend(self.round(&together)?);
        }
        for i in alone {
            if !self.round(&[i])?.is_empty() {
                self.count(Outcome::Close);
            }
        }
        Ok(())
    }

    /// Whether message `i` has a segment that is not in one of our regions.
    fn names_nothing(&mut self, i: u64) -> Result<bool, String> {
        self.ready()?;
        let lists = self.message(i)?.lists;
        let reads = lists.reads.iter().map(|(_, segment)| segment);
        Ok(reads
            .chain(lists.echoed().flatten())
            .any(|s| !self.regions.values().any(|w| w.region.has(s))))
    }

    /// There is a connection.
    fn ready(&mut self) -> Result<(), String> {
        if self.recent.len() > 2000 {
            self.close()?;
        }
        if self.connection.is_none() {
            self.connect()?;
        }
        Ok(())
    }

    /// The messages without an answer if the connection was closed.
    fn round(&mut self, numbers: &[u64]) -> Result<Vec<u64>, String> {
        self.ready()?;
        let mut waiting = Vec::new();
        for &i in numbers {
            let message = self.message(i)?;
            self.open(&message.lists);
            waiting.push((message.xid, i));
            self.send(&message.bytes);
            self.recent.insert(message.xid, message);
        }
        let probe = Message::inline(&Call::null().xid(self.world.probe_xid()), Lists::default());
        self.send(&probe.bytes);
        let lives = self.collect(&probe, &mut waiting)?;
        self.canaries()?;
        if lives {
            waiting.iter().for_each(|_| self.count(Outcome::Drop));
            return Ok(Vec::new());
        }
        self.tally.closed += 1;
        self.close()?;
        Ok(waiting.into_iter().map(|(_, i)| i).collect())
    }

    /// A send that fails because the server has just closed shows as an event.
    fn send(&mut self, bytes: &[u8]) {
        if let Some(connection) = self.connection.as_mut().filter(|c| !c.dead) {
            let _ = connection.send(bytes);
        }
    }

    /// Answers until the probe's; true if the connection lives.
    fn collect(&mut self, probe: &Message, waiting: &mut Vec<(u32, u64)>) -> Result<bool, String> {
        let mut until = Instant::now() + self.world.limit();
        let mut probed = false;
        loop {
            let Some(connection) = self.connection.as_mut() else {
                return Ok(false);
            };
            match connection.next(until) {
                Some(Event::Received { bytes, .. }) => {
                    if bytes.starts_with(&probe.xid.to_be_bytes()) {
                        explain(&bytes, probe, &|_| None)
                            .map_err(|e| format!("the probe's reply: {e}"))?;
                        // Answers may overtake one another; a late one is still explained in a later round.
                        probed = true;
                        until = Instant::now() + self.world.unit;
                    } else {
                        let seen = self.understand(&bytes)?;
                        waiting.retain(|(xid, _)| !bytes.starts_with(&xid.to_be_bytes()));
                        self.count(seen.outcome);
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

    fn understand(&mut self, bytes: &[u8]) -> Result<Seen, String> {
        let text = |e: String| format!("{e}; received {}", hex(bytes));
        let xid = bytes
            .get(..4)
            .map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
        let sent = self
            .recent
            .get(&xid)
            .ok_or_else(|| text(format!("an answer with XID {xid:#x} that nothing had")))?;
        let regions = &self.regions;
        let memory = |s: &Segment| regions.values().find_map(|w| w.region.around(s));
        explain(bytes, sent, &memory)
            .or_else(|first| {
                // Operations that mutation has made others than those that are known.
                let any = Message {
                    kind: Kind::Any,
                    ..sent.clone()
                };
                if matches!(sent.kind, Kind::Compound(_)) && first.contains("no decoder") {
                    explain(bytes, &any, &memory).map_err(|_| first)
                } else {
                    Err(first)
                }
            })
            .map_err(text)
    }

    /// The server may write what these lists name.
    fn open(&mut self, lists: &Lists) {
        for segment in lists.echoed().flatten() {
            for watched in self.regions.values_mut() {
                let range = watched.region.range(segment);
                watched.open[range].fill(true);
            }
        }
    }

    /// Nothing has changed where the server may not write.
    fn canaries(&mut self) -> Result<(), String> {
        for watched in self.regions.values_mut() {
            let now = watched.region.snapshot();
            if now == watched.before {
                continue;
            }
            let bytes = now.iter().zip(&watched.before).zip(&watched.open);
            if let Some(at) = bytes
                .into_iter()
                .position(|((is, was), open)| is != was && !open)
            {
                return Err(format!(
                    "memory outside all advertised ranges was written: offset {} of {}",
                    at as i64 - GUARD as i64,
                    watched.region.len()
                ));
            }
            watched.before = now;
        }
        Ok(())
    }

    fn segment(&mut self, slot: usize, size: usize) -> Result<Segment, String> {
        let connection = self.connection.as_ref().ok_or("no connection")?;
        let watched = match self.regions.entry((slot, size)) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(none) => {
                let region = connection.region(SIZES[size]).map_err(|e| e.to_string())?;
                let before = region.snapshot();
                let open = vec![false; before.len()];
                none.insert(Watched {
                    region,
                    before,
                    open,
                })
            }
        };
        Ok(watched.region.segment(0, SIZES[size]))
    }

    /// Message `i` of the seed.
    fn message(&mut self, i: u64) -> Result<Message, String> {
        let mut rng = Rng::new(self.seed.wrapping_mul(0x1_0000_0001).wrapping_add(i));
        let base = self.base(&mut rng, i as usize % ROUND)?;
        let mut bytes = base.bytes.clone();
        for _ in 0..1 + rng.below(3) {
            mutate(&mut rng, &mut bytes);
        }
        bytes.truncate(4096);
        // A probe's XID, or one that is in use, would be ambiguous.
        let mut message = Message::raw(bytes);
        while message.bytes.len() >= 4
            && (message.xid >> 28 == 5 || self.recent.contains_key(&message.xid))
        {
            let xid = self.world.xid();
            message = message.poke(0, xid);
            message.xid = xid;
        }
        if message.bytes.len() < 4 {
            // It has none, and no answer may be taken for its.
            message.xid = self.world.probe_xid();
        }
        message.lists = parse(&message.bytes)
            .map(|(lists, _)| lists)
            .unwrap_or_default();
        message.kind = kind(&message, base.kind);
        Ok(message)
    }

    /// A valid message.
    fn base(&mut self, rng: &mut Rng, slot: usize) -> Result<Message, String> {
        let segment = |this: &mut Self, n: usize| this.segment(slot, n);
        let files = &self.world.files;
        let (root, big, link, many) = (
            files.root.clone(),
            files.big.clone(),
            files.link.clone(),
            files.many.clone(),
        );
        let file = self.scratch.clone();
        let xid = self.world.xid();
        Ok(match rng.below(11) {
            0 => Message::inline(&Call::null().xid(xid), Lists::default()),
            1 => Message::inline(
                &nfs3::getattr(&root).xid(xid),
                Lists::reply(vec![segment(self, 1)?]),
            ),
            2 => Message::inline(
                &nfs3::read(&big, 0, 1000).xid(xid),
                Lists::write(vec![segment(self, 0)?, segment(self, 1)?]),
            ),
            3 => Message::inline(
                &nfs3::readlink(&link).xid(xid),
                Lists {
                    writes: vec![vec![segment(self, 3)?], vec![]],
                    ..Lists::default()
                },
            ),
            4 => Message::inline(
                &nfs3::readdir(&many, 4096).xid(xid),
                Lists::reply(vec![segment(self, 2)?, segment(self, 1)?]),
            ),
            5 => {
                let call = nfs3::write(&file, 0, &[0x33; 64]).xid(xid);
                let reads = vec![(call.item(0).0 as u32, segment(self, 3)?)];
                Message::new(
                    Header::new(
                        xid,
                        MSG,
                        Lists {
                            reads,
                            ..Lists::default()
                        },
                    ),
                    &call.reduced(0).0,
                    Kind::Write,
                )
            }
            6 => {
                let call = nfs3::write(&file, 8, &[0x44; 1064]).xid(xid);
                let position = call.item(0).0 as u32;
                let reads = vec![(position, segment(self, 3)?), (position, segment(self, 1)?)];
                Message::new(
                    Header::new(
                        xid,
                        MSG,
                        Lists {
                            reads,
                            ..Lists::default()
                        },
                    ),
                    &call.reduced(0).0,
                    Kind::Write,
                )
            }
            7 => {
                let call = Compound::new(0)
                    .handle(&big)
                    .read(0, 500)
                    .getattr()
                    .read(4096, 64)
                    .call()
                    .xid(xid);
                Message::inline(
                    &call,
                    Lists {
                        writes: vec![vec![segment(self, 1)?], vec![segment(self, 3)?]],
                        ..Lists::default()
                    },
                )
            }
            8 => {
                // A whole call in the region of 64 bytes; its content is what the region has.
                let lists = Lists {
                    reply: Some(vec![segment(self, 1)?]),
                    ..Lists::read(0, vec![segment(self, 3)?])
                };
                Message::new(Header::new(xid, NOMSG, lists), &[], Kind::Unknown)
            }
            9 => {
                let call = Compound::new(0)
                    .handle(&file)
                    .write(0, &[0x55; 64])
                    .getattr()
                    .call()
                    .xid(xid);
                let reads = vec![(call.item(0).0 as u32, segment(self, 3)?)];
                Message::new(
                    Header::new(
                        xid,
                        MSG,
                        Lists {
                            reads,
                            ..Lists::default()
                        },
                    ),
                    &call.reduced(0).0,
                    call.kind,
                )
            }
            _ => Message::inline(
                &nfs3::lookup(&root, "no such file").xid(xid),
                Lists::default(),
            ),
        })
    }
}
