// SPDX-License-Identifier: GPL-2.0
//! The messages that the fuzzer mutates: what cases send, and calls that servers take.

use std::collections::btree_map::Entry;

use super::{shapes::LONGEST, watch::Written, Answer, Fuzzer, Sent, Watched, ROUND, SIZES, WHOLE};
use crate::{
    frame::{words, Header, Lists, Segment, MSG, MSGP},
    message::Message,
    mutate::{kind, must_answer, must_stay, mutate, parse, stream},
    nfs3,
    nfs4::Compound,
    private::Settings,
    rng::Rng,
    rpc::{auth_sys, Call, Kind, NFS},
};

/// What a message is made from.
struct Base {
    message: Message,
    /// No server has a reason to refuse it.
    right: bool,
    /// A server may close the connection because of it.
    closes: bool,
}

impl Fuzzer<'_> {
    fn segment(&mut self, slot: usize, size: usize) -> Result<Segment, String> {
        let length = SIZES.get(size).copied().unwrap_or(LONGEST);
        let connection = self.connection.as_ref().ok_or("no connection")?;
        let watched = match self.regions.entry((slot, size)) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(none) => {
                let region = connection.region(length).map_err(|e| e.to_string())?;
                let before = region.snapshot();
                none.insert(Watched { region, before })
            }
        };
        Ok(watched.region.segment(0, length))
    }

    /// The region of a case by number, with this in it.
    pub fn memory(&mut self, slot: usize, number: usize, data: &[u8]) -> Result<Segment, String> {
        self.holding(slot, SIZES.len() + number, data)
    }

    fn holding(&mut self, slot: usize, size: usize, data: &[u8]) -> Result<Segment, String> {
        let segment = self.segment(slot, size)?;
        let watched = self.regions.get_mut(&(slot, size)).ok_or("no region")?;
        Self::put(watched, data);
        Ok(segment)
    }

    /// A whole call in memory of its own, in segments of these lengths (the last has the rest).
    fn whole(&mut self, slot: usize, call: &[u8], first: &[usize]) -> Result<Vec<Segment>, String> {
        let all = self.holding(slot, WHOLE, call)?;
        let mut segments = Vec::new();
        let mut from = 0;
        for &length in first
            .iter()
            .chain([&(call.len() - first.iter().sum::<usize>())])
        {
            segments.push(Segment {
                length: length as u32,
                offset: all.offset + from as u64,
                ..all
            });
            from += length;
        }
        Ok(segments)
    }

    /// Message `i` of the seed.
    pub fn message(&mut self, i: u64) -> Result<Sent, String> {
        let mut rng = Rng::new(self.seed.wrapping_mul(0x1_0000_0001).wrapping_add(i));
        let slot = i as usize % ROUND;
        let made = self.base(&mut rng, slot)?;
        let base = made.message;
        let mut bytes = base.bytes.clone();
        // The last of those that go together stays as it is.
        if slot != ROUND - 1 {
            for _ in 0..1 + rng.below(3) {
                mutate(&mut rng, &mut bytes);
            }
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
        let memory = |s: &Segment| self.found(s);
        let was = stream(&base.bytes, &memory).unwrap_or_default();
        let is = stream(&message.bytes, &memory).unwrap_or_default();
        let file = &self.scratch[slot];
        message.kind = kind(&message, &is, base.kind, &was);
        let peer = self
            .connection
            .as_ref()
            .and_then(|c| Settings::find(&c.peer));
        let limit = peer.map_or(1024, |s| Settings::bytes(s.receive));
        Ok(Sent {
            inner: match is.get(..4) {
                Some(xid) => u32::from_be_bytes([xid[0], xid[1], xid[2], xid[3]]),
                None => message.xid,
            },
            stays: !made.closes && must_stay(&message.bytes, limit, &memory, &base, &was),
            must: must_answer(&message.bytes, limit, made.right.then_some(&base)),
            written: Written::by(&is, &message.lists, &memory).filter(|w| w.is_of(file)),
            names_file: file.is_in(&is),
            call: match message.lists.reads.iter().all(|(p, _)| *p == 0) {
                true => is,
                false => Vec::new(),
            },
            answer: Answer::Awaited,
            message,
        })
    }

    /// A message that is right, one that is no call, or one of a case: that may be wrong, and a
    /// server may be allowed to close the connection then.
    fn base(&mut self, rng: &mut Rng, slot: usize) -> Result<Base, String> {
        let xid = self.world.xid();
        let mut right = true;
        let mut closes = false;
        let message = match rng.below(8) {
            0 | 1 => self.inline(rng, slot, xid)?,
            2 => self.with_reads(rng, slot, xid)?,
            3 => self.in_position_zero(rng, slot, xid)?,
            4 => {
                right = false;
                self.odd(rng, xid)?
            }
            _ => {
                right = false;
                let shaped = self.shaped(rng.below(self.shapes.len()), slot, xid)?;
                closes = shaped.1;
                shaped.0
            }
        };
        Ok(Base {
            message,
            right,
            closes,
        })
    }

    /// The call inline; Write chunks and Reply chunks.
    fn inline(&mut self, rng: &mut Rng, slot: usize, xid: u32) -> Result<Message, String> {
        let files = &self.world.files;
        let (root, big, many) = (files.root.clone(), files.big.clone(), files.many.clone());
        let (link, stale, small) = (files.link.clone(), files.stale.clone(), files.small.clone());
        let file = self.scratch[slot].clone();
        let [page, some, much, few] = [
            self.segment(slot, 0)?,
            self.segment(slot, 1)?,
            self.segment(slot, 2)?,
            self.segment(slot, 3)?,
        ];
        let writes = |writes: &[&[Segment]]| Lists {
            writes: writes.iter().map(|chunk| chunk.to_vec()).collect(),
            ..Lists::default()
        };
        let (call, lists) = match rng.below(22) {
            0 => (Call::null(), Lists::default()),
            1 => (nfs3::getattr(&root), Lists::reply(vec![some])),
            2 => (nfs3::read(&big, 0, 1000), writes(&[&[page, some]])),
            3 => (nfs3::readlink(&link), writes(&[&[few], &[]])),
            4 => (nfs3::readdir(&many, 4096), Lists::reply(vec![much, some])),
            5 => {
                let compound = Compound::new(0).handle(&big).read(0, 500).getattr();
                (compound.read(4096, 64).call(), writes(&[&[some], &[few]]))
            }
            6 => (nfs3::lookup(&root, "no such file"), Lists::default()),
            // Frames F and I.
            7 => (nfs3::read(&big, 0, 100), writes(&[&[page]])),
            8 => (nfs3::readdir(&many, 8192), Lists::reply(vec![page, much])),
            9 => (nfs3::read(&big, 5, 700), Lists::default()),
            10 => (nfs3::write(&file, 0, &[0x66; 100]), Lists::default()),
            11 => {
                let lists = Lists {
                    reply: Some(vec![much]),
                    ..writes(&[&[page]])
                };
                (nfs3::read(&big, 0, 1000), lists)
            }
            12 => (nfs3::readdirplus(&many, 8192), Lists::reply(vec![much])),
            13 => (nfs3::getacl(&small), writes(&[&[some]])),
            14 => {
                let compound = Compound::new(0).handle(&link).readlink().getattr();
                (compound.call(), writes(&[&[few]]))
            }
            15 => {
                let mut call = nfs3::access(&root);
                call.auth = auth_sys(16);
                (call, Lists::default())
            }
            16 => (
                Call::new(NFS, 4, 0, Kind::Null, Vec::new()),
                Lists::reply(vec![few, some]),
            ),
            17 => (nfs3::read(&big, 0, 100), writes(&[&[]])),
            18 => (nfs3::read(&stale, 0, 100), writes(&[&[some]])),
            19 => (nfs3::fsinfo(&root), Lists::reply(Vec::new())),
            20 => {
                let compound = Compound::new(0).root().getattr();
                (compound.call(), Lists::reply(vec![page]))
            }
            _ => (
                nfs3::read(&big, 0, 300),
                writes(&[&[few, few, some], &[page]]),
            ),
        };
        Ok(Message::inline(&call.xid(xid), lists))
    }

    /// Data of the call in Read chunks.
    fn with_reads(&mut self, rng: &mut Rng, slot: usize, xid: u32) -> Result<Message, String> {
        let (file, dir) = (self.scratch[slot].clone(), self.world.files.dir.clone());
        let [some, few] = [self.segment(slot, 1)?, self.segment(slot, 3)?];
        // Frame H.
        let five = Segment { length: 5, ..few };
        let (call, chunk) = match rng.below(8) {
            0 => (nfs3::write(&file, 0, &[0x33; 64]), vec![few]),
            1 => (nfs3::write(&file, 8, &[0x44; 1064]), vec![few, some]),
            2 | 3 => (nfs3::write(&file, 0, &[0x77; 5]), vec![five]),
            4 => (nfs3::symlink(&dir, "fuzz", &[b'x'; 64]), vec![few]),
            5 => {
                let compound = Compound::new(0).handle(&dir).symlink("fuzz", &[b'y'; 64]);
                (compound.getattr().call(), vec![few])
            }
            _ => {
                let compound = Compound::new(0).handle(&file).write(0, &[0x55; 64]);
                (compound.getattr().call(), vec![few])
            }
        };
        let call = call.xid(xid);
        let mut lists = Lists::read(call.item(0).0 as u32, chunk);
        if rng.below(4) == 0 {
            lists.writes = vec![vec![some]];
            lists.reply = Some(vec![self.segment(slot, 2)?]);
        }
        let header = Header::new(xid, MSG, lists);
        Ok(Message::new(header, &call.reduced(0).0, call.kind))
    }

    /// The call in a Position-Zero chunk (frame E), its data there, too, or in another.
    fn in_position_zero(
        &mut self,
        rng: &mut Rng,
        slot: usize,
        xid: u32,
    ) -> Result<Message, String> {
        let files = &self.world.files;
        let (root, big, many) = (files.root.clone(), files.big.clone(), files.many.clone());
        let file = self.scratch[slot].clone();
        let [page, much, few] = [
            self.segment(slot, 0)?,
            self.segment(slot, 2)?,
            self.segment(slot, 3)?,
        ];
        let which = rng.below(7);
        let call = match which {
            0 => Call::null(),
            1 => nfs3::getattr(&root),
            2 => nfs3::write(&file, 0, &[0x22; 77]),
            3 => nfs3::write(&file, 0, &[0x11; 61]),
            4 => nfs3::readdir(&many, 4096),
            5 => Compound::new(0).root().getattr().getattr().getattr().call(),
            _ => nfs3::read(&big, 0, 1000),
        };
        let call = call.xid(xid);
        let zero = match which {
            // The rest of the call, and the data on their own.
            3 => self.whole(slot, &call.reduced(0).0, &[])?,
            2 | 5 => self.whole(slot, &call.encode(), &[41])?,
            _ => self.whole(slot, &call.encode(), &[])?,
        };
        let mut lists = Lists::read(0, zero);
        match which {
            3 => lists
                .reads
                .push((call.item(0).0 as u32, Segment { length: 61, ..few })),
            4 | 5 => lists.reply = Some(vec![few, much]),
            6 => lists.writes = vec![vec![page]],
            _ => {}
        }
        Ok(Message::long(&call, lists))
    }

    /// What is no call, or of another version.
    fn odd(&mut self, rng: &mut Rng, xid: u32) -> Result<Message, String> {
        let null = Message::inline(&Call::null().xid(xid), Lists::default());
        Ok(match rng.below(7) {
            0 => Message::words(xid, 1, 4, &[2]),
            1 => Message::words(xid, 1, 4, &[1, 1, 1]),
            2 => Message::words(xid, 1, 3, &[0, 0, 0]),
            3 => Message::words(xid, 1, MSGP, &[4, 1024, 0, 0, 0]).and(&null.bytes[28..]),
            4 => Message::words(xid, 1, MSG, &[0, 0, 0]).and(&words(&[xid, 1, 0, 0, 0, 0])),
            5 => null.poke(4, 2),
            _ => null,
        })
    }
}
