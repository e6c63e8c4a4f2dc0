// SPDX-License-Identifier: GPL-2.0
//! Group E: Write lists (M089 to M103, C08).

use crate::{
    bench::Bench,
    case::{check, full, one, setup, Case},
    explain::Seen,
    frame::{total, words, Header, Lists, Segment, MSG},
    message::Message,
    nfs3,
    outcome::{Accept, Outcome, EC, OK, RPCERR},
    rpc::Call,
    world::pattern,
};

/// READ3 of the big file.
pub fn read_call(bench: &mut Bench<'_>, from: usize, len: usize) -> Call {
    let big = bench.world.files.big.clone();
    bench.number(nfs3::read(&big, from as u64, len as u32))
}

/// The reply has these bytes of the big file, in the chunk or not.
pub fn good_read(seen: &Seen, from: usize, len: usize, reduced: bool) -> Result<(), String> {
    check(
        seen.outcome == Outcome::Ok && seen.results.status == 0,
        || seen.describe(),
    )?;
    let item = seen.results.items.first().ok_or("no data in the reply")?;
    check(item.data == pattern(from, len), || {
        format!("{} bytes that are not those of the file", item.data.len())
    })?;
    check(item.reduced == reduced, || {
        format!(
            "the data are {}",
            if reduced {
                "inline"
            } else {
                "in the Write chunk"
            }
        )
    })
}

/// READ3 into one Write chunk of segments of these lengths.
fn read_into(
    id: &str,
    rfc: &'static str,
    sends: &str,
    accept: Accept,
    len: usize,
    lengths: &'static [usize],
) -> Case {
    full(id, rfc, sends, accept, move |b| {
        let chunk = b.chunk(lengths)?;
        let call = read_call(b, 33, len);
        let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
        if seen.outcome == Outcome::Ok {
            good_read(&seen, 33, len, true)?;
            check(total(&seen.lists.writes[0]) == len as u64, || {
                "the lengths do not add up".into()
            })?;
        }
        Ok(seen)
    })
}

/// Segments whose length is not that of the memory behind: the first is `region` bytes.
fn claimed(bench: &mut Bench<'_>, memory: usize, lengths: &[u32]) -> Result<Vec<Segment>, String> {
    let region = bench.region(memory)?;
    let first = bench.segment(region, 0, memory);
    Ok(lengths
        .iter()
        .map(|&length| Segment { length, ..first })
        .collect())
}

/// READDIR whose reply is `len` bytes of RPC, from asking once with a generous chunk.
pub fn readdir_len(bench: &mut Bench<'_>) -> Result<(Call, usize), String> {
    setup(long_readdir(bench))
}

fn long_readdir(bench: &mut Bench<'_>) -> Result<(Call, usize), String> {
    let many = bench.world.files.many.clone();
    let chunk = bench.chunk(&[16384])?;
    let call = bench.number(nfs3::readdir(&many, 8192));
    let seen = bench.ask(&Message::inline(&call, Lists::reply(chunk)))?;
    check(
        seen.outcome == Outcome::Ok && seen.results.status == 0,
        || seen.describe(),
    )?;
    check(!seen.inline && seen.stream.len() > 4096, || {
        format!("READDIR of {} bytes came inline", seen.stream.len())
    })?;
    Ok((bench.number(nfs3::readdir(&many, 8192)), seen.stream.len()))
}

pub fn cases() -> Vec<Case> {
    let mut cases = counts();
    cases.extend(lengths());
    cases
}

fn counts() -> Vec<Case> {
    let mut cases = vec![full(
        "M089",
        "8166 4.3.2.3",
        "READ3 with an empty Write chunk",
        OK,
        |b| {
            let call = read_call(b, 0, 100);
            let seen = b.ask(&Message::inline(&call, Lists::write(Vec::new())))?;
            good_read(&seen, 0, 100, false)?;
            Ok(seen)
        },
    )];
    for (id, count) in [
        ("M090", u32::MAX),
        ("M091", 0x1000_0000),
        ("M092a", 0x0fff_ffff),
        ("M092b", 0x8000_0000),
        ("M092c", 0x7fff_ffff),
        ("M092d", 0x1000_0001),
        ("M093", 3),
        ("M092e", 0x10_0000),
    ] {
        cases.push(one(
            id,
            "8166 4.5.2",
            format!("a Write chunk that claims {count:#x} segments and has one"),
            EC,
            move |b| {
                let chunk = b.chunk(&[4096])?;
                Ok(Message::inline(&read_call(b, 0, 100), Lists::write(chunk))
                    .poke(24, count)
                    .cut(64))
            },
        ));
        let id = id.replace("M09", "M105.");
        cases.push(one(
            id,
            "8166 4.5.2",
            format!("a Reply chunk that claims {count:#x} segments and has one"),
            EC,
            move |b| {
                let chunk = b.chunk(&[4096])?;
                Ok(Message::inline(&read_call(b, 0, 100), Lists::reply(chunk))
                    .poke(28, count)
                    .cut(60))
            },
        ));
    }
    cases.push(one(
        "M094",
        "8166 4.5.2",
        "a Write chunk whose count swallows the end of the list",
        EC,
        |b| {
            let chunk = b.chunk(&[4096])?;
            let header = Header::new(b.xid(), MSG, Lists::write(chunk));
            // One segment more: the list's end, the Reply chunk and two more words.
            Ok(Message::raw(header.encode())
                .and(&words(&[0, 0]))
                .poke(24, 2))
        },
    ));
    cases.push(full(
        "M095",
        "8166 3.4.6",
        "READ3 of 1600 bytes into as many segments of 16 bytes as fit",
        OK | EC,
        |b| {
            let count = ((b.call_limit()? - 200) / 16).min(200);
            let len = 1600.min(count * 16);
            let chunk = b.slices(count, 16)?;
            let call = read_call(b, 5, len);
            let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
            if seen.outcome == Outcome::Ok {
                good_read(&seen, 5, len, true)?;
            }
            Ok(seen)
        },
    ));
    cases.push(full(
        "M096",
        "8166 4.3.2.1",
        "100 Write chunks of one segment, one READ3",
        OK | EC,
        |b| {
            let segments = b.slices(100, 64)?;
            let lists = Lists {
                writes: segments.into_iter().map(|s| vec![s]).collect(),
                ..Lists::default()
            };
            let call = read_call(b, 0, 64);
            let seen = b.ask(&Message::inline(&call, lists))?;
            if seen.outcome == Outcome::Ok {
                good_read(&seen, 0, 64, true)?;
            }
            Ok(seen)
        },
    ));
    cases
}

fn lengths() -> Vec<Case> {
    let mut cases = vec![
        read_into(
            "M097",
            "8166 4.5.3",
            "READ3 into a Write chunk of empty segments",
            EC | RPCERR,
            100,
            &[0, 0, 0],
        ),
        read_into(
            "M098",
            "8166 3.4.6",
            "READ3 into segments of 50, 0 and 50",
            OK,
            100,
            &[50, 0, 50],
        ),
        read_into(
            "M098b",
            "8166 3.4.6",
            "READ3 into segments of 0, 100 and 0",
            OK,
            100,
            &[0, 100, 0],
        ),
        read_into(
            "M100",
            "8166 4.5.3",
            "READ3 into a Write chunk that is 1 byte too small",
            EC | RPCERR,
            100,
            &[99],
        ),
        read_into(
            "M100b",
            "8166 4.5.3",
            "READ3 into segments that are 1 byte too small",
            EC | RPCERR,
            1000,
            &[500, 499],
        ),
        read_into(
            "M100c",
            "8166 4.5.3",
            "READ3 of 64 KiB into a Write chunk 1 byte too small",
            EC | RPCERR,
            65536,
            &[65535],
        ),
        read_into(
            "C08.fit",
            "8166 3.4.6",
            "READ3 into segments that fit exactly",
            OK,
            1000,
            &[1, 2, 3, 994],
        ),
        read_into(
            "C08.page",
            "8166 3.4.6",
            "READ3 into segments that end in a page",
            OK,
            9000,
            &[4095, 2, 4903],
        ),
        read_into(
            "C08.big",
            "8166 3.4.6",
            "READ3 of 256 KiB into a chunk of 1 byte more",
            OK,
            262_144,
            &[131_072, 131_073],
        ),
    ];
    cases.push(full(
        "M099",
        "8166 3.4.6",
        "READ3 into segments whose lengths' sum wraps",
        OK,
        |b| {
            let chunk = claimed(b, 4096, &[0xffff_ffff, 2])?;
            let call = read_call(b, 0, 100);
            let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
            if seen.outcome == Outcome::Ok {
                good_read(&seen, 0, 100, true)?;
            }
            Ok(seen)
        },
    ));
    cases.push(full(
        "M101",
        "8166 6.1",
        "GETATTR with a Write chunk",
        OK,
        |b| {
            let chunk = b.chunk(&[1024])?;
            let call = b.number(nfs3::getattr(&b.world.files.root.clone()));
            let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
            check(seen.lists.writes.iter().all(|c| total(c) == 0), || {
                "the chunk was used".into()
            })?;
            Ok(seen)
        },
    ));
    cases.push(full(
        "M102",
        "8166 4.3.2.2",
        "READ3 with two Write chunks",
        OK,
        |b| {
            let lists = Lists {
                writes: vec![b.chunk(&[512])?, b.chunk(&[512])?],
                ..Lists::default()
            };
            let call = read_call(b, 0, 100);
            let seen = b.ask(&Message::inline(&call, lists))?;
            good_read(&seen, 0, 100, true)?;
            check(total(&seen.lists.writes[1]) == 0, || {
                "the second chunk was used".into()
            })?;
            Ok(seen)
        },
    ));
    cases.push(full(
        "M103",
        "8166 4.3.2.2",
        "READ3 of a file that is gone, with a Write chunk",
        OK,
        |b| {
            let chunk = b.chunk(&[512])?;
            let call = b.number(nfs3::read(&b.world.files.stale.clone(), 0, 100));
            let message = Message::inline(&call, Lists::write(chunk));
            let seen = b.ask(&message)?;
            b.written(&message.lists);
            check(seen.results.status != 0, || {
                "READ of a file that is gone succeeded".into()
            })?;
            check(seen.lists.writes.iter().all(|c| total(c) == 0), || {
                "the chunk was used".into()
            })?;
            Ok(seen)
        },
    ));
    cases
}
