// SPDX-License-Identifier: GPL-2.0
//! NFSv4.1 and 4.2: data in sessions (P07, P12), and operations with long results that are not
//! eligible (P09, P21).

use super::{
    positive::{data, stored, succeeded, Cut},
    replay::session_of,
};
use crate::{
    bench::Bench,
    case::{check, full, skip, Case},
    explain::Seen,
    frame::{total, Header, Lists, MSG},
    message::Message,
    nfs4::Compound,
    outcome::{Outcome, OK},
    world::pattern,
};

/// One COMPOUND in a session of its own, on the big file.
fn ask(
    b: &mut Bench<'_>,
    minor: u32,
    operation: impl Fn(Compound) -> Compound,
    lists: Lists,
) -> Result<Seen, String> {
    let (session, _, _) = session_of(b, minor, 0, (1024, 2))?;
    let big = b.world.files.big.clone();
    let start = Compound::new(minor)
        .sequence(&session, 1, 0, false)
        .handle(&big);
    let call = b.number(operation(start).call());
    let seen = b.ask(&Message::inline(&call, lists))?;
    b.succeed(Compound::new(1).destroy_session(&session).call())?;
    check(seen.outcome == Outcome::Ok, || seen.describe())?;
    Ok(seen)
}

/// READ_PLUS succeeded, with these bytes.
fn right(seen: &Seen, from: usize, len: usize) -> Result<(), String> {
    check(seen.results.status == 0, || seen.describe())?;
    let data: Vec<_> = seen.results.items.iter().flat_map(|i| &i.data).collect();
    check(data.into_iter().eq(&pattern(from, len)), || {
        "the data are not those of the file".into()
    })
}

/// A layout, or none: exports without pNFS have none to give.
fn layout(seen: Seen) -> Seen {
    if seen.results.status == 0 {
        return seen;
    }
    skip(format!(
        "the server gives no layout: {}",
        seen.results.status
    ))
}

/// SEQUENCE, PUTFH, READ and GETATTR with a Write chunk.
fn read(b: &mut Bench<'_>, minor: u32, cut: Cut) -> Result<Seen, String> {
    let len = 65535;
    let mut chunk = cut.chunk(b, len, None)?;
    // The Linux client's segment for the roundup: to be left alone.
    chunk.extend(b.chunk(&[4])?);
    let read = |c: Compound| c.read(3, len as u32).getattr();
    let seen = ask(b, minor, read, Lists::write(chunk))?;
    data(&seen, &pattern(3, len), true)?;
    check(seen.results.ops.len() == 4, || {
        format!("{:?}", seen.results.ops)
    })?;
    Ok(seen)
}

/// SEQUENCE, PUTFH, WRITE and GETATTR with a Read chunk.
fn write(b: &mut Bench<'_>, minor: u32, cut: Cut) -> Result<Seen, String> {
    let (session, _, _) = session_of(b, minor, 0, (1024, 2))?;
    let file = b.world.fresh_file()?;
    let bytes = pattern(11, 32770);
    let start = Compound::new(minor).sequence(&session, 1, 0, false);
    let compound = start.handle(&file).write(0, &bytes).getattr();
    let call = b.number(compound.call());
    let (stream, item) = call.reduced(0);
    let chunk = cut.chunk(b, item.len(), Some(&item))?;
    let header = Header::new(call.xid, MSG, Lists::read(call.item(0).0 as u32, chunk));
    let seen = b.ask(&Message::new(header, &stream, call.kind))?;
    b.succeed(Compound::new(1).destroy_session(&session).call())?;
    succeeded(&seen)?;
    check(seen.results.ops.len() == 4, || {
        format!("{:?}", seen.results.ops)
    })?;
    stored(b, &file, &bytes)?;
    Ok(seen)
}

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        full(
            "P09",
            "8166 3.5.3",
            "READ_PLUS of 6001 bytes with a Reply chunk",
            OK,
            |b| {
                let lists = Lists::reply(b.chunk(&[4096, 8192])?);
                let seen = ask(b, 2, |c| c.read_plus(3, 6001), lists)?;
                right(&seen, 3, 6001)?;
                check(!seen.inline, || "6001 bytes inline".into())?;
                Ok(seen)
            },
        ),
        full(
            "P09b",
            "8267 6.1",
            "READ_PLUS of 500 bytes with a Write chunk: not eligible",
            OK,
            |b| {
                let lists = Lists::write(b.chunk(&[1024])?);
                let seen = ask(b, 2, |c| c.read_plus(0, 500), lists)?;
                right(&seen, 0, 500)?;
                check(total(&seen.lists.writes[0]) == 0, || {
                    "the chunk was used".into()
                })?;
                Ok(seen)
            },
        ),
        full(
            "P21",
            "8166 3.5.3",
            "LAYOUTGET with a Reply chunk",
            OK,
            |b| {
                let lists = Lists::reply(b.chunk(&[4096, 4096])?);
                ask(b, 1, |c| c.layoutget(4096), lists).map(layout)
            },
        ),
        full(
            "P21b",
            "8166 3.5.3",
            "GETDEVICEINFO with a Reply chunk",
            OK,
            |b| {
                let lists = Lists::reply(b.chunk(&[4096, 4096])?);
                ask(b, 1, |c| c.getdeviceinfo(4096), lists).map(layout)
            },
        ),
    ];
    for minor in [1, 2] {
        for segments in [1, 2, 9, 16] {
            for offset in [0, 1, 4095] {
                let cut = Cut { segments, offset };
                let text = format!("NFSv4.{minor}, {segments} segments at page offset {offset}");
                let name = format!("v4{minor}s{segments}o{offset}");
                cases.push(full(
                    format!("P07.{name}"),
                    "8267 6.1",
                    format!("SEQUENCE, READ of 65535 and GETATTR with a Write chunk: {text}"),
                    OK,
                    move |b| read(b, minor, cut),
                ));
                cases.push(full(
                    format!("P12.{name}"),
                    "8267 6.1",
                    format!("SEQUENCE, WRITE of 32770 and GETATTR with a Read chunk: {text}"),
                    OK,
                    move |b| write(b, minor, cut),
                ));
            }
        }
    }
    cases
}
