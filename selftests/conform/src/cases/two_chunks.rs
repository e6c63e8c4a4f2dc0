// SPDX-License-Identifier: GPL-2.0
//! Group D: two Read chunks with data, and more (M053, M054, M081, U11). NFSv4 has COMPOUNDs with
//! several eligible arguments; RFC 8267, section 6.4.2, lets a server limit itself to one chunk
//! besides the Position-Zero one, so ERR_CHUNK is right, too, if then nothing is stored.

use super::{
    positive::{stored, succeeded},
    read_list::split,
};
use crate::{
    bench::Bench,
    case::{check, full, Case},
    connection::Options,
    explain::Seen,
    frame::{Header, Lists, Segment, MSG, NOMSG},
    message::Message,
    nfs4::Compound,
    outcome::{Outcome, EC, OK, RPCERR},
    private::Settings,
    world::pattern,
};

/// The order in which segments are listed.
#[derive(Clone, Copy)]
enum Order {
    Ascending,
    Descending,
    Interleaved,
}

impl Order {
    fn list(self, chunks: Vec<Vec<(u32, Segment)>>) -> Vec<(u32, Segment)> {
        match self {
            Self::Ascending => chunks.concat(),
            Self::Descending => chunks.into_iter().rev().flatten().collect(),
            Self::Interleaved => {
                let most = chunks.iter().map(Vec::len).max().unwrap_or(0);
                (0..most)
                    .flat_map(|i| chunks.iter().filter_map(move |c| c.get(i).copied()))
                    .collect()
            }
        }
    }
}

/// COMPOUND of a WRITE for each length, one behind the other in one file, and GETATTR: the data of
/// each in a Read chunk of so many segments.
fn writes(
    b: &mut Bench<'_>,
    lengths: &[usize],
    segments: usize,
    order: Order,
    zero: bool,
) -> Result<Seen, String> {
    let file = b.world.fresh_file()?;
    let mut compound = Compound::new(0).handle(&file);
    let mut at = 0;
    for &len in lengths {
        compound = compound.write(at as u64, &pattern(at, len));
        at += len;
    }
    let call = b.number(compound.getattr().call());
    let (stream, items) = call.reduced_all();
    let mut chunks = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let position = call.item(n).0 as u32;
        let segments = b.source(item, &split(item.len(), segments))?;
        chunks.push(segments.into_iter().map(|s| (position, s)).collect());
    }
    let mut payload = &stream[..];
    if zero {
        let parts = split(stream.len(), segments);
        let base = b.source(&stream, &parts)?;
        chunks.insert(0, base.into_iter().map(|s| (0, s)).collect());
        payload = &[];
    }
    let lists = Lists {
        reads: order.list(chunks),
        ..Lists::default()
    };
    let header = Header::new(call.xid, if zero { NOMSG } else { MSG }, lists);
    let seen = b.ask(&Message::new(header, payload, call.kind))?;
    if seen.outcome == Outcome::Ok {
        succeeded(&seen)?;
        let count = seen.results.ops.len();
        check(count == lengths.len() + 2, || {
            format!("{:?}", seen.results.ops)
        })?;
        stored(b, &file, &pattern(0, at))?;
    } else {
        stored(b, &file, &[])?;
    }
    Ok(seen)
}

/// For each of these lengths; the last that was not OK, if there is one.
fn all(
    b: &mut Bench<'_>,
    lengths: &[[usize; 2]],
    order: Order,
    zero: bool,
) -> Result<Seen, String> {
    let mut last = None;
    for pair in lengths {
        let segments = if pair[0] < 3 { 1 } else { 3 };
        let seen = writes(b, pair, segments, order, zero)
            .map_err(|e| format!("{} and {} bytes: {e}", pair[0], pair[1]))?;
        if seen.outcome != Outcome::Ok {
            return Ok(seen);
        }
        last = Some(seen);
    }
    last.ok_or_else(String::new)
}

/// Odd lengths, whose roundups are in no chunk, in front of and behind page boundaries.
const LENGTHS: [[usize; 2]; 5] = [[1, 2], [5, 3], [1021, 333], [4097, 1], [32771, 16385]];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (id, order, text) in [
        (
            "M053.up",
            Order::Ascending,
            "in ascending order of Position",
        ),
        ("M053", Order::Descending, "in descending order of Position"),
        ("M054", Order::Interleaved, "segments of both in turn"),
    ] {
        for (suffix, zero, also) in [("", false, ""), ("z", true, ", and a Position-Zero chunk")] {
            cases.push(full(
                format!("{id}{suffix}"),
                "8166 3.4.5",
                format!("WRITE, WRITE and GETATTR with two Read chunks {text}{also}"),
                OK | EC,
                move |b| all(b, &LENGTHS, order, zero),
            ));
        }
    }
    cases.push(full(
        "M081",
        "8166 3.4.5",
        "a Position-Zero chunk and two more, the second beyond what the first one holds",
        OK | EC,
        |b| writes(b, &[4001, 402], 2, Order::Ascending, true),
    ));
    // RFC 8267 says what a server has to take at least: one that takes more is right, too.
    cases.push(full(
        "U11",
        "8267 6.4.2",
        "COMPOUND of 17 WRITEs of 4 bytes, each with a Read chunk",
        OK | EC | RPCERR,
        |b| writes(b, &[4; 17], 1, Order::Ascending, false),
    ));
    cases.push(full(
        "U11b",
        "8267 6.4.2",
        "WRITE from 300 segments, or as many as the server's calls have room for",
        OK | EC | RPCERR,
        |b| {
            b.reconnect(&Options {
                private: Settings {
                    flags: 0,
                    send: 63,
                    receive: 63,
                }
                .encode(),
                receive_size: 65536,
                receives: 8,
                ..Options::default()
            })?;
            let count = ((b.call_limit()? - 300) / 24).min(300);
            let mut seen = writes(b, &[3001], count, Order::Ascending, false)?;
            seen.note = format!("{count} segments");
            Ok(seen)
        },
    ));
    cases
}
