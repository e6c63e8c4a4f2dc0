// SPDX-License-Identifier: GPL-2.0
//! Rules for a responder that no malformed message is about (R and U numbers).

use super::{
    flow::{granted, wide, window},
    positive::narrow,
    write_list::{good_read, read_call, readdir_len},
};
use crate::{
    bench::Bench,
    case::{check, full, skip, Case},
    explain::Seen,
    frame::{total, Lists},
    message::Message,
    nfs3::{self},
    nfs4::Compound,
    outcome::{Outcome, OK},
    results::Item,
    rpc::{Call, Status},
    world::{long_target, pattern, LINK},
};

/// An NFSv4 COMPOUND with these Write chunks, inline.
pub fn compound(b: &mut Bench<'_>, call: Call, writes: &[&[usize]]) -> Result<Seen, String> {
    let writes = writes
        .iter()
        .map(|lengths| b.chunk(lengths))
        .collect::<Result<_, _>>()?;
    let call = b.number(call);
    b.ask(&Message::inline(
        &call,
        Lists {
            writes,
            ..Lists::default()
        },
    ))
}

/// As compound(), and the items have to be those that the server gives over TCP,
/// which have to be these: where NFS itself is wrong, the transport is not to blame.
pub fn compared(
    b: &mut Bench<'_>,
    call: Call,
    writes: &[&[usize]],
    right: &[(Vec<u8>, bool)],
) -> Result<Seen, String> {
    let over_tcp = b.world.must(call.clone())?;
    let mut seen = compound(b, call, writes)?;
    if over_tcp
        .items
        .iter()
        .map(|i| &i.data)
        .eq(right.iter().map(|(data, _)| data))
    {
        items(&seen, right)?;
    } else {
        let places = |items: &[Item]| {
            items
                .iter()
                .map(|i| (i.data.len(), i.reduced))
                .collect::<Vec<_>>()
        };
        let wanted: Vec<_> = right
            .iter()
            .map(|(data, reduced)| (data.len(), *reduced))
            .collect();
        check(places(&seen.results.items) == wanted, || {
            format!("{}: {:?}", seen.describe(), places(&seen.results.items))
        })?;
        seen.note = "the server's data are wrong over TCP, too".into();
    }
    Ok(seen)
}

pub fn items(seen: &Seen, right: &[(Vec<u8>, bool)]) -> Result<(), String> {
    let right: Vec<_> = right
        .iter()
        .map(|(data, reduced)| Item {
            data: data.clone(),
            reduced: *reduced,
        })
        .collect();
    let got: Vec<_> = seen
        .results
        .items
        .iter()
        .map(|i| (i.data.len(), i.reduced))
        .collect();
    check(seen.results.items == right, || {
        format!("{}: items (length, in a chunk): {got:?}", seen.describe())
    })
}

pub fn succeeded(seen: &Seen) -> Result<(), String> {
    check(
        seen.outcome == Outcome::Ok && seen.results.status == 0,
        || seen.describe(),
    )
}

pub fn cases() -> Vec<Case> {
    let mut cases = credits();
    cases.extend(results());
    cases
}

fn credits() -> Vec<Case> {
    let mut cases = vec![full(
        "R1",
        "8166 3.3.1",
        "calls that ask for 0, 1, 32 and 0xffffffff credits",
        OK,
        |b| {
            let mut last = None;
            let mut grants = Vec::new();
            for credits in [0, 1, 32, u32::MAX] {
                let sent = super::length::null(b).poke(8, credits);
                let seen = b.ask(&sent)?;
                check(seen.outcome == Outcome::Ok, || seen.describe())?;
                grants.push(seen.grant);
                last = Some(seen);
            }
            check(grants.iter().all(|g| (1..=16384).contains(g)), || {
                format!("grants {grants:?}")
            })?;
            last.ok_or_else(String::new)
        },
    )];
    cases.push(full(
        "R2",
        "8166 3.3.1",
        "as many NULL calls as granted, RNR retry 0, three times",
        OK,
        |b| {
            let grant = granted(b)?;
            b.reconnect(&wide(grant))?;
            b.must(Call::null())?;
            for round in 0..3 {
                window(b, grant).map_err(|e| format!("round {round}: {e}"))?;
            }
            b.succeed(Call::null())
        },
    ));
    cases
}

fn results() -> Vec<Case> {
    let mut cases = vec![
        full(
            "R6",
            "8166 3.4.2",
            "READDIR, GETATTR, LOOKUP with a Write chunk: not eligible",
            OK,
            |b| {
                let (root, dir) = (b.world.files.root.clone(), b.world.files.dir.clone());
                let mut last = None;
                for call in [
                    nfs3::readdir(&root, 512),
                    nfs3::getattr(&root),
                    nfs3::lookup(&dir, "small"),
                ] {
                    let seen = compound(b, call, &[&[2048]])?;
                    succeeded(&seen)?;
                    check(total(&seen.lists.writes[0]) == 0, || {
                        "the chunk was used".into()
                    })?;
                    last = Some(seen);
                }
                last.ok_or_else(String::new)
            },
        ),
        full(
            "R7",
            "8166 3.4.4.1",
            "READ3 with a Write chunk: count inline, data in the chunk",
            OK,
            |b| {
                let chunk = b.chunk(&[4096])?;
                let call = read_call(b, 0, 4096);
                let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                good_read(&seen, 0, 4096, true)?;
                Ok(seen)
            },
        ),
        full(
            "R8",
            "8166 3.4.4.4",
            "NFSv4 READ of 5 bytes and GETATTR",
            OK,
            |b| {
                let big = b.world.files.big.clone();
                let seen = compound(
                    b,
                    Compound::new(0).handle(&big).read(0, 5).getattr().call(),
                    &[&[8]],
                )?;
                succeeded(&seen)?;
                items(&seen, &[(pattern(0, 5), true)])?;
                check(seen.results.ops.len() == 3, || {
                    format!("{:?}", seen.results.ops)
                })?;
                Ok(seen)
            },
        ),
        full(
            "R13",
            "8166 3.4.6",
            "READ3 of 250 into four segments of 100",
            OK,
            |b| {
                let chunk = b.chunk(&[100; 4])?;
                let call = read_call(b, 9, 250);
                let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                good_read(&seen, 9, 250, true)?;
                let lengths: Vec<_> = seen.lists.writes[0].iter().map(|s| s.length).collect();
                check(lengths == [100, 100, 50, 0], || {
                    format!("lengths {lengths:?}")
                })?;
                Ok(seen)
            },
        ),
        full(
            "R14",
            "8166 3.4.6",
            "READ3 into segments of odd lengths at odd addresses",
            OK,
            |b| {
                let mut chunk = Vec::new();
                for (len, offset) in [(7, 1), (4099, 4095), (1, 3), (893, 2)] {
                    let region = b.region_at(len, crate::memory::Access::WriteOnly, offset)?;
                    chunk.push(b.segment(region, 0, len));
                }
                let call = read_call(b, 1, 5000);
                let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                good_read(&seen, 1, 5000, true)?;
                Ok(seen)
            },
        ),
        full(
            "R16",
            "8166 3.5.3",
            "READDIR of more than the threshold, a Reply chunk",
            OK,
            |b| {
                let (call, len) = readdir_len(b)?;
                let chunk = b.chunk(&[16384])?;
                let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
                succeeded(&seen)?;
                let used = total(seen.lists.reply.as_ref().ok_or("no Reply chunk")?) as usize;
                check(used == len && !seen.inline, || {
                    format!("{used} bytes in the Reply chunk, the reply has {len}")
                })?;
                check(seen.results.names.len() > 50, || {
                    format!("{} names", seen.results.names.len())
                })?;
                Ok(seen)
            },
        ),
        full(
            "R17",
            "8166 3.5.3",
            "READLINK of 1501 bytes and of 5 with a Reply chunk, thresholds of 1024",
            OK,
            |b| {
                b.reconnect(&narrow())?;
                let chunk = b.chunk(&[1024])?;
                let call = b.number(nfs3::readlink(&b.world.files.link.clone()));
                let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
                items(&seen, &[(LINK.to_vec(), false)])?;
                let chunk = b.chunk(&[1021, 1024])?;
                let call = b.number(nfs3::readlink(&b.world.files.long_link.clone()));
                let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
                items(&seen, &[(long_target(), false)])?;
                // The roundup is in the chunk: explain() has looked at all of its bytes.
                let used = total(seen.lists.reply.as_ref().ok_or("no Reply chunk")?);
                check(!seen.inline && used % 4 == 0, || format!("{used} bytes"))?;
                Ok(seen)
            },
        ),
        full(
            "R24",
            "8166 4.3.2",
            "READ3 of 10 bytes with a Write chunk: not inline",
            OK,
            |b| {
                let chunk = b.chunk(&[16])?;
                let call = read_call(b, 0, 10);
                let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                good_read(&seen, 0, 10, true)?;
                Ok(seen)
            },
        ),
        full(
            "R28",
            "8166 4.3.3",
            "NULL with a Reply chunk of three segments",
            OK,
            |b| {
                let chunk = b.chunk(&[16, 16, 64])?;
                let call = b.number(Call::null());
                let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
                let used = seen.lists.reply.as_ref().map(|c| total(c));
                check(used == Some(if seen.inline { 0 } else { 24 }), || {
                    format!("{used:?}")
                })?;
                Ok(seen)
            },
        ),
        full(
            "U3",
            "8267 5.2",
            "NFSACL GETACL with a Write chunk",
            OK,
            |b| {
                let small = b.world.files.small.clone();
                let seen = compound(b, nfs3::getacl(&small), &[&[1024]])?;
                if seen.status == Some(Status::Accepted(1, None)) {
                    return Ok(skip("the server has no NFSACL on this connection"));
                }
                succeeded(&seen)?;
                check(seen.lists.writes.iter().all(|c| total(c) == 0), || {
                    "the chunk was used".into()
                })?;
                Ok(seen)
            },
        ),
    ];
    for (id, len) in [("U1.read", 1000), ("U1.read1", 1), ("U1.read3", 4093)] {
        cases.push(full(
            id,
            "8267 4",
            format!("READ3 of {len} bytes with a Write chunk"),
            OK,
            move |b| {
                let chunk = b.chunk(&[4096])?;
                let call = read_call(b, 17, len);
                let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                good_read(&seen, 17, len, true)?;
                Ok(seen)
            },
        ));
    }
    for (id, long) in [("U1.readlink", false), ("U1.readlink2", true)] {
        cases.push(full(
            id,
            "8267 4",
            format!(
                "READLINK3 with a Write chunk, {} target",
                if long { "long" } else { "short" }
            ),
            OK,
            move |b| {
                let (link, target) = if long {
                    (b.world.files.long_link.clone(), long_target())
                } else {
                    (b.world.files.link.clone(), LINK.to_vec())
                };
                let seen = compound(b, nfs3::readlink(&link), &[&[1000, 1000]])?;
                items(&seen, &[(target, true)])?;
                Ok(seen)
            },
        ));
    }
    cases
}
