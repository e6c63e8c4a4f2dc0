// SPDX-License-Identifier: GPL-2.0
//! What cases send, as the fuzzer's seeds.

use std::panic::{catch_unwind, AssertUnwindSafe};

use super::Fuzzer;
use crate::{
    bench::{Bench, Taken},
    case::Case,
    cases,
    connection::{Connection, Options},
    frame::Segment,
    message::Message,
    mutate::parse,
    outcome::Outcome,
    rpc::Kind,
    world::World,
};

/// The longest region of a case that is taken along, and how many.
pub const LONGEST: usize = 4096;
const MOST: usize = 32;

/// Where a message names a region: the offset of a segment in it, the region, the offset in that.
struct Site {
    at: usize,
    region: usize,
    offset: u64,
}

/// A message without the keys and addresses that it was made with.
pub struct Shape {
    bytes: Vec<u8>,
    kind: Kind,
    /// What the case's regions hold.
    regions: Vec<Vec<u8>>,
    sites: Vec<Site>,
    /// The case accepts that the connection is closed.
    closes: bool,
}

impl Shape {
    fn new(taken: Taken, closes: bool) -> Option<Self> {
        let (bytes, regions) = (taken.message.bytes, taken.regions);
        let fits = regions.len() <= MOST && regions.iter().all(|r| r.content.len() <= LONGEST);
        if !fits || taken.message.guard.is_some() {
            return None;
        }
        let mut sites = Vec::new();
        for at in (16..bytes.len().saturating_sub(15)).step_by(4) {
            let segment = segment(&bytes[at..]);
            let region = regions.iter().position(|r| {
                let offset = segment.offset.wrapping_sub(r.address);
                r.key == segment.handle && offset <= r.content.len() as u64
            });
            sites.extend(region.map(|region| Site {
                at,
                region,
                offset: segment.offset - regions[region].address,
            }));
        }
        Some(Self {
            bytes,
            kind: taken.message.kind,
            regions: regions.into_iter().map(|r| r.content).collect(),
            sites,
            closes,
        })
    }
}

fn segment(bytes: &[u8]) -> Segment {
    let word =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Segment {
        handle: word(0),
        length: word(4),
        offset: u64::from(word(8)) << 32 | u64::from(word(12)),
    }
}

/// The first message of each case, as far as it can be had without a server's answer.
pub fn shapes(world: &mut World) -> Result<Vec<Shape>, String> {
    let mut connection = Some(world.connect(&Options::default())?);
    let mut shapes: Vec<Shape> = Vec::new();
    for case in cases::messages() {
        let taken = take(world, &case, &mut connection);
        let closes = case.accept.has(Outcome::Close);
        shapes.extend(taken.and_then(|taken| Shape::new(taken, closes)));
    }
    if shapes.is_empty() {
        return Err("no case has a message to begin with".into());
    }
    Ok(shapes)
}

fn take(world: &mut World, case: &Case, connection: &mut Option<Connection>) -> Option<Taken> {
    let mut bench = Bench::new(world, case.accept, connection.take());
    bench.taken = Some(None);
    let run = AssertUnwindSafe(|| (case.run)(&mut bench));
    let _ = catch_unwind(run);
    let taken = bench.taken.take().flatten();
    *connection = bench.leave();
    taken
}

impl Fuzzer<'_> {
    /// A shape with memory of this place in a round, and whether the case accepts CLOSE.
    pub fn shaped(
        &mut self,
        number: usize,
        slot: usize,
        xid: u32,
    ) -> Result<(Message, bool), String> {
        let shapes = std::mem::take(&mut self.shapes);
        let made = self.fill(&shapes[number], slot, xid);
        self.shapes = shapes;
        Ok((made?, self.shapes[number].closes))
    }

    fn fill(&mut self, shape: &Shape, slot: usize, xid: u32) -> Result<Message, String> {
        let mut bytes = shape.bytes.clone();
        let was = bytes.get(..4).map(<[u8]>::to_vec);
        let renumber = |bytes: &mut [u8]| {
            if bytes.len() >= 4 && Some(&bytes[..4]) == was.as_deref() {
                bytes[..4].copy_from_slice(&xid.to_be_bytes());
            }
        };
        renumber(&mut bytes);
        if let Some((_, payload)) = parse(&bytes) {
            let from = bytes.len() - payload.len();
            renumber(&mut bytes[from..]);
        }
        let mut addresses = Vec::new();
        for (i, content) in shape.regions.iter().enumerate() {
            let mut content = content.clone();
            // The call of a Position-Zero chunk.
            renumber(&mut content);
            addresses.push(self.memory(slot, i, &content)?);
        }
        for site in &shape.sites {
            let Segment { handle, offset, .. } = addresses[site.region];
            let offset = offset + site.offset;
            bytes[site.at..site.at + 4].copy_from_slice(&handle.to_be_bytes());
            bytes[site.at + 8..site.at + 16].copy_from_slice(&offset.to_be_bytes());
        }
        let lists = parse(&bytes).map(|(lists, _)| lists).unwrap_or_default();
        Ok(Message {
            kind: shape.kind,
            lists,
            ..Message::raw(bytes)
        })
    }
}
