// SPDX-License-Identifier: GPL-2.0
//! Arguments in Read chunks that have to be taken (R, U and C numbers).

use super::rules::succeeded;
use super::{
    position_zero::long_write,
    read_list::{split, Write},
    write_list::{good_read, read_call},
};
use crate::{
    bench::Bench,
    case::{check, full, Case},
    explain::Seen,
    frame::{Header, Lists, MSG},
    message::Message,
    nfs3::{self, opaque},
    nfs4::Compound,
    outcome::{Outcome, EC, OK, RPCERR},
    rpc::{Call, Kind, Status},
    world::pattern,
};

pub fn cases() -> Vec<Case> {
    let mut cases = arguments();
    cases.extend(complexity());
    cases
}

fn arguments() -> Vec<Case> {
    let mut cases = vec![
        full(
            "R10",
            "8166 3.4.5",
            "WRITE3 from 16 segments of odd lengths",
            OK,
            |b| {
                let lengths: Vec<usize> = (0..16).map(|i| 2 * i + 1).collect();
                let write = Write::new(b, lengths.iter().sum())?;
                let reads = write.segments(b, &lengths)?;
                let seen = b.ask(&write.message(reads))?;
                succeeded(&seen)?;
                write.verify(b, &seen)?;
                Ok(seen)
            },
        ),
        full(
            "R11",
            "8166 3.4.5.1",
            "the memory of a Read chunk is withdrawn as soon as the reply is there",
            OK,
            |b| {
                let write = Write::new(b, 5000)?;
                let region = b.region(5000)?;
                b.fill(region, 0, &write.data);
                let reads = vec![(write.position, b.segment(region, 0, 5000))];
                let seen = b.ask(&write.message(reads))?;
                b.get(region).revoke();
                write.verify(b, &seen)?;
                b.succeed(Call::null())?;
                Ok(seen)
            },
        ),
        full(
            "R34",
            "8166 4.5.2",
            "WRITE3 of 100 bytes whose Read chunk has 50",
            RPCERR,
            |b| {
                let write = Write::new(b, 100)?;
                let reads = write.segments(b, &[50])?;
                let seen = b.ask(&write.message(reads))?;
                check(seen.status == Some(Status::Accepted(4, None)), || {
                    format!("{:?}", seen.status)
                })?;
                let stored = b.world.content(&write.file, 4096)?;
                check(stored.is_empty(), || {
                    format!("{} bytes stored", stored.len())
                })?;
                Ok(seen)
            },
        ),
        full(
            "R40",
            "8166 6.1",
            "the name of a MKDIR3 in a Read chunk",
            EC,
            |b| {
                let (dir, name) = (b.world.files.dir.clone(), b.world.fresh_name() + "xyz12345");
                let call = b.number(nfs3::mkdir(&dir, &name));
                let at = 24 + call.auth.len() + opaque(&dir).len() + 4;
                let mut stream = call.encode();
                let taken: Vec<u8> = stream
                    .drain(at..at + name.len().next_multiple_of(4))
                    .take(name.len())
                    .collect();
                let chunk = b.source(&taken, &[name.len()])?;
                let header = Header::new(call.xid, MSG, Lists::read(at as u32, chunk));
                let seen = b.ask(&Message::new(header, &stream, Kind::Create))?;
                check(!b.world.exists(&name)?, || {
                    format!("{}: the directory was made", seen.describe())
                })?;
                Ok(seen)
            },
        ),
        full(
            "U1.symlink",
            "8267 4",
            "SYMLINK3, its target in a Read chunk",
            OK,
            |b| symlink(b, 901, false),
        ),
        full(
            "U1.symlink4",
            "8267 6.1",
            "NFSv4 CREATE of a link, its target in a Read chunk",
            OK,
            |b| symlink(b, 903, true),
        ),
        full(
            "U1.part",
            "8267 4",
            "SYMLINK3, only the begin of its target in a Read chunk, the rest behind it",
            OK | EC | RPCERR,
            partial_symlink,
        ),
        full(
            "U1.again",
            "5531 9",
            "NFSv4 CREATE of a link and GETATTR that comes again, the target inline and in a Read chunk: \
             known both times, or neither",
            OK,
            repeated_symlink,
        ),
    ];
    for (id, lengths) in [
        ("R12", &[5usize][..]),
        ("R12pad", &[8]),
        ("R12two", &[5, 3]),
    ] {
        cases.push(full(
            id,
            "8166 3.4.5.2",
            format!("WRITE3 of 5 bytes, Read segments {lengths:?}"),
            OK,
            move |b| {
                let write = Write::new(b, 5)?;
                let reads = write.segments(b, lengths)?;
                let seen = b.ask(&write.message(reads))?;
                succeeded(&seen)?;
                write.verify(b, &seen)?;
                Ok(seen)
            },
        ));
    }
    for len in 1..=8usize {
        cases.push(full(
            format!("C21.{len}"),
            "8166 3.4.5.2",
            format!("NFSv4 WRITE of {len} and GETATTR: no pad, padded, a segment of pad"),
            OK,
            move |b| {
                let padded = len.next_multiple_of(4);
                let mut last = None;
                for lengths in [vec![len], vec![padded], vec![len, padded - len]] {
                    let file = b.world.fresh_file()?;
                    let data = pattern(3, len);
                    let call = b.number(
                        Compound::new(0)
                            .handle(&file)
                            .write(0, &data)
                            .getattr()
                            .call(),
                    );
                    let mut source = data.clone();
                    source.resize(padded, 0);
                    let chunk = b.source(&source, &lengths)?;
                    let header =
                        Header::new(call.xid, MSG, Lists::read(call.item(0).0 as u32, chunk));
                    let seen = b.ask(&Message::new(header, &call.reduced(0).0, call.kind))?;
                    succeeded(&seen)?;
                    check(seen.results.ops.len() == 3, || {
                        format!("{:?}", seen.results.ops)
                    })?;
                    let stored = b.world.content(&file, 64)?;
                    check(stored == data, || {
                        format!(
                            "segments {lengths:?}: {} bytes stored, or others",
                            stored.len()
                        )
                    })?;
                    last = Some(seen);
                }
                last.ok_or_else(String::new)
            },
        ));
    }
    cases
}

fn symlink(b: &mut Bench<'_>, len: usize, v4: bool) -> Result<Seen, String> {
    let (dir, name) = (b.world.files.dir.clone(), b.world.fresh_name());
    let target = letters(len);
    let call = if v4 {
        Compound::new(0)
            .handle(&dir)
            .symlink(&name, &target)
            .getattr()
            .call()
    } else {
        nfs3::symlink(&dir, &name, &target)
    };
    let call = b.number(call);
    let (stream, item) = call.reduced(0);
    let chunk = b.source(&item, &split(len, 2))?;
    let header = Header::new(call.xid, MSG, Lists::read(call.item(0).0 as u32, chunk));
    let seen = b.ask(&Message::new(header, &stream, call.kind))?;
    succeeded(&seen)?;
    let made = b.world.must(nfs3::lookup(&dir, &name))?.handle;
    let read = b.world.must(nfs3::readlink(&made))?.items.remove(0).data;
    check(read == target, || {
        format!("the link has {} bytes, or others", read.len())
    })?;
    Ok(seen)
}

/// A target.
fn letters(len: usize) -> Vec<u8> {
    (0..len).map(|i| b'A' + (i % 23) as u8).collect()
}

/// Has the server receive many pages full of something else.
fn fill_memory(b: &mut Bench<'_>, with: u8) -> Result<(), String> {
    for _ in 0..8 {
        let file = b.world.fresh_file()?;
        let call = b.number(nfs3::write(&file, 0, &[with; 65536]));
        let (stream, item) = call.reduced(0);
        let chunk = b.source(&item, &split(item.len(), 4))?;
        let header = Header::new(call.xid, MSG, Lists::read(call.item(0).0 as u32, chunk));
        succeeded(&b.ask(&Message::new(header, &stream, call.kind))?)?;
    }
    Ok(())
}

/// The link's target is what was sent, or there is no link: no byte that happened to be in memory.
fn partial_symlink(b: &mut Bench<'_>) -> Result<Seen, String> {
    const REMOTE: usize = 300;
    let (dir, name, target) = (
        b.world.files.dir.clone(),
        b.world.fresh_name(),
        letters(901),
    );
    fill_memory(b, b'Z')?;
    let call = b.number(nfs3::symlink(&dir, &name, &target));
    let position = call.item(0).0;
    let mut stream = call.encode();
    let begin: Vec<u8> = stream.drain(position..position + REMOTE).collect();
    let chunk = b.source(&begin, &[REMOTE])?;
    let header = Header::new(call.xid, MSG, Lists::read(position as u32, chunk));
    let seen = b.ask(&Message::new(header, &stream, call.kind))?;
    if seen.outcome == Outcome::Ok && seen.results.status == 0 {
        let made = b.world.must(nfs3::lookup(&dir, &name))?.handle;
        let read = b.world.must(nfs3::readlink(&made))?.items.remove(0).data;
        check(read == target, || {
            let foreign = read.get(REMOTE..REMOTE + 16).unwrap_or_default();
            format!("behind the chunk the link has {foreign:02x?}")
        })?;
    }
    Ok(seen)
}

/// Status of a CREATE that is sent a second time with the same XID. `remote`: the target is in a
/// Read chunk, and an operation follows inline.
fn second_status(b: &mut Bench<'_>, remote: bool) -> Result<(u32, Seen), String> {
    let (dir, name) = (b.world.files.dir.clone(), b.world.fresh_name());
    let compound = Compound::new(0).handle(&dir).symlink(&name, &letters(20));
    let call = b.number(compound.getattr().call());
    let message = if remote {
        let (stream, item) = call.reduced(0);
        let chunk = b.source(&item, &[item.len()])?;
        let header = Header::new(call.xid, MSG, Lists::read(call.item(0).0 as u32, chunk));
        Message::new(header, &stream, call.kind)
    } else {
        Message::inline(&call, Lists::default())
    };
    succeeded(&b.ask(&message)?)?;
    fill_memory(b, if remote { b'Y' } else { b'Z' })?;
    let again = b.ask(&message)?;
    check(again.outcome == Outcome::Ok, || again.describe())?;
    Ok((again.results.status, again))
}

/// A server that knows a call again does so from its bytes, not from what was around them in memory.
fn repeated_symlink(b: &mut Bench<'_>) -> Result<Seen, String> {
    let (inline, mut seen) = second_status(b, false)?;
    // Where the target lands is chance.
    for _ in 0..8 {
        let remote;
        (remote, seen) = second_status(b, true)?;
        check(inline == remote, || {
            format!("inline: {inline}, from a Read chunk: {remote}")
        })?;
    }
    seen.note = if inline == 0 { "replayed" } else { "executed" }.into();
    Ok(seen)
}

fn complexity() -> Vec<Case> {
    let mut cases = Vec::new();
    for segments in [1usize, 2, 15, 16] {
        for rest in 0..4usize {
            let len = 4096 + rest;
            let forms: [(&str, &str); 3] = [
                ("z", "Position-Zero chunk alone"),
                ("r", "Read chunk alone"),
                ("zr", "both"),
            ];
            for (form, what) in forms {
                let id = format!("U10.{form}{segments}.{rest}");
                cases.push(full(
                    id,
                    "8267 6.4.2",
                    format!("WRITE3 of {len}, {what}, {segments} segments a chunk"),
                    OK,
                    move |b| {
                        let (write, message) = match form {
                            "zr" => long_write(b, len, segments, segments, false)?,
                            "r" => {
                                let write = Write::new(b, len)?;
                                let reads = write.segments(b, &split(len, segments))?;
                                let message = write.message(reads);
                                (write, message)
                            }
                            _ => {
                                let write = Write::new(b, len)?;
                                let stream = write.call.encode();
                                let chunk = b.source(&stream, &split(stream.len(), segments))?;
                                let message = Message::long(&write.call, Lists::read(0, chunk));
                                (write, message)
                            }
                        };
                        let seen = b.ask(&message)?;
                        succeeded(&seen)?;
                        write.verify(b, &seen)?;
                        Ok(seen)
                    },
                ));
            }
        }
    }
    for segments in [1usize, 2, 15, 16] {
        cases.push(full(
            format!("U10.w{segments}"),
            "8267 6.4.2",
            format!("READ3 of 4099 into {segments} segments"),
            OK,
            move |b| {
                let chunk = b.chunk(&split(4099, segments))?;
                let call = read_call(b, 2, 4099);
                let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                good_read(&seen, 2, 4099, true)?;
                Ok(seen)
            },
        ));
    }
    cases
}
