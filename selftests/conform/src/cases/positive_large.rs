// SPDX-License-Identifier: GPL-2.0
//! What real clients put on the wire, continued: whole chunks, thresholds.

use super::positive::{data, long, read, readdir, readlink, stored, succeeded, write, Cut, PLAIN};
use super::{read_list::split, write_list::good_read};
use crate::{
    bench::Bench,
    case::{check, full, Case},
    connection::Options,
    explain::Seen,
    frame::{Header, Lists, Segment, MSG, NOMSG},
    message::Message,
    nfs3,
    nfs4::Compound,
    outcome::{EC, OK, RPCERR},
    private::Settings,
    rpc::Kind,
    world::{long_target, pattern, BIG, NAMES},
};

pub fn cases() -> Vec<Case> {
    let mut cases = large();
    cases.extend(thresholds());
    cases
}

fn large() -> Vec<Case> {
    let mut cases = vec![
        full("P13", "8267 4", "WRITE of 1 MiB in 8 segments", OK, |b| {
            write(
                b,
                false,
                BIG,
                Cut {
                    segments: 8,
                    offset: 0,
                },
            )
        }),
        full(
            "P13b",
            "8267 4",
            "WRITE of 1 MiB in 16 segments, not page aligned",
            OK,
            |b| {
                write(
                    b,
                    true,
                    BIG,
                    Cut {
                        segments: 16,
                        offset: 1,
                    },
                )
            },
        ),
        full(
            "P04.max",
            "8267 4",
            "READ of 1 MiB in 8 segments",
            OK,
            |b| {
                read(
                    b,
                    false,
                    0,
                    BIG,
                    Cut {
                        segments: 8,
                        offset: 0,
                    },
                )
            },
        ),
        full(
            "P04.max9",
            "8267 4",
            "READ of 1 MiB in 9 segments, not page aligned",
            OK,
            |b| {
                read(
                    b,
                    true,
                    0,
                    BIG,
                    Cut {
                        segments: 9,
                        offset: 1,
                    },
                )
            },
        ),
        full("P17", "8267 4", "READLINK3 with a Write chunk", OK, |b| {
            readlink(
                b,
                false,
                true,
                Cut {
                    segments: 3,
                    offset: 1,
                },
            )
        }),
        full(
            "P17.v4",
            "8267 6.1",
            "NFSv4 READLINK with a Write chunk",
            OK,
            |b| readlink(b, true, true, PLAIN),
        ),
        full(
            "P18.plus",
            "8166 3.5.3",
            "READDIRPLUS with a Reply chunk of 2 segments",
            OK,
            |b| {
                readdir(
                    b,
                    true,
                    Cut {
                        segments: 2,
                        offset: 0,
                    },
                )
            },
        ),
        full(
            "P18.11",
            "8166 3.5.3",
            "READDIRPLUS with a Reply chunk of 11 segments",
            OK,
            |b| {
                readdir(
                    b,
                    true,
                    Cut {
                        segments: 11,
                        offset: 5,
                    },
                )
            },
        ),
        full(
            "P22",
            "8166 3.5.3",
            "COMPOUND of a WRITE of 5001 and a READ of 6001: Position-Zero chunk and Reply chunk",
            OK,
            |b| {
                let (file, big) = (b.world.fresh_file()?, b.world.files.big.clone());
                let write = Compound::new(0).handle(&file).write(0, &pattern(2, 5001));
                let call = write.handle(&big).read(1, 6001).getattr().call();
                let cut = Cut {
                    segments: 2,
                    offset: 7,
                };
                let seen = long(b, call, cut, Some(8192))?;
                data(&seen, &pattern(1, 6001), false)?;
                check(!seen.inline && seen.results.ops.len() == 5, || {
                    format!("{:?}", seen.results.ops)
                })?;
                stored(b, &file, &pattern(2, 5001))?;
                Ok(seen)
            },
        ),
        full(
            "P25",
            "8166 3.5.3",
            "READ3 of 8 KiB with only a Reply chunk",
            OK,
            |b| {
                let big = b.world.files.big.clone();
                let call = b.number(nfs3::read(&big, 1, 8191));
                let chunk = b.chunk(&[4096, 8192])?;
                let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
                data(&seen, &pattern(1, 8191), false)?;
                Ok(seen)
            },
        ),
        full(
            "P26",
            "8166 3.5.3",
            "WRITE3 of 9 KiB in a Position-Zero chunk, with a Reply chunk",
            OK,
            |b| {
                let file = b.world.fresh_file()?;
                let bytes = pattern(2, 9001);
                let seen = long(
                    b,
                    nfs3::write(&file, 0, &bytes),
                    Cut {
                        segments: 2,
                        offset: 3,
                    },
                    Some(1024),
                )?;
                succeeded(&seen)?;
                stored(b, &file, &bytes)?;
                Ok(seen)
            },
        ),
    ];
    for rest in 0..4usize {
        cases.push(full(
            format!("P23.{rest}"),
            "8267 6.4.2",
            format!(
                "COMPOUND with WRITE of {} in a Position-Zero and a Read chunk",
                5000 + rest
            ),
            OK,
            move |b| {
                let file = b.world.fresh_file()?;
                let bytes = pattern(2, 5000 + rest);
                let call = b.number(
                    Compound::new(0)
                        .handle(&file)
                        .write(0, &bytes)
                        .getattr()
                        .call(),
                );
                let (stream, item) = call.reduced(0);
                let zero = b.source(&stream, &split(stream.len(), 2))?;
                let chunk = b.source(&item, &split(item.len(), 3))?;
                let position = call.item(0).0 as u32;
                let reads = zero
                    .into_iter()
                    .map(|s| (0, s))
                    .chain(chunk.into_iter().map(|s| (position, s)))
                    .collect();
                let header = Header::new(
                    call.xid,
                    NOMSG,
                    Lists {
                        reads,
                        ..Lists::default()
                    },
                );
                let seen = b.ask(&Message::new(header, &[], call.kind))?;
                succeeded(&seen)?;
                stored(b, &file, &bytes)?;
                Ok(seen)
            },
        ));
    }
    // Every combination of lists with an inline body (field report C16).
    for mask in 0..8u32 {
        let names: Vec<_> = ["Read", "Write", "Reply"]
            .into_iter()
            .enumerate()
            .filter(|(i, _)| mask >> i & 1 != 0)
            .map(|(_, n)| n)
            .collect();
        let sends = format!(
            "an inline body with lists: {}",
            if names.is_empty() {
                "none".into()
            } else {
                names.join(", ")
            }
        );
        cases.push(full(
            format!("C16.{mask}"),
            "8166 4.3",
            sends,
            OK,
            move |b| {
                let file = b.world.fresh_file()?;
                let bytes = pattern(2, 60);
                let call = b.number(nfs3::write(&file, 0, &bytes));
                let (stream, item) = call.reduced(0);
                let mut lists = Lists::default();
                if mask & 1 != 0 {
                    lists = Lists::read(call.item(0).0 as u32, b.source(&item, &[60])?);
                }
                if mask & 2 != 0 {
                    lists.writes = vec![b.chunk(&[64])?];
                }
                if mask & 4 != 0 {
                    lists.reply = Some(b.chunk(&[512, 512])?);
                }
                let payload = if mask & 1 != 0 { stream } else { call.encode() };
                let seen = b.ask(&Message::new(
                    Header::new(call.xid, MSG, lists),
                    &payload,
                    Kind::Write,
                ))?;
                succeeded(&seen)?;
                stored(b, &file, &bytes)?;
                Ok(seen)
            },
        ));
    }
    cases
}

/// Memory behind a key that the server can invalidate, with these data in it.
fn window(b: &mut Bench<'_>, len: usize, data: &[u8]) -> Result<Vec<Segment>, String> {
    // The window's region is the next one.
    let index = b.region(4)? + 1;
    let segment = b.window(len)?;
    b.fill(index, 0, data);
    Ok(vec![segment])
}

/// As a Linux client, which sets R: each call's chunks have one key.
fn invalidatable(b: &mut Bench<'_>) -> Result<Seen, String> {
    let settings = Settings {
        flags: 1,
        send: 3,
        receive: 3,
    };
    b.reconnect(&Options {
        private: settings.encode(),
        ..Options::default()
    })?;
    let mut invalidated = 0;
    let mut seen = None;
    for round in 0..4 {
        b.invalidated.clear();
        let chunk = match round {
            1 => window(b, 5001, &pattern(1, 5001))?,
            _ => window(b, 40960, &[])?,
        };
        let key = chunk[0].handle;
        let (big, link) = (b.world.files.big.clone(), b.world.files.long_link.clone());
        let many = b.world.files.many.clone();
        seen = Some(match round {
            0 => {
                let call = b.number(nfs3::read(&big, 5, 5001));
                let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                good_read(&seen, 5, 5001, true)?;
                seen
            }
            1 => {
                let file = b.world.fresh_file()?;
                let call = b.number(nfs3::write(&file, 0, &pattern(1, 5001)));
                let lists = Lists::read(call.item(0).0 as u32, chunk);
                let header = Header::new(call.xid, MSG, lists);
                let seen = b.ask(&Message::new(header, &call.reduced(0).0, call.kind))?;
                succeeded(&seen)?;
                stored(b, &file, &pattern(1, 5001))?;
                seen
            }
            2 => {
                let call = b.number(nfs3::readlink(&link));
                let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
                data(&seen, &long_target(), false)?;
                seen
            }
            _ => {
                let call = b.number(nfs3::readdir(&many, 16384));
                let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
                succeeded(&seen)?;
                check(seen.results.names.len() == NAMES + 2, || {
                    "other names".into()
                })?;
                seen
            }
        });
        check(b.invalidated.iter().all(|k| *k == key), || {
            format!("{:x?} invalidated, the call's: {key:x}", b.invalidated)
        })?;
        invalidated += b.invalidated.len();
    }
    let mut seen = seen.ok_or_else(String::new)?;
    seen.note = format!("{invalidated} of 4 keys invalidated");
    Ok(seen)
}

fn thresholds() -> Vec<Case> {
    let mut cases = Vec::new();
    let settings: [(&str, &str, Vec<u8>); 4] = [
        ("none", "no private data", Vec::new()),
        (
            "1024",
            "thresholds of 1024",
            Settings {
                flags: 0,
                send: 0,
                receive: 0,
            }
            .encode(),
        ),
        (
            "4096",
            "thresholds of 4096",
            Settings {
                flags: 0,
                send: 3,
                receive: 3,
            }
            .encode(),
        ),
        (
            "big",
            "thresholds of 65536",
            Settings {
                flags: 0,
                send: 63,
                receive: 63,
            }
            .encode(),
        ),
    ];
    for (name, text, private) in settings {
        cases.push(full(
            format!("P30.{name}"),
            "8166 3.3.2",
            format!("READ, WRITE, READLINK, READDIR with {text}"),
            OK,
            move |b| {
                let options = Options {
                    private: private.clone(),
                    receive_size: 65536,
                    receives: 8,
                    ..Options::default()
                };
                b.reconnect(&options)?;
                let big = b.world.files.big.clone();
                let inline = b.succeed(nfs3::read(&big, 5, 700))?;
                good_read(&inline, 5, 700, false)?;
                let file = b.world.fresh_file()?;
                succeeded(&b.succeed(nfs3::write(&file, 0, &pattern(1, 700)))?)?;
                stored(b, &file, &pattern(1, 700))?;
                let cut = Cut {
                    segments: 2,
                    offset: 1,
                };
                read(b, false, 1, 5001, cut)?;
                write(b, true, 5001, cut)?;
                readlink(b, false, false, cut)?;
                readdir(b, false, cut)
            },
        ));
    }
    cases.push(full(
        "P30.r1",
        "8797 4.1",
        "READ, WRITE, READLINK, READDIR with the R flag, memory that can be invalidated",
        OK,
        invalidatable,
    ));
    cases.push(full(
        "P30.over",
        "8166 4.5.3",
        "thresholds of 1024, READ3 of 1100 bytes inline",
        EC | RPCERR,
        |b| {
            b.reconnect(&Options {
                private: Settings {
                    flags: 0,
                    send: 0,
                    receive: 0,
                }
                .encode(),
                ..Options::default()
            })?;
            let big = b.world.files.big.clone();
            let call = b.number(nfs3::read(&big, 5, 1100));
            b.ask(&Message::inline(&call, Lists::default()))
        },
    ));
    cases
}
