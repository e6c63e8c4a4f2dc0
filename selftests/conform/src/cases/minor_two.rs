// SPDX-License-Identifier: GPL-2.0
//! Operations of NFSv4.1 and 4.2 with long results that are not eligible (P09, P21).

use super::replay::session_of;
use crate::{
    bench::Bench,
    case::{check, full, Case},
    explain::Seen,
    frame::{total, Lists},
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
    let (session, _, _) = session_of(b, minor, 0, 1024)?;
    let big = b.world.files.big.clone();
    let start = Compound::new(minor)
        .sequence(&session, 1, 0, false)
        .handle(&big);
    let call = b.number(operation(start).call());
    let seen = b.ask(&Message::inline(&call, lists))?;
    b.must(Compound::new(1).destroy_session(&session).call())?;
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

pub fn cases() -> Vec<Case> {
    vec![
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
                ask(b, 1, |c| c.layoutget(4096), lists)
            },
        ),
        full(
            "P21b",
            "8166 3.5.3",
            "GETDEVICEINFO with a Reply chunk",
            OK,
            |b| {
                let lists = Lists::reply(b.chunk(&[4096, 4096])?);
                ask(b, 1, |c| c.getdeviceinfo(4096), lists)
            },
        ),
    ]
}
