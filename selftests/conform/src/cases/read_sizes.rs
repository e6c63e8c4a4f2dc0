// SPDX-License-Identifier: GPL-2.0
//! Group D: how much Read chunks hold (M059 to M068, M084).

use super::{
    flow::{granted, wide},
    read_list::{write_case, Write},
};
use crate::{
    bench::Bench,
    case::{check, full, one, skip, Case},
    frame::{Lists, Segment, Words},
    message::Message,
    nfs3::opaque,
    outcome::{Accept, Outcome, CLOSE, DROP, EC, OK, RPCERR},
    rpc::{self, Call, Kind, Status, NFS},
};

/// The most that a WRITE3 may have, from FSINFO.
fn wtmax(b: &mut Bench<'_>) -> Result<usize, String> {
    let call = Call::new(NFS, 3, 19, Kind::Unknown, opaque(&b.world.files.root));
    let (xid, stream) = b.world.tcp.raw(call)?;
    let mut words = Words::new(&stream);
    check(
        rpc::reply(&mut words, xid)? == Status::Success && words.word()? == 0,
        || "FSINFO over TCP".into(),
    )?;
    if words.boolean()? {
        words.take(84)?;
    }
    words.take(12)?;
    Ok(words.word()? as usize)
}

/// A WRITE of 64 bytes, memory, and the most bytes of it that the server takes in one Read chunk of
/// that call; None if it takes twice as many as a WRITE may have.
fn largest(b: &mut Bench<'_>) -> Result<Option<(Write, usize, usize)>, String> {
    let top = 2 * wtmax(b)?;
    let region = b.region(top)?;
    let mut write = Write::new(b, 64)?;
    let data = write.data.clone();
    b.fill(region, 0, &data);
    // Units of 4: the first is taken, the second is not.
    let (mut taken, mut refused) = (16, top / 4);
    let mut first = true;
    while refused - taken > 1 {
        let next = if first {
            refused
        } else {
            (taken + refused) / 2
        };
        write.call = b.number(write.call.clone());
        let segment = b.segment(region, 0, next * 4);
        let seen = b.ask(&write.message(vec![(write.position, segment)]))?;
        match seen.outcome {
            Outcome::Chunk => refused = next,
            Outcome::Ok | Outcome::RpcError if first => return Ok(None),
            Outcome::Ok | Outcome::RpcError => taken = next,
            _ => return Err(format!("{} bytes: {}", next * 4, seen.describe())),
        }
        first = false;
    }
    Ok(Some((write, region, taken * 4)))
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Of the longest WRITE that the server takes: it may read what it could store.
    type Lengths = fn(u32) -> Vec<u32>;
    let lengths: [(&str, &str, Lengths); 9] = [
        ("M059", "a Read segment of 0xffffffff", |_| {
            vec![0xffff_ffff]
        }),
        ("M059b", "a Read segment of 0x80000000", |_| {
            vec![0x8000_0000]
        }),
        ("M059c", "a Read segment of 0xfffffff0", |_| {
            vec![0xffff_fff0]
        }),
        (
            "M060",
            "two Read segments of 0x80000000: the sum wraps",
            |_| vec![0x8000_0000; 2],
        ),
        (
            "M061",
            "three Read segments of 0x55555556: the sum wraps",
            |_| vec![0x5555_5556; 3],
        ),
        (
            "M062",
            "a Read segment of 16 times the longest WRITE and a byte",
            |most| vec![most.saturating_mul(16).saturating_add(1)],
        ),
        (
            "M062b",
            "four Read segments of 4 times the longest WRITE",
            |most| vec![most.saturating_mul(4); 4],
        ),
        (
            "M062c",
            "a Read segment of twice the longest WRITE and a byte",
            |most| vec![most.saturating_mul(2).saturating_add(1)],
        ),
        (
            "M060b",
            "Read segments 0xfffffff0 and 0x20: the sum wraps",
            |_| vec![0xffff_fff0, 0x20],
        ),
    ];
    for (id, sends, lengths) in lengths {
        cases.push(full(id, "8166 8.1.4", sends, EC, move |b| {
            let most = wtmax(b)? as u32;
            let write = Write::new(b, 16)?;
            let (position, first) = write.segments(b, &[16])?[0];
            let reads = lengths(most)
                .into_iter()
                .map(|length| (position, Segment { length, ..first }));
            let seen = b.ask(&write.message(reads.collect()))?;
            write.verify(b, &seen)?;
            Ok(seen)
        }));
    }
    // Up to three may be taken by a server that counts them without their roundup; four are too many.
    cases.push(full(
        "M062d",
        "8166 8.1.4",
        "one to four bytes more than the longest Read chunk that is taken",
        EC,
        |b| {
            let Some((mut write, region, most)) = largest(b)? else {
                return Ok(skip("the server takes more than twice its wtmax"));
            };
            let mut outcomes = Vec::new();
            let mut last = None;
            for more in 1..=4 {
                write.call = b.number(write.call.clone());
                let segment = b.segment(region, 0, most + more);
                let seen = b.ask(&write.message(vec![(write.position, segment)]))?;
                outcomes.push(seen.outcome);
                last = Some(seen);
            }
            let first = outcomes.iter().position(|o| *o == Outcome::Chunk);
            let (taken, refused) = outcomes.split_at(first.unwrap_or(outcomes.len()));
            check(
                taken
                    .iter()
                    .all(|o| matches!(o, Outcome::Ok | Outcome::RpcError))
                    && refused.iter().all(|o| *o == Outcome::Chunk),
                || format!("beyond {most} bytes: {outcomes:?}"),
            )?;
            last.ok_or_else(String::new)
        },
    ));
    for (id, len, sends) in [
        ("M063", 1 << 20, "WRITE3 of 1 MiB in one Read segment"),
        ("M063b", 65536, "WRITE3 of 64 KiB in one Read segment"),
    ] {
        cases.push(full(id, "8166 3.4.5", sends, OK, move |b| {
            let len = len.min(b.world.most_written());
            let write = Write::new(b, len)?;
            let reads = write.segments(b, &[len])?;
            let seen = b.ask(&write.message(reads))?;
            check(seen.results.status == 0, || seen.describe())?;
            write.verify(b, &seen)?;
            Ok(seen)
        }));
    }
    // How much a call may have in all is the server's to say (RFC 8166, section 8.1.4): what one
    // chunk may not have, two together may not have either, nor one with more inline behind it.
    for (id, behind, sends) in [
        (
            "M064",
            0,
            "two Read chunks with 4 bytes more together than one may have",
        ),
        (
            "M065",
            1200,
            "as many bytes as a Read chunk may have, and 1200 inline behind them",
        ),
    ] {
        cases.push(full(id, "8166 8.1.4", sends, EC, move |b| {
            let Some((mut write, region, most)) = largest(b)? else {
                return Ok(skip("the server takes more than twice its wtmax"));
            };
            write.call = b.number(write.call.clone());
            let half = most / 8 * 4;
            let reads = if behind == 0 {
                vec![
                    (write.position, b.segment(region, 0, half)),
                    (
                        write.position + half as u32,
                        b.segment(region, half, most + 4 - half),
                    ),
                ]
            } else {
                vec![(write.position, b.segment(region, 0, most))]
            };
            let message = write.message(reads).and(&vec![0; behind]);
            let mut seen = b.ask(&message)?;
            seen.note = format!("one chunk may have {most}");
            Ok(seen)
        }));
    }
    cases.push(full(
        "M066",
        "8267 6.4.2",
        "as many 4-byte Read segments as fit, one Position",
        EC | OK,
        |b| {
            let count = (b.call_limit()? - 28 - 140) / 24;
            let write = Write::new(b, count * 4)?;
            let region = b.region(count * 4)?;
            b.fill(region, 0, &write.data);
            let reads = (0..count)
                .map(|i| (write.position, b.segment(region, i * 4, 4)))
                .collect();
            let seen = b.ask(&write.message(reads))?;
            write.verify(b, &seen)?;
            Ok(seen)
        },
    ));
    let many = |b: &mut Bench<'_>| -> Result<Message, String> {
        let count = (b.call_limit()? - 28) / 24 - 20;
        let region = b.region(count * 4)?;
        let call = b.number(Call::null());
        let reads = (0..count)
            .map(|i| (40 + 4 * i as u32, b.segment(region, i * 4, 4)))
            .collect();
        Ok(Message::inline(
            &call,
            Lists {
                reads,
                ..Lists::default()
            },
        ))
    };
    // Legal, so a server that can do it may (section 4.5.2 applies to one that cannot).
    cases.push(one(
        "M067",
        "8267 6.4.2",
        "as many Read chunks as fit, each at its own Position",
        EC | OK | RPCERR,
        many,
    ));
    cases.push(full(
        "M068",
        "8267 6.4.2",
        "messages of many Read chunks, as many at once as granted",
        EC | OK | RPCERR,
        move |b| {
            let grant = granted(b)?.min(128);
            b.reconnect(&wide(grant))?;
            b.must(Call::null())?;
            let messages = (0..grant).map(|_| many(b)).collect::<Result<Vec<_>, _>>()?;
            messages.iter().try_for_each(|m| b.post(m))?;
            let answers = b.answers(&messages, grant)?;
            check(answers.end.is_none(), || {
                format!("after {} answers: {:?}", answers.count, answers.end)
            })?;
            let mut first = answers.seen[0][0].clone();
            check(
                answers
                    .seen
                    .iter()
                    .all(|s| s.len() == 1 && s[0].outcome == first.outcome),
                || "the answers differ".into(),
            )?;
            first.note = format!("{grant} messages");
            Ok(first)
        },
    ));
    cases.push(write_case(
        "M084",
        "8166 3.4.3",
        "a Read segment that wraps the 64-bit address",
        EC | CLOSE,
        100,
        &[100],
        |r, _| r[0].1.offset = u64::MAX - 10,
    ));
    cases.extend(places());
    cases.extend(budgets());
    cases
}

/// Read chunks in every kind of place (field report C02). Where the place is legal
/// but not the data's, the call is another one: anything but a stored byte is right.
fn places() -> Vec<Case> {
    let mut cases = Vec::new();
    type Place = (&'static str, fn(u32, u32) -> u32, Accept);
    let any = EC | RPCERR | DROP | CLOSE | OK;
    let places: [Place; 8] = [
        ("0", |_, _| 0, EC),
        ("4", |_, _| 4, any),
        ("right", |right, _| right, OK),
        ("before", |_, len| len - 4, any),
        ("beyond", |_, len| len + 4, EC),
        ("far", |_, len| len + 4096, EC),
        ("2^31", |_, _| 1 << 31, EC),
        ("2^32-4", |_, _| u32::MAX - 3, EC),
    ];
    for (name, place, accept) in places {
        cases.push(full(
            format!("C02.{name}"),
            "8166 3.4.5",
            format!("WRITE3, its Read chunk at Position: {name}"),
            accept,
            move |b| {
                let write = Write::new(b, 100)?;
                let len = write.call.reduced(0).0.len() as u32;
                let position = place(write.position, len);
                let reads = write.segments(b, &[100])?;
                let reads = reads.into_iter().map(|(_, s)| (position, s)).collect();
                let seen = b.ask(&write.message(reads))?;
                write.verify(b, &seen)?;
                Ok(seen)
            },
        ));
        // One more chunk in front, at the beginning of the call, in list order and against it.
        for reversed in [false, true] {
            let order = if reversed { "descending" } else { "ascending" };
            // Two chunks and only one eligible item: to be refused, or a call that makes no sense.
            let accept = if accept == OK { any } else { accept };
            cases.push(full(
                format!("C02.{name}.{order}"),
                "8166 3.4.5",
                format!("a Read chunk at 8 and one at Position: {name}, {order}"),
                accept,
                move |b| {
                    let write = Write::new(b, 100)?;
                    let len = write.call.reduced(0).0.len() as u32;
                    let position = place(write.position, len + 8);
                    let first = b.chunk(&[8])?[0];
                    let second = write.segments(b, &[100])?[0].1;
                    let mut reads = vec![(8, first), (position, second)];
                    if reversed {
                        reads.reverse();
                    }
                    let seen = b.ask(&write.message(reads))?;
                    let stored = b.world.content(&write.file, 1 << 20)?;
                    check(stored.is_empty(), || {
                        format!("{} bytes stored", stored.len())
                    })?;
                    Ok(seen)
                },
            ));
        }
    }
    cases
}

fn budgets() -> Vec<Case> {
    let mut cases = Vec::new();
    // The first is the largest WRITE a server of this payload takes; what exceeds
    // it is refused, or cut to it (RFC 1813, 3.3.7).
    for (id, more) in [("C04.exact", 0usize), ("C04.word", 4), ("C04.page", 4096)] {
        let accept = if more == 0 { OK } else { OK | EC | RPCERR };
        cases.push(full(
            id,
            "8166 8.1.4",
            format!("WRITE3 of 1 MiB and {more} bytes, the last {more} in a segment of their own"),
            accept,
            move |b| {
                let most = b.world.most_written();
                let write = Write::new(b, most + more)?;
                let reads = write.segments(b, &[most, more])?;
                let seen = b.ask(&write.message(reads))?;
                if seen.outcome == Outcome::Ok && seen.results.status == 0 {
                    let stored = b.world.content(&write.file, 1 << 20)?;
                    check(stored == write.data[..stored.len()], || "other data".into())?;
                    check(
                        stored.len() == (seen.results.count as usize).min(1 << 20),
                        || format!("{} bytes stored, {} said", stored.len(), seen.results.count),
                    )?;
                }
                Ok(seen)
            },
        ));
    }
    cases.push(full(
        "C04.bytes",
        "8166 8.1.4",
        "WRITE3 from 100 segments of 1 byte",
        OK | EC,
        |b| {
            let write = Write::new(b, 100)?;
            let region = b.region(100)?;
            b.fill(region, 0, &write.data);
            let reads = (0..100)
                .map(|i| (write.position, b.segment(region, i, 1)))
                .collect();
            let seen = b.ask(&write.message(reads))?;
            write.verify(b, &seen)?;
            Ok(seen)
        },
    ));
    cases.push(full(
        "C06",
        "8166 8.1.4",
        "Read segments of 4 times the longest WRITE, 2^31 and 2^32-1, 90 calls on one connection",
        EC,
        |b| {
            let most = (wtmax(b)? as u32).saturating_mul(4);
            let mut last = None;
            for i in 0..90 {
                let write = Write::new(b, 16)?;
                let (position, segment) = write.segments(b, &[16])?[0];
                let length = [most, 1 << 31, u32::MAX][i % 3];
                let seen =
                    b.ask(&write.message(vec![(position, Segment { length, ..segment })]))?;
                check(seen.outcome == Outcome::Chunk, || {
                    format!("call {i}: {}", seen.describe())
                })?;
                b.evidence.clear();
                last = Some(seen);
            }
            last.ok_or_else(String::new)
        },
    ));
    cases
}
