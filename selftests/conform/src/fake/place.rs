// SPDX-License-Identifier: GPL-2.0
//! Results in chunks: what goes where, and what is said of it.

use std::ops::Range;

use super::{items, mutants::Mutant};
use crate::frame::{total, Lists, Segment};

/// A reply that is ready to go.
pub struct Placed {
    pub writes: Vec<(Segment, Vec<u8>)>,
    pub lists: Lists,
    /// Inline; none if it is all in the Reply chunk.
    pub stream: Option<Vec<u8>>,
}

/// Spread data over a chunk. The last segment takes what is left, if there is room or `squeeze`.
fn fill(chunk: &mut [Segment], data: &[u8], squeeze: bool) -> Option<Vec<(Segment, Vec<u8>)>> {
    if total(chunk) < data.len() as u64 && !squeeze {
        return None;
    }
    let mut writes = Vec::new();
    let mut rest = data;
    let last = chunk.len().checked_sub(1)?;
    for (i, segment) in chunk.iter_mut().enumerate() {
        let room = segment.length as usize;
        let len = if i == last {
            rest.len()
        } else {
            room.min(rest.len())
        };
        let (now, later) = rest.split_at(len);
        segment.length = len as u32;
        if len > 0 {
            writes.push((*segment, now.to_vec()));
        }
        rest = later;
    }
    Some(writes)
}

fn clear(chunk: &mut [Segment]) {
    chunk.iter_mut().for_each(|s| s.length = 0);
}

/// Place a reply to a call with these lists; None if it does not fit.
pub fn place(
    stream: &[u8],
    found: &[Range<usize>],
    sent: &Lists,
    threshold: usize,
    mutant: &Mutant,
) -> Option<Placed> {
    let squeeze = mutant.is("squeeze");
    let mut lists = Lists {
        reads: Vec::new(),
        ..sent.clone()
    };
    let mut writes = Vec::new();
    let mut reduced = Vec::new();
    let mut from = 0;
    let mut items = found.iter();
    for chunk in &mut lists.writes {
        let item = items
            .next()
            .filter(|_| !chunk.is_empty() && !mutant.is("unused"));
        let Some(item) = item else {
            clear(chunk);
            continue;
        };
        writes.extend(fill(chunk, &stream[item.clone()], squeeze)?);
        if mutant.is("pad") {
            let pad = item.len().next_multiple_of(4) - item.len();
            writes.extend(behind(chunk, &vec![0; pad]));
        }
        reduced.extend(&stream[from..item.start]);
        from = item.end.next_multiple_of(4);
    }
    reduced.extend(&stream[from..]);
    let header = 16 + lists.encode().len();
    if header > threshold {
        return None;
    }
    let limit = if mutant.is("long-send") {
        12_000
    } else {
        threshold
    };
    let inline = header + reduced.len() <= limit;
    if let Some(chunk) = &mut lists.reply {
        if inline {
            clear(chunk);
        } else {
            writes.extend(fill(chunk, &reduced, squeeze)?);
        }
    } else if !inline {
        return None;
    }
    if mutant.is("beyond") {
        for chunk in lists.echoed() {
            writes.extend(behind(chunk, &[0x77; 4]));
        }
    }
    match mutant.name() {
        "unechoed" => lists = Lists::default(),
        "full" => (lists.writes, lists.reply) = (sent.writes.clone(), sent.reply.clone()),
        "backward" => {
            lists.writes.iter_mut().for_each(|c| c.reverse());
            lists.reply.iter_mut().for_each(|c| c.reverse());
        }
        _ => {}
    }
    Some(Placed {
        writes,
        lists,
        stream: inline.then_some(reduced),
    })
}

/// A write behind what a chunk says.
fn behind(chunk: &[Segment], data: &[u8]) -> Option<(Segment, Vec<u8>)> {
    let last = chunk
        .iter()
        .rev()
        .find(|s| s.length > 0)
        .or(chunk.first())?;
    let segment = Segment {
        offset: last.offset + u64::from(last.length),
        ..*last
    };
    (!data.is_empty()).then(|| (segment, data.to_vec()))
}

/// Change the last byte of each item.
pub fn spoil(stream: &mut [u8], found: &[Range<usize>]) {
    for item in found.iter().filter(|i| !i.is_empty()) {
        stream[item.end - 1] ^= 1;
    }
}

/// What the mutant does to a reply before it is placed.
pub fn change(stream: &mut Vec<u8>, repeated: bool, mutant: &Mutant) {
    match mutant.name() {
        "cut" => stream.truncate(stream.len() - 4),
        "longer" => stream.extend([0; 4]),
        "again-differs" if repeated => *stream.last_mut().expect("a reply") ^= 1,
        // NFS3ERR_IO without attributes.
        "again-fails" if repeated => {
            if let Some(at) = items::results(stream) {
                stream.truncate(at);
                stream.extend(crate::frame::words(&[5, 0, 0]));
            }
        }
        _ => {}
    }
}
