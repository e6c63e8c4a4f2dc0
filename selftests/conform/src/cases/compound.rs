// SPDX-License-Identifier: GPL-2.0
//! Several results in a COMPOUND, each with a Write chunk or none.

use super::rules::{compared, compound, items, succeeded};
use super::write_list::{good_read, read_call};
use crate::{
    bench::Bench,
    case::{check, full, Case},
    frame::{total, Lists},
    message::Message,
    nfs3::{self},
    nfs4::Compound,
    outcome::OK,
    world::{pattern, BIG, LINK},
};

pub fn cases() -> Vec<Case> {
    let get = |b: &Bench<'_>| (b.world.files.big.clone(), b.world.files.link.clone());
    vec![
        full(
            "R25",
            "8166 4.3.2.1",
            "NFSv4 READ and READ with two Write chunks",
            OK,
            move |b| {
                let (big, _) = get(b);
                let call = Compound::new(0)
                    .handle(&big)
                    .read(0, 101)
                    .read(500, 99)
                    .getattr()
                    .call();
                compared(
                    b,
                    call,
                    &[&[128], &[50, 50]],
                    &[(pattern(0, 101), true), (pattern(500, 99), true)],
                )
            },
        ),
        full(
            "R26",
            "8166 4.3.2.2",
            "NFSv4 READ of a directory, with a Write chunk",
            OK,
            |b| {
                let dir = b.world.files.dir.clone();
                let seen = compound(
                    b,
                    Compound::new(0).handle(&dir).read(0, 100).call(),
                    &[&[128]],
                )?;
                check(seen.results.status != 0, || {
                    "READ of a directory succeeded".into()
                })?;
                Ok(seen)
            },
        ),
        full(
            "R26b",
            "8166 4.3.2.2",
            "NFSv4 READ beyond the end and READ, with two Write chunks",
            OK,
            move |b| {
                let (big, _) = get(b);
                let call = Compound::new(0)
                    .handle(&big)
                    .read(BIG as u64, 500)
                    .read(4096, 64)
                    .call();
                let mut seen = compound(b, call, &[&[1000], &[128]])?;
                succeeded(&seen)?;
                check(
                    seen.results.items[0].data.is_empty()
                        && seen.results.items[1].data == pattern(4096, 64)
                        && seen.results.items[1].reduced,
                    || "the data are others, or inline".into(),
                )?;
                let which = 1 + usize::from(total(&seen.lists.writes[0]) == 0);
                seen.note = format!("the second is in chunk {which}");
                Ok(seen)
            },
        ),
        full(
            "R27",
            "8166 4.3.2.3",
            "READ3 with an empty Write chunk",
            OK,
            |b| {
                let call = read_call(b, 0, 100);
                let seen = b.ask(&Message::inline(&call, Lists::write(vec![])))?;
                good_read(&seen, 0, 100, false)?;
                Ok(seen)
            },
        ),
        full(
            "U5",
            "8267 6.4.1",
            "NFSv4 READ, READLINK, READ with three Write chunks",
            OK,
            move |b| {
                let (big, link) = get(b);
                let call = Compound::new(0)
                    .handle(&big)
                    .read(0, 30)
                    .handle(&link)
                    .readlink()
                    .handle(&big)
                    .read(64, 31)
                    .call();
                compared(
                    b,
                    call,
                    &[&[64], &[64], &[64]],
                    &[
                        (pattern(0, 30), true),
                        (LINK.to_vec(), true),
                        (pattern(64, 31), true),
                    ],
                )
            },
        ),
        full(
            "U6",
            "8267 6.4.1",
            "NFSv4 READ of 1 byte with a Write chunk",
            OK,
            move |b| {
                let (big, _) = get(b);
                let seen = compound(b, Compound::new(0).handle(&big).read(0, 1).call(), &[&[64]])?;
                items(&seen, &[(pattern(0, 1), true)])?;
                Ok(seen)
            },
        ),
        full(
            "U7",
            "8267 6.4.1",
            "NFSv4 READ with an empty Write chunk",
            OK,
            move |b| {
                let (big, _) = get(b);
                let seen = compound(
                    b,
                    Compound::new(0).handle(&big).read(0, 33).getattr().call(),
                    &[&[]],
                )?;
                items(&seen, &[(pattern(0, 33), false)])?;
                Ok(seen)
            },
        ),
        full(
            "U7b",
            "8267 6.4.1",
            "NFSv4 READ and READ, an empty Write chunk and a full one",
            OK,
            move |b| {
                let (big, _) = get(b);
                let call = Compound::new(0)
                    .handle(&big)
                    .read(0, 33)
                    .read(64, 35)
                    .getattr()
                    .call();
                compared(
                    b,
                    call,
                    &[&[], &[64]],
                    &[(pattern(0, 33), false), (pattern(64, 35), true)],
                )
            },
        ),
        full(
            "U8",
            "8267 6.4.1",
            "READ3 of a file that is gone: empty or unused chunk",
            OK,
            |b| {
                let stale = b.world.files.stale.clone();
                let call = b.number(nfs3::read(&stale, 0, 100));
                let message = Message::inline(&call, Lists::write(b.chunk(&[128])?));
                let seen = b.ask(&message)?;
                b.written(&message.lists);
                check(seen.results.status != 0, || "it succeeded".into())?;
                Ok(seen)
            },
        ),
        full(
            "U9",
            "8267 6.4.1",
            "NFSv4 READ and READ with one Write chunk",
            OK,
            move |b| {
                let (big, _) = get(b);
                let call = Compound::new(0)
                    .handle(&big)
                    .read(0, 33)
                    .read(64, 35)
                    .getattr()
                    .call();
                compared(
                    b,
                    call,
                    &[&[64]],
                    &[(pattern(0, 33), true), (pattern(64, 35), false)],
                )
            },
        ),
        full(
            "U4.eof",
            "8267 6.4.1",
            "NFSv4 READ behind the end, with a Write chunk, and GETATTR",
            OK,
            move |b| {
                let (big, _) = get(b);
                let seen = compound(
                    b,
                    Compound::new(0)
                        .handle(&big)
                        .read(1 << 21, 100)
                        .getattr()
                        .call(),
                    &[&[128]],
                )?;
                items(&seen, &[(vec![], true)])?;
                Ok(seen)
            },
        ),
        full(
            "C20",
            "8166 3.4.4.4",
            "NFSv4 READs of 1, 2, 3 and 5 bytes and READLINK, each with GETATTR behind it",
            OK,
            move |b| {
                let (big, link) = get(b);
                for len in [1usize, 2, 3, 5] {
                    let seen = compound(
                        b,
                        Compound::new(0)
                            .handle(&big)
                            .read(0, len as u32)
                            .getattr()
                            .call(),
                        &[&[8]],
                    )?;
                    items(&seen, &[(pattern(0, len), true)])?;
                }
                let seen = compound(
                    b,
                    Compound::new(0).handle(&link).readlink().getattr().call(),
                    &[&[8]],
                )?;
                items(&seen, &[(LINK.to_vec(), true)])?;
                Ok(seen)
            },
        ),
    ]
}
