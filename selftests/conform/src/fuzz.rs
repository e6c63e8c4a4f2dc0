// SPDX-License-Identifier: GPL-2.0
//! Valid messages with one to three mutations, under the same oracle as the cases.
//!
//! Message `i` of a seed is always mutated in the same way; what differs between
//! runs are the memory keys and addresses that the device gives out.

use std::{
    collections::HashMap,
    fs,
    time::{Duration, Instant},
};

use crate::{
    connection::{Connection, Event, Options},
    explain::{explain, Seen},
    frame::{hex, Header, Lists, Segment, MSG, NOMSG},
    memory::Region,
    message::Message,
    mutate::{kind, mutate, parse},
    nfs3,
    nfs4::Compound,
    outcome::Outcome,
    rng::Rng,
    rpc::{Call, Kind},
    world::World,
};

/// Messages under way at once; the last of a round is a probe.
const ROUND: usize = 8;

/// Regions that a message can name.
const SIZES: [usize; 4] = [4096, 1000, 16384, 64];

pub struct Fuzzer<'a> {
    world: &'a mut World,
    seed: u64,
    connection: Option<Connection>,
    regions: Vec<(Region, Vec<u8>)>,
    writable: Vec<Segment>,
    recent: HashMap<u32, Message>,
    scratch: Vec<u8>,
    counts: HashMap<&'static str, u64>,
}

impl<'a> Fuzzer<'a> {
    pub fn new(world: &'a mut World, seed: u64) -> Result<Self, String> {
        let scratch = world.fresh_file()?;
        Ok(Self {
            world,
            seed,
            connection: None,
            regions: Vec::new(),
            writable: Vec::new(),
            recent: HashMap::new(),
            scratch,
            counts: HashMap::new(),
        })
    }

    /// Messages `from` to `from + count`; false after the first that fails the oracle.
    pub fn run(&mut self, from: u64, count: u64) -> Result<bool, String> {
        let begin = Instant::now();
        let mut next = from;
        println!("1..1");
        while next < from + count {
            let end = (next + ROUND as u64).min(from + count);
            if let Err(text) = self.round(next, end) {
                println!(
                    "not ok 1 - messages {next} to {} of seed {}: {text}",
                    end - 1,
                    self.seed
                );
                println!(
                    "# again: --seed {} --fuzz {} --fuzz-from {next}",
                    self.seed,
                    end - next
                );
                let mut recent: Vec<_> = self.recent.iter().collect();
                recent.sort_by_key(|(xid, _)| **xid);
                recent
                    .iter()
                    .rev()
                    .take(2 * ROUND)
                    .for_each(|(_, m)| println!("# sent {}", hex(&m.bytes)));
                return Ok(false);
            }
            if (next / 1000) != (end / 1000) {
                self.world.check_control()?;
                eprintln!(
                    "# {end} messages, {:.0} a second",
                    (end - from) as f64 / begin.elapsed().as_secs_f64()
                );
            }
            next = end;
        }
        self.close()?;
        self.world.check_control()?;
        let mut counts: Vec<_> = self
            .counts
            .iter()
            .map(|(name, n)| format!("{name} {n}"))
            .collect();
        counts.sort();
        println!("ok 1 - {count} mutated messages of seed {}", self.seed);
        println!(
            "# {}; {:.0} a second",
            counts.join(", "),
            count as f64 / begin.elapsed().as_secs_f64()
        );
        Ok(true)
    }

    /// The first `count` messages of the seed, written to files for other fuzzers.
    pub fn corpus(&mut self, folder: &str, count: u64) -> Result<bool, String> {
        fs::create_dir_all(folder).map_err(|e| format!("{folder}: {e}"))?;
        self.open()?;
        for i in 0..count {
            let message = self.message(i);
            fs::write(format!("{folder}/{i:06}"), &message.bytes)
                .map_err(|e| format!("{folder}: {e}"))?;
        }
        Ok(true)
    }

    fn open(&mut self) -> Result<(), String> {
        let connection = self.world.connect(&Options {
            receives: 64,
            receive_size: 8192,
            ..Options::default()
        })?;
        // Each message of a round has its own: answers overtake one another.
        for _ in 0..ROUND {
            for len in SIZES {
                let region = connection.region(len).map_err(|e| e.to_string())?;
                let before = region.snapshot();
                self.regions.push((region, before));
            }
        }
        self.connection = Some(connection);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let intact = self.canaries();
        self.regions.clear();
        self.writable.clear();
        self.recent.clear();
        self.connection = None;
        intact
    }

    fn count(&mut self, outcome: Outcome) {
        *self.counts.entry(outcome.name()).or_default() += 1;
    }

    fn round(&mut self, from: u64, to: u64) -> Result<(), String> {
        if self.recent.len() > 2000 {
            self.close()?;
        }
        if self.connection.is_none() {
            self.open()?;
        }
        let mut waiting = Vec::new();
        for i in from..to {
            let message = self.message(i);
            self.writable.extend(message.lists.echoed().flatten());
            waiting.push(message.xid);
            self.send(&message.bytes.clone())?;
            self.recent.insert(message.xid, message);
        }
        let probe = Message::inline(&Call::null().xid(self.world.probe_xid()), Lists::default());
        self.send(&probe.bytes)?;
        let silent = self.collect(&probe, &mut waiting)?;
        if silent {
            waiting
                .iter()
                .for_each(|_| *self.counts.entry(Outcome::Drop.name()).or_default() += 1);
        }
        self.canaries()
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(connection) = self.connection.as_mut().filter(|c| !c.dead) else {
            return Ok(());
        };
        // A send that fails because the server has just closed shows as an event.
        let _ = connection.send(bytes);
        Ok(())
    }

    /// Answers until the probe's; true if the connection lives.
    fn collect(&mut self, probe: &Message, waiting: &mut Vec<u32>) -> Result<bool, String> {
        let until = Instant::now() + self.world.limit();
        let mut until_late = None;
        loop {
            let Some(connection) = self.connection.as_mut() else {
                return Ok(false);
            };
            match connection.next(until_late.unwrap_or(until)) {
                Some(Event::Received { bytes, .. }) => {
                    if bytes.starts_with(&probe.xid.to_be_bytes()) {
                        explain(&bytes, probe, &|_| None)
                            .map_err(|e| format!("the probe's reply: {e}"))?;
                        // Answers may overtake one another; a late one is still explained in the next round.
                        until_late = Some(
                            Instant::now()
                                + if waiting.is_empty() {
                                    Duration::ZERO
                                } else {
                                    self.world.unit
                                },
                        );
                        continue;
                    }
                    let seen = self.understand(&bytes)?;
                    waiting.retain(|xid| !bytes.starts_with(&xid.to_be_bytes()));
                    self.count(seen.outcome);
                    if waiting.is_empty() && until_late.is_some() {
                        return Ok(true);
                    }
                }
                Some(Event::Disconnected) => {
                    self.count(Outcome::Close);
                    self.close()?;
                    return Ok(false);
                }
                Some(_) => {}
                None if until_late.is_some() => return Ok(true),
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
        let memory = |s: &Segment| regions.iter().find_map(|(r, _)| r.around(s));
        explain(bytes, sent, &memory)
            .or_else(|first| {
                // Results of a kind that mutation has made unknown are taken as they are.
                let unknown = Message {
                    kind: Kind::Unknown,
                    ..sent.clone()
                };
                match sent.kind {
                    Kind::Compound => explain(bytes, &unknown, &memory).map_err(|_| first),
                    _ => Err(first),
                }
            })
            .map_err(text)
    }

    fn canaries(&self) -> Result<(), String> {
        for (region, before) in &self.regions {
            if let Some(at) = region.spoilt(before, &self.writable) {
                return Err(format!(
                    "memory outside all advertised ranges was written: offset {at} of {}",
                    region.len()
                ));
            }
        }
        Ok(())
    }

    /// Message `i` of the seed.
    fn message(&mut self, i: u64) -> Message {
        let mut rng = Rng::new(self.seed.wrapping_mul(0x1_0000_0001).wrapping_add(i));
        let base = self.base(&mut rng, i as usize % ROUND);
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
        message.lists = parse(&message.bytes)
            .map(|(lists, _)| lists)
            .unwrap_or_default();
        message.kind = kind(&message, base.kind);
        message
    }

    /// A valid message.
    fn base(&mut self, rng: &mut Rng, slot: usize) -> Message {
        let segment = |this: &Self, n: usize| {
            let region = &this.regions[slot * SIZES.len() + n].0;
            region.segment(0, region.len())
        };
        let files = &self.world.files;
        let (root, big, link, many) = (
            files.root.clone(),
            files.big.clone(),
            files.link.clone(),
            files.many.clone(),
        );
        let file = self.scratch.clone();
        let xid = self.world.xid();
        let both = [segment(self, 0), segment(self, 1)];
        match rng.below(11) {
            0 => Message::inline(&Call::null().xid(xid), Lists::default()),
            1 => Message::inline(
                &nfs3::getattr(&root).xid(xid),
                Lists::reply(vec![segment(self, 1)]),
            ),
            2 => Message::inline(
                &nfs3::read(&big, 0, 1000).xid(xid),
                Lists::write(both.to_vec()),
            ),
            3 => Message::inline(
                &nfs3::readlink(&link).xid(xid),
                Lists {
                    writes: vec![vec![segment(self, 3)], vec![]],
                    ..Lists::default()
                },
            ),
            4 => Message::inline(
                &nfs3::readdir(&many, 4096).xid(xid),
                Lists::reply(vec![segment(self, 2), segment(self, 1)]),
            ),
            5 => {
                let call = nfs3::write(&file, 0, &[0x33; 64]).xid(xid);
                let reads = vec![(call.item(0).0 as u32, segment(self, 3))];
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
                let reads = vec![(position, segment(self, 3)), (position, segment(self, 1))];
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
                        writes: vec![vec![segment(self, 1)], vec![segment(self, 3)]],
                        ..Lists::default()
                    },
                )
            }
            8 => {
                // A whole call in the region of 64 bytes; its content is what the region has.
                let lists = Lists {
                    reply: Some(vec![segment(self, 1)]),
                    ..Lists::read(0, vec![segment(self, 3)])
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
                let reads = vec![(call.item(0).0 as u32, segment(self, 3))];
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
                    Kind::Compound,
                )
            }
            _ => Message::inline(
                &nfs3::lookup(&root, "no such file").xid(xid),
                Lists::default(),
            ),
        }
    }
}
