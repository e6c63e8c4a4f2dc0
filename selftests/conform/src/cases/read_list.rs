// SPDX-License-Identifier: GPL-2.0
//! Group D: Read chunks (M049 to M068, M084 to M087).

use crate::{
    bench::Bench,
    case::{check, full, one, Case},
    explain::Seen,
    frame::{Header, Lists, Segment, MSG},
    handle::Handle,
    message::Message,
    nfs3,
    outcome::{Accept, Outcome, EC, OK, RPCERR},
    rpc::{Call, Kind, Status},
    world::pattern,
};

/// A WRITE3 of these bytes to a file of its own, whose data go by Read segments of
/// these lengths (more than the data: the rest of the memory is zero).
pub struct Write {
    pub file: Handle,
    pub data: Vec<u8>,
    pub call: Call,
    pub position: u32,
}

impl Write {
    pub fn new(bench: &mut Bench<'_>, len: usize) -> Result<Self, String> {
        let file = bench.world.fresh_file()?;
        let data = pattern(7, len);
        let call = bench.number(nfs3::write(&file, 0, &data));
        let position = call.item(0).0 as u32;
        Ok(Self {
            file,
            data,
            call,
            position,
        })
    }

    /// RDMA_MSG with this Read list and the reduced stream inline.
    pub fn message(&self, reads: Vec<(u32, Segment)>) -> Message {
        let header = Header::new(
            self.call.xid,
            MSG,
            Lists {
                reads,
                ..Lists::default()
            },
        );
        Message::new(header, &self.call.reduced(0).0, Kind::Write)
    }

    pub fn segments(
        &self,
        bench: &mut Bench<'_>,
        lengths: &[usize],
    ) -> Result<Vec<(u32, Segment)>, String> {
        let mut padded = self.data.clone();
        padded.resize(lengths.iter().sum::<usize>().max(padded.len()), 0);
        Ok(bench
            .source(&padded, lengths)?
            .into_iter()
            .map(|s| (self.position, s))
            .collect())
    }

    /// A reply of success has to mean that the file has the data; any other, that it has nothing.
    pub fn verify(&self, bench: &mut Bench<'_>, seen: &Seen) -> Result<(), String> {
        let stored = bench.world.content(&self.file, 1 << 20)?;
        if seen.outcome == Outcome::Ok && seen.results.status == 0 {
            check(stored == self.data, || {
                format!(
                    "the file has {} bytes, other than the {} sent",
                    stored.len(),
                    self.data.len()
                )
            })
        } else {
            check(stored.is_empty(), || {
                format!("{} stored {} bytes", seen.describe(), stored.len())
            })
        }
    }
}

/// A case of one WRITE whose Read list is made from the right one.
pub fn write_case(
    id: &str,
    rfc: &'static str,
    sends: &str,
    accept: Accept,
    len: usize,
    lengths: &'static [usize],
    change: impl Fn(&mut Vec<(u32, Segment)>, u32) + 'static,
) -> Case {
    full(id, rfc, sends, accept, move |b| {
        let write = Write::new(b, len)?;
        let mut reads = write.segments(b, lengths)?;
        change(&mut reads, write.position);
        let seen = b.ask(&write.message(reads))?;
        write.verify(b, &seen)?;
        Ok(seen)
    })
}

/// A call whose whole stream is in a Position-Zero Read chunk.
pub fn long(bench: &mut Bench<'_>, call: &Call, lengths: &[usize]) -> Result<Message, String> {
    let segments = bench.source(&call.encode(), lengths)?;
    Ok(Message::long(call, Lists::read(0, segments)))
}

/// Segment lengths that split `total` in `count`, nearly equal.
pub fn split(total: usize, count: usize) -> Vec<usize> {
    (0..count)
        .map(|i| total * (i + 1) / count - total * i / count)
        .collect()
}

pub fn cases() -> Vec<Case> {
    let mut cases = positions();
    cases.extend(order());
    cases.extend(arguments());
    cases
}

fn positions() -> Vec<Case> {
    let mut cases = Vec::new();
    for (letter, delta) in [("a", 1), ("b", 2), ("c", 3)] {
        cases.push(write_case(
            &format!("M049{letter}"),
            "8166 3.4.5",
            &format!("Read chunk {delta} beyond its right Position"),
            EC,
            100,
            &[100],
            move |r, _| {
                r.iter_mut().for_each(|e| e.0 += delta);
            },
        ));
    }
    for (id, value) in [("M049d", 1), ("M049e", 2), ("M049f", 3), ("M049g", 0x5d)] {
        cases.push(one(
            id,
            "8166 3.4.5",
            format!("NULL with a Read chunk at Position {value}"),
            EC,
            move |b| {
                let chunk = b.chunk(&[8])?;
                Ok(Message::inline(
                    &b.number(Call::null()),
                    Lists::read(value, chunk),
                ))
            },
        ));
    }
    for (id, value) in [
        ("M050", 44u32),
        ("M050b", 48),
        ("M052", 0xffff_fffc),
        ("M052b", 0x8000_0000),
    ] {
        cases.push(one(
            id,
            "8166 3.4.5",
            format!("NULL of 40 bytes, Read chunk at Position {value:#x}"),
            EC,
            move |b| {
                let chunk = b.chunk(&[8])?;
                Ok(Message::inline(
                    &b.number(Call::null()),
                    Lists::read(value, chunk),
                ))
            },
        ));
    }
    cases.push(write_case(
        "M051",
        "8166 3.4.5",
        "WRITE3, its Read chunk at the end of the inline stream",
        OK,
        100,
        &[100],
        |_, _| {},
    ));
    cases
}

fn order() -> Vec<Case> {
    vec![
        write_case(
            "M055",
            "8166 3.4.5",
            "second Read chunk overlaps the first",
            EC,
            100,
            &[64, 36],
            |r, p| r[1].0 = p + 60,
        ),
        write_case(
            "M056a",
            "8166 3.4.5",
            "second Read chunk inside the first one's roundup",
            EC,
            8,
            &[5, 3],
            |r, p| r[1].0 = p + 4,
        ),
        write_case(
            "M056b",
            "8166 3.4.5",
            "second Read chunk inside the first one's roundup, not aligned",
            EC,
            8,
            &[5, 3],
            |r, p| r[1].0 = p + 6,
        ),
        write_case(
            "M057",
            "8166 3.4.5",
            "WRITE3 of 0 bytes, a Read segment of length 0",
            OK,
            0,
            &[0],
            |_, _| {},
        ),
        write_case(
            "M058",
            "8166 3.4.5",
            "a Read segment of length 0 between two others",
            OK,
            100,
            &[60, 0, 40],
            |_, _| {},
        ),
        write_case(
            "M058b",
            "8166 3.4.5",
            "Read segments of length 0 first and last",
            OK,
            100,
            &[0, 100, 0],
            |_, _| {},
        ),
    ]
}

fn arguments() -> Vec<Case> {
    let mut cases = vec![full(
        "M085b",
        "8166 6.1",
        "the file handle of a WRITE3 in a Read chunk, and its data in another",
        EC,
        |b| {
            let write = Write::new(b, 16)?;
            let mut stream = write.call.encode();
            let handle = write.file.len();
            let (first, second) = (24 + write.call.auth.len() + 4, write.position as usize);
            let one = b.source(&stream[first..first + handle], &[8, handle - 8])?;
            let two = b.source(&write.data, &[8, 8])?;
            stream.drain(second..second + 16);
            stream.drain(first..first + handle.next_multiple_of(4));
            let reads = one.into_iter().map(|s| (first as u32, s));
            let lists = Lists {
                reads: reads
                    .chain(two.into_iter().map(|s| (write.position, s)))
                    .collect(),
                ..Lists::default()
            };
            let header = Header::new(write.call.xid, MSG, lists);
            let seen = b.ask(&Message::new(header, &stream, Kind::Write))?;
            write.verify(b, &seen)?;
            Ok(seen)
        },
    )];
    cases.push(full(
        "M085",
        "8166 6.1",
        "the name of a LOOKUP in a Read chunk",
        EC,
        |b| {
            let dir = b.world.files.dir.clone();
            let call = b.number(nfs3::lookup(&dir, "smal"));
            let mut stream = call.encode();
            let at = stream.len() - 4;
            let name = stream.split_off(at);
            let chunk = b.source(&name, &[4])?;
            let header = Header::new(call.xid, MSG, Lists::read(at as u32, chunk));
            b.ask(&Message::new(header, &stream, Kind::Lookup))
        },
    ));
    for (letter, delta, whole) in [
        ("a", -1i64, 100),
        ("b", 1, 100),
        ("c", -4, 100),
        ("d", 4, 100),
        ("e", -100, 100),
        ("f", 4096, 100),
        ("g", -4096, 4196),
    ] {
        let sends = format!("WRITE3 of {whole} bytes, {delta:+} in its Read chunk");
        // A chunk that is too short leaves arguments that cannot be read, but for one byte less:
        // the roundup that the server supplies (RFC 8166, section 3.4.5.2) makes 100 of it. One
        // that is too long leaves bytes behind the arguments, which RFC 5531 does not forbid: then
        // the file has to have the 100 that the call speaks of.
        let accept = if delta < -1 { RPCERR } else { RPCERR | OK };
        cases.push(full(
            format!("M086{letter}"),
            "8166 4.5.2",
            sends,
            accept,
            move |b| {
                let write = Write::new(b, whole)?;
                let len = (whole as i64 + delta) as usize;
                let reads = write.segments(b, &[len])?;
                let seen = b.ask(&write.message(reads))?;
                let stored = b.world.content(&write.file, 8192)?;
                check(
                    stored.len() <= whole && stored[..] == write.data[..stored.len()]
                        || delta == -1 && stored[..99] == write.data[..99] && stored[99] == 0,
                    || {
                        format!(
                            "{}: the file has {} bytes, not those of the chunk",
                            seen.describe(),
                            stored.len()
                        )
                    },
                )?;
                check(delta >= 0 || stored.is_empty() || delta == -1, || {
                    format!("{} bytes stored of a chunk of {len}", stored.len())
                })?;
                check(seen.outcome != Outcome::Ok || stored.len() == whole, || {
                    format!("{}: {} bytes stored", seen.describe(), stored.len())
                })?;
                let garbage = seen.status == Some(Status::Accepted(4, None));
                check(seen.outcome != Outcome::RpcError || garbage, || {
                    seen.describe()
                })?;
                Ok(seen)
            },
        ));
    }
    cases.push(one(
        "M087",
        "8166 3.4.5",
        "a Read chunk on a NULL call",
        OK | RPCERR | EC,
        |b| {
            let chunk = b.chunk(&[8])?;
            Ok(Message::inline(
                &b.number(Call::null()),
                Lists::read(40, chunk),
            ))
        },
    ));
    cases
}
