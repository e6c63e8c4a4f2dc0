// SPDX-License-Identifier: GPL-2.0
//! WRITEs whose data come from Read chunks of every shape, several under way at once,
//! and what the file holds then: byte for byte what its offset and the seed say.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    fs::File,
    io::Write,
    rc::Rc,
    time::Instant,
};

use crate::{
    connection::{Connection, Event, Options},
    explain::explain,
    frame::{Header, Lists, Segment, MSG, NOMSG},
    memory::{Access, Domain, Region},
    message::Message,
    nfs3, options,
    outcome::Outcome,
    rng::Rng,
    rpc::Kind,
    world::World,
};

const PAGE: usize = 4096;

/// Segments of a chunk.
const COUNTS: [usize; 5] = [1, 2, 3, 5, 16];

/// The longest WRITE, but for those that ask for megabytes.
const LONGEST: usize = 20_000;

/// So far to both sides of a page boundary every length occurs.
const NEAR: usize = 8;

/// All combinations: each residue with each number of segments.
const ALL: usize = COUNTS.len() * PAGE;

/// What siw (Linux 7.3, siw_try_1seg()) sends wrongly if a page ends in it: segments up to this length.
const TINY: usize = 32;

/// Bytes between two looks at the file.
const BATCH: u64 = 4 << 20;

/// Faults that are named for each number of segments.
const NAMED: usize = 10;

/// What travels in Read chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The data.
    Data,
    /// The data with their roundup.
    Padded,
    /// The whole call, in a Position-Zero chunk.
    Whole,
    /// The data in a chunk, the rest of the call in a Position-Zero chunk.
    Nested,
}

const FORMS: [Form; 4] = [Form::Data, Form::Padded, Form::Whole, Form::Nested];

/// One WRITE.
#[derive(Clone, Copy)]
struct Combination {
    number: usize,
    form: Form,
    segments: usize,
    /// Where in a page the first segment begins.
    residue: usize,
    len: usize,
    offset: u64,
    sync: bool,
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "WRITE {} ({:?}, {}): {} segments, the first at {} of its page, {} bytes to offset {}",
            self.number,
            self.form,
            if self.sync { "FILE_SYNC" } else { "UNSTABLE" },
            self.segments,
            self.residue,
            self.len,
            self.offset
        )
    }
}

/// The lengths that have to occur: up to NEAR from a page boundary.
fn boundaries() -> Vec<usize> {
    (1..=LONGEST)
        .filter(|len| (len + NEAR) % PAGE <= 2 * NEAR)
        .collect()
}

fn shuffled(rng: &mut Rng, end: usize) -> Vec<usize> {
    let mut all: Vec<_> = (0..end).collect();
    for i in (1..end).rev() {
        all.swap(i, rng.below(i + 1));
    }
    all
}

/// Number of segments, residue and length of each WRITE: the first 4096 have each residue
/// once, all of them have it once with each number of segments. Of the lengths, one third
/// end near a boundary of the server's pages, one third near one of ours.
fn shapes(rng: &mut Rng, count: usize) -> Vec<(usize, usize, usize)> {
    let (residues, ends) = (shuffled(rng, PAGE), boundaries());
    (0..count)
        .map(|n| {
            let (round, i) = (n / PAGE, n % PAGE);
            let residue = residues[i];
            let step = i / COUNTS.len();
            let near = *rng.pick(&ends);
            let len = match step % 3 {
                0 => ends[(step / 3 + round * 31) % ends.len()],
                1 if near > residue => near - residue,
                _ => 1 + rng.below(LONGEST),
            };
            (COUNTS[(i + round) % COUNTS.len()], residue, len)
        })
        .collect()
}

/// 1, 2 and 4 MiB, and a byte less.
fn large_shapes(rng: &mut Rng) -> Vec<(usize, usize, usize)> {
    let mut all = Vec::new();
    for size in [1 << 20, 2 << 20, 4 << 20] {
        for len in [size, size - 1] {
            for segments in COUNTS {
                all.push((segments, 0, len));
                all.push((segments, 1 + rng.below(PAGE - 1), len));
            }
        }
    }
    all
}

fn plan(seed: u64, options: &options::Options, nested: bool) -> Vec<Combination> {
    let mut rng = Rng::new(seed);
    let shapes = if options.large {
        large_shapes(&mut rng)
    } else {
        shapes(&mut rng, options.sample.unwrap_or(ALL))
    };
    let mut offset = 0;
    shapes
        .into_iter()
        .enumerate()
        .map(|(number, (segments, residue, len))| {
            let form = match rng.below(8) {
                0 if len % 4 != 0 => Form::Padded,
                1 => Form::Whole,
                2 if nested => Form::Nested,
                _ => Form::Data,
            };
            let combination = Combination {
                number,
                form,
                segments,
                residue,
                len,
                offset,
                sync: rng.below(8) == 0,
            };
            offset += len as u64;
            combination
        })
        .collect()
}

/// What the file has at an offset.
fn content(seed: u64, offset: u64, len: usize) -> Vec<u8> {
    let first = offset / 8;
    let skip = (offset % 8) as usize;
    let mut bytes: Vec<u8> = (first..)
        .take((skip + len).div_ceil(8))
        .flat_map(|word| {
            let mut rng = Rng::new(seed ^ word.wrapping_mul(0x2545_f491_4f6c_dd1d));
            rng.next().to_le_bytes()
        })
        .skip(skip)
        .collect();
    bytes.truncate(len);
    bytes
}

/// Lengths of the segments: none is empty, half of the cuts are near a page boundary.
fn cut(rng: &mut Rng, total: usize, count: usize) -> Vec<usize> {
    let mut cuts = HashSet::from([total]);
    while cuts.len() < count.min(total) {
        let anywhere = 1 + rng.below(total);
        let near = anywhere.next_multiple_of(PAGE) + rng.below(2 * NEAR + 1);
        let at = match rng.below(2) {
            0 if (NEAR + 1..=total + NEAR).contains(&near) => near - NEAR,
            _ => anywhere,
        };
        cuts.insert(at);
    }
    let mut cuts: Vec<_> = cuts.into_iter().collect();
    cuts.sort_unstable();
    let mut from = 0;
    cuts.into_iter()
        .map(|to| to - std::mem::replace(&mut from, to))
        .collect()
}

/// A WRITE that is not answered yet, with its memory.
struct Flight {
    combination: Combination,
    message: Message,
    _regions: Vec<Region>,
}

pub struct Sweep<'a> {
    world: &'a mut World,
    seed: u64,
    rng: Rng,
    /// WRITEs under way at once.
    window: usize,
    file: Vec<u8>,
    connection: Connection,
    flights: HashMap<u32, Flight>,
    faults: HashMap<usize, Vec<String>>,
    expected: Option<File>,
}

/// Run it; false if anything was wrong.
pub fn run(world: &mut World, options: &options::Options, nested: bool) -> Result<bool, String> {
    let begin = Instant::now();
    let plan = plan(options.seed, options, nested);
    let name = format!("sweep.{}", std::process::id());
    let root = world.files.root.clone();
    let connection = world.connect(&Options::default())?;
    let mut sweep = Sweep {
        file: world.must(nfs3::create(&root, &name))?.handle,
        world,
        seed: options.seed,
        rng: Rng::new(!options.seed),
        window: if options.large { 2 } else { 8 },
        connection,
        flights: HashMap::new(),
        faults: HashMap::new(),
        expected: None,
    };
    if let Some(path) = &options.expected {
        sweep.expected = Some(File::create(path).map_err(|e| format!("{path}: {e}"))?);
        println!("# file {name}");
    }
    let end = sweep.write_all(&plan);
    let lines = sweep.verdicts(&plan, end, options.large, nested);
    println!("1..{}", lines.len());
    for (i, (what, faults)) in lines.iter().enumerate() {
        let verdict = if faults.is_empty() { "ok" } else { "not ok" };
        println!("{verdict} {} - {what}", i + 1);
        faults.iter().take(NAMED).for_each(|f| println!("# {f}"));
        if faults.len() > NAMED {
            println!("# and {} more", faults.len() - NAMED);
        }
    }
    let bytes: usize = plan.iter().map(|c| c.len).sum();
    println!(
        "# {} WRITEs, {:.1} MiB, {:.1} s",
        plan.len(),
        bytes as f64 / f64::from(1 << 20),
        begin.elapsed().as_secs_f64()
    );
    if sweep.expected.is_none() {
        sweep.world.must(nfs3::remove(&root, &name))?;
    }
    Ok(lines.iter().all(|(_, faults)| faults.is_empty()))
}

/// What a plan of a full sweep lacks.
fn missing(plan: &[Combination], large: bool, nested: bool) -> Vec<String> {
    let mut missing = Vec::new();
    let mut need = |what: String, is_there: bool| {
        if !is_there {
            missing.push(format!("missing: {what}"));
        }
    };
    for form in FORMS.into_iter().filter(|f| nested || *f != Form::Nested) {
        need(format!("{form:?}"), plan.iter().any(|c| c.form == form));
    }
    for odd in [0, 1] {
        let offsets = plan.iter().any(|c| c.offset % 2 == odd);
        need(format!("offsets 2n + {odd}"), offsets);
    }
    for sync in [false, true] {
        need(format!("sync {sync}"), plan.iter().any(|c| c.sync == sync));
    }
    if large {
        return missing;
    }
    let lengths: HashSet<_> = plan.iter().map(|c| (c.segments, c.len)).collect();
    let rests: HashSet<_> = plan.iter().map(|c| (c.segments, c.len % 4)).collect();
    let residues: HashSet<_> = plan.iter().map(|c| c.residue).collect();
    let pairs: HashSet<_> = plan.iter().map(|c| (c.segments, c.residue)).collect();
    for segments in COUNTS {
        for len in boundaries() {
            let there = lengths.contains(&(segments, len));
            need(format!("{segments} segments, {len} bytes"), there);
        }
        for rest in 0..4 {
            let there = rests.contains(&(segments, rest));
            need(format!("{segments} segments, 4n + {rest} bytes"), there);
        }
        for residue in (0..PAGE).filter(|_| plan.len() >= ALL) {
            let there = pairs.contains(&(segments, residue));
            need(format!("{segments} segments at {residue}"), there);
        }
    }
    for residue in 0..PAGE {
        need(format!("place {residue}"), residues.contains(&residue));
    }
    missing
}

impl Sweep<'_> {
    fn write_all(&mut self, plan: &[Combination]) -> Result<(), String> {
        let mut rest = plan;
        while !rest.is_empty() {
            let end = rest[0].offset + BATCH;
            let (batch, later) = rest.split_at(rest.partition_point(|c| c.offset < end));
            for &combination in batch {
                while self.flights.len() >= self.window {
                    self.receive()?;
                }
                self.send(combination)
                    .map_err(|e| format!("{combination}: {e}"))?;
            }
            while !self.flights.is_empty() {
                self.receive()?;
            }
            self.look(batch)?;
            rest = later;
        }
        self.world.check_control()
    }

    fn send(&mut self, combination: Combination) -> Result<(), String> {
        let data = content(self.seed, combination.offset, combination.len);
        let mut call = nfs3::write(&self.file, combination.offset, &data).xid(self.world.xid());
        if !combination.sync {
            // In front of the length of the data.
            let stable = call.items[0].0 - 8;
            call.args[stable..stable + 4].fill(0);
        }
        let position = call.item(0).0 as u32;
        let (mut stream, mut item) = call.reduced(0);
        let (count, residue) = (combination.segments, combination.residue);
        let mut regions = Vec::new();
        let mut reads = Vec::new();
        if combination.form == Form::Whole {
            stream = call.encode();
            reads.extend(self.chunk(&mut regions, 0, &stream, count, residue)?);
        } else {
            if combination.form == Form::Padded {
                item.resize(item.len().next_multiple_of(4), 0);
            }
            reads.extend(self.chunk(&mut regions, position, &item, count, residue)?);
        }
        if combination.form == Form::Nested {
            let elsewhere = self.rng.below(PAGE);
            let zero = self.chunk(&mut regions, 0, &stream, 2, elsewhere)?;
            let place = *self.rng.pick(&[0, reads.len()]);
            reads.splice(place..place, zero);
        }
        let lists = Lists {
            reads,
            ..Lists::default()
        };
        let message = match combination.form {
            Form::Data | Form::Padded => {
                Message::new(Header::new(call.xid, MSG, lists), &stream, Kind::Write)
            }
            Form::Whole | Form::Nested => {
                Message::new(Header::new(call.xid, NOMSG, lists), &[], Kind::Write)
            }
        };
        self.connection
            .send(&message.bytes)
            .map_err(|e| format!("send: {e}"))?;
        let flight = Flight {
            combination,
            message,
            _regions: regions,
        };
        self.flights.insert(call.xid, flight);
        Ok(())
    }

    /// A chunk with these bytes. Each segment has a key that names nothing but it: reading
    /// more than it ends the connection.
    fn chunk(
        &mut self,
        regions: &mut Vec<Region>,
        position: u32,
        bytes: &[u8],
        count: usize,
        residue: usize,
    ) -> Result<Vec<(u32, Segment)>, String> {
        let domain: Rc<Domain> = self.connection.domain.clone();
        let mut rest = bytes;
        let mut residue = residue;
        cut(&mut self.rng, bytes.len(), count)
            .into_iter()
            .map(|len| {
                let (now, later) = rest.split_at(len);
                let crosses = residue + len > PAGE;
                if crosses && len <= TINY && self.connection.is_iwarp() {
                    residue = 0;
                }
                let mut region = Region::exact(&domain, len, Access::ReadOnly, residue)
                    .map_err(|e| e.to_string())?;
                region.fill(0, now);
                let segment = region.segment(0, len);
                regions.push(region);
                rest = later;
                // As clients mostly have it, or anywhere.
                residue = if self.rng.below(4) == 0 {
                    0
                } else {
                    self.rng.below(PAGE)
                };
                Ok((position, segment))
            })
            .collect()
    }

    /// One answer.
    fn receive(&mut self) -> Result<(), String> {
        let until = Instant::now() + self.world.limit();
        let event = loop {
            match self.connection.next(until) {
                Some(Event::Sent) => {}
                event => break event,
            }
        };
        let Some(Event::Received { bytes, .. }) = event else {
            let mut waiting: Vec<_> = self.flights.values().map(|f| f.combination).collect();
            waiting.sort_by_key(|c| c.number);
            let waiting: Vec<_> = waiting.iter().map(|c| format!("\n# {c}")).collect();
            let what = event.map_or("no answer".into(), |e| format!("{e:?}"));
            return Err(format!("{what}, waiting for:{}", waiting.concat()));
        };
        let xid = bytes.first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
        let flight = self
            .flights
            .remove(&xid)
            .ok_or_else(|| format!("an answer with XID {xid:#x} that nothing had"))?;
        let combination = flight.combination;
        let seen = explain(&bytes, &flight.message, &|_| None)
            .map_err(|e| format!("{combination}: {e}"))?;
        let results = &seen.results;
        let all = results.status == 0 && results.count as usize == combination.len;
        if seen.outcome != Outcome::Ok || !all {
            let text = format!("{}, {} bytes written", seen.describe(), results.count);
            self.fault(combination, &text);
        }
        Ok(())
    }

    fn fault(&mut self, combination: Combination, text: &str) {
        self.faults
            .entry(combination.segments)
            .or_default()
            .push(format!("{combination}: {text}"));
    }

    /// Compare over TCP what these WRITEs, one behind the other in the file, have stored.
    fn look(&mut self, batch: &[Combination]) -> Result<(), String> {
        let from = batch[0].offset;
        let len = batch.iter().map(|c| c.len).sum();
        let right = content(self.seed, from, len);
        if let Some(file) = &mut self.expected {
            file.write_all(&right)
                .map_err(|e| format!("the expected content: {e}"))?;
        }
        let stored = self.stored(from, len)?;
        for &combination in batch {
            let start = (combination.offset - from) as usize;
            let range = start..start + combination.len;
            let has = &stored[start.min(stored.len())..range.end.min(stored.len())];
            let right = &right[range];
            if has != right {
                let differs = |n: &usize| has.get(*n) != right.get(*n);
                let wrong: Vec<_> = (0..right.len()).filter(differs).collect();
                let text = format!(
                    "{} bytes are wrong, byte {} the first",
                    wrong.len(),
                    wrong[0]
                );
                self.fault(combination, &text);
            }
        }
        Ok(())
    }

    fn stored(&mut self, offset: u64, len: usize) -> Result<Vec<u8>, String> {
        let mut stored = Vec::new();
        while stored.len() < len {
            let count = (len - stored.len()).min(1 << 20) as u32;
            let call = nfs3::read(&self.file, offset + stored.len() as u64, count);
            let data = self.world.must(call)?.items.remove(0).data;
            if data.is_empty() {
                break;
            }
            stored.extend(data);
        }
        Ok(stored)
    }

    /// A line for each number of segments, one for the end, one for what had to occur.
    fn verdicts(
        &mut self,
        plan: &[Combination],
        end: Result<(), String>,
        large: bool,
        nested: bool,
    ) -> Vec<(String, Vec<String>)> {
        let mut lines = Vec::new();
        for segments in COUNTS {
            let count = plan.iter().filter(|c| c.segments == segments).count();
            let what = format!("{count} WRITEs from {segments} segments");
            lines.push((what, self.faults.remove(&segments).unwrap_or_default()));
        }
        lines.push(("all were answered".into(), end.err().into_iter().collect()));
        if large || plan.len() >= PAGE {
            let what = "each place, length and form occurs";
            lines.push((what.into(), missing(plan, large, nested)));
        }
        lines
    }
}
