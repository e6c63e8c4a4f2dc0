// SPDX-License-Identifier: GPL-2.0
//! Group E: Reply chunks, alone and with Write lists (M104 to M115, C01, C05, C09).

use super::{
    positive::data,
    write_list::{good_read, read_call, readdir_len},
};
use crate::{
    case::{check, full, one, skip, Case},
    connection::Options,
    frame::{Header, Lists, MSG},
    memory::CANARY,
    message::Message,
    nfs3,
    outcome::{Accept, Outcome, CLOSE, EC, OK, RPCERR},
    private::Settings,
    rpc::Call,
    world::{long_target, BIG, LINK},
};

pub fn cases() -> Vec<Case> {
    let mut cases = reply_chunks();
    cases.extend(both());
    cases
}

/// READDIR with a Reply chunk of these lengths, made from the reply's length.
fn readdir_into(
    id: &str,
    rfc: &'static str,
    sends: &str,
    accept: Accept,
    lengths: impl Fn(usize) -> Vec<usize> + 'static,
) -> Case {
    full(id, rfc, sends, accept, move |b| {
        let (call, len) = readdir_len(b)?;
        let chunk = b.chunk(&lengths(len))?;
        let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
        if seen.outcome == Outcome::Ok && seen.results.status == 0 {
            check(seen.stream.len() == len, || {
                format!("{} bytes of {len}", seen.stream.len())
            })?;
        }
        Ok(seen)
    })
}

fn reply_chunks() -> Vec<Case> {
    let mut cases = vec![
        one(
            "M104",
            "8166 4.3.3",
            "NULL with an empty Reply chunk",
            OK | EC,
            |b| {
                Ok(Message::inline(
                    &b.number(Call::null()),
                    Lists::reply(Vec::new()),
                ))
            },
        ),
        one(
            "M104b",
            "8166 4.3.3",
            "READDIR with an empty Reply chunk",
            EC,
            |b| {
                let (call, _) = readdir_len(b)?;
                Ok(Message::inline(&call, Lists::reply(Vec::new())))
            },
        ),
        readdir_into(
            "M106",
            "8166 4.5.3",
            "a Reply chunk 1 byte too small",
            EC | RPCERR,
            |len| vec![len - 1],
        ),
        readdir_into(
            "M106b",
            "8166 4.5.3",
            "a Reply chunk 4 bytes too small",
            EC | RPCERR,
            |len| vec![len - 4],
        ),
        readdir_into(
            "M107",
            "8166 4.5.3",
            "a Reply chunk of 8 bytes for READDIR",
            EC | RPCERR,
            |_| vec![8],
        ),
        readdir_into(
            "M107b",
            "8166 4.5.3",
            "a Reply chunk of empty segments for READDIR",
            EC | RPCERR,
            |_| vec![0, 0],
        ),
        readdir_into(
            "M108",
            "8166 3.4.6",
            "Reply chunk segments of 2000, 0 and 8000",
            OK,
            |_| vec![2000, 0, 8000],
        ),
        readdir_into(
            "C09.fit",
            "8166 3.4.6",
            "a Reply chunk that fits exactly",
            OK,
            |len| vec![len],
        ),
        readdir_into(
            "C09.zero",
            "8166 3.4.6",
            "a Reply chunk that fits exactly, empty segments in it",
            OK,
            |len| vec![0, 1000, 0, 0, len - 1000, 0],
        ),
        readdir_into(
            "R36",
            "8166 4.5.3",
            "a Reply chunk of 64 bytes for READDIR",
            EC | RPCERR,
            |_| vec![64],
        ),
    ];
    for count in 2..=5 {
        cases.push(readdir_into(
            &format!("C09.{count}"),
            "8166 4.5.3",
            &format!("a Reply chunk 4 bytes too small in {count} segments"),
            EC | RPCERR,
            move |len| super::read_list::split(len - 4, count),
        ));
        cases.push(readdir_into(
            &format!("C09.fit{count}"),
            "8166 3.4.6",
            &format!("a Reply chunk that fits in {count} segments"),
            OK,
            move |len| super::read_list::split(len, count),
        ));
    }
    cases.push(full(
        "M109",
        "8166 3.4.6",
        "READLINK of 1501 bytes into 240 segments of 8",
        OK | EC,
        |b| {
            let chunk = b.slices(240, 8)?;
            let call = b.number(nfs3::readlink(&b.world.files.long_link.clone()));
            let message = Message::inline(&call, Lists::reply(chunk));
            let (len, limit) = (message.bytes.len(), b.call_limit()?);
            if len > limit {
                return Ok(skip(format!(
                    "the call has {len} bytes, the server takes {limit}"
                )));
            }
            let seen = b.ask(&message)?;
            if seen.outcome == Outcome::Ok {
                data(&seen, &long_target(), false)?;
                check(!seen.inline, || "inline".into())?;
            }
            Ok(seen)
        },
    ));
    cases.push(one(
        "M114",
        "8166 4.5.3",
        "READ3 of 8 KiB without any chunk",
        EC | RPCERR,
        |b| Ok(Message::inline(&read_call(b, 0, 8192), Lists::default())),
    ));
    for (id, len) in [
        ("C01.a", 3960),
        ("C01.b", 4096),
        ("C01.c", 65536),
        ("C01.d", 262_144),
        ("C01.e", BIG),
    ] {
        // What a reply needs beyond its threshold has no place to go.
        cases.push(full(
            id,
            "8166 4.5.3",
            format!("READ3 of {len} bytes without any chunk, then a good one"),
            EC | RPCERR,
            move |b| {
                let call = read_call(b, 0, len);
                let seen = b.ask(&Message::inline(&call, Lists::default()))?;
                let chunk = b.chunk(&[4096])?;
                let call = read_call(b, 0, 4096);
                let good = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                good_read(&good, 0, 4096, true)?;
                Ok(seen)
            },
        ));
    }
    cases.push(full(
        "M115",
        "8166 4.5.3",
        "200 segments to echo, for a client that takes 1024 bytes",
        EC | CLOSE,
        |b| {
            let private = Settings {
                flags: 0,
                send: 3,
                receive: 0,
            }
            .encode();
            b.reconnect(&Options {
                private,
                ..Options::default()
            })?;
            let chunk = b.slices(200, 64)?;
            let call = read_call(b, 0, 100);
            b.ask(&Message::inline(&call, Lists::write(chunk)))
        },
    ));
    cases
}

fn both() -> Vec<Case> {
    let mut cases = Vec::new();
    for (id, write, reply, sends) in [
        (
            "M110",
            8192,
            256,
            "READ3 with a Write chunk, and a Reply chunk for the reduced reply",
        ),
        (
            "M111",
            16384,
            16384,
            "READ3 with a generous Write chunk and Reply chunk",
        ),
    ] {
        cases.push(full(id, "8166 3.5.3", sends, OK, move |b| {
            let lists = Lists {
                writes: vec![b.chunk(&[write])?],
                reply: Some(b.chunk(&[reply])?),
                ..Lists::default()
            };
            let call = read_call(b, 0, 8192);
            let seen = b.ask(&Message::inline(&call, lists))?;
            good_read(&seen, 0, 8192, true)?;
            Ok(seen)
        }));
    }
    cases.push(full(
        "M112",
        "8166 3.4.3",
        "one region in Read, Write and Reply lists",
        OK | RPCERR | EC,
        |b| {
            let write = super::read_list::Write::new(b, 100)?;
            let reads = write.segments(b, &[100])?;
            let (position, segment) = reads[0];
            let lists = Lists {
                reads: vec![(position, segment)],
                writes: vec![vec![segment]],
                reply: Some(vec![segment]),
            };
            let header = Header::new(write.call.xid, MSG, lists);
            let seen = b.ask(&Message::new(
                header,
                &write.call.reduced(0).0,
                write.call.kind,
            ));
            // The reply may have come to lie over the data, but not before they were read.
            let stored = b.world.content(&write.file, 4096)?;
            check(stored == write.data || stored.is_empty(), || {
                "other data were stored".into()
            })?;
            seen
        },
    ));
    cases.push(one(
        "M113",
        "8166 3.4.3",
        "a Write segment that wraps the 64-bit address",
        EC | CLOSE,
        |b| {
            let mut chunk = b.chunk(&[4096])?;
            chunk[0].offset = u64::MAX - 10;
            Ok(Message::inline(&read_call(b, 0, 100), Lists::write(chunk)))
        },
    ));
    cases.push(one(
        "M113b",
        "8166 3.4.3",
        "a Reply segment that wraps the 64-bit address",
        EC | CLOSE,
        |b| {
            let mut chunk = b.chunk(&[16384])?;
            chunk[0].offset = u64::MAX - 10;
            let many = b.world.files.many.clone();
            Ok(Message::inline(
                &b.number(nfs3::readdir(&many, 8192)),
                Lists::reply(chunk),
            ))
        },
    ));
    // Empty Write chunks in every place, with and without remote invalidation (C05).
    for flags in [0, 1] {
        for (place, empty) in [("alone", 0usize), ("first", 0), ("middle", 1), ("last", 1)] {
            let sends = format!("READLINK with an empty Write chunk, {place}, R flag {flags}");
            cases.push(full(
                format!("C05.{place}{flags}"),
                "8166 4.3.2.3",
                sends,
                OK,
                move |b| {
                    b.reconnect(&Options {
                        private: Settings {
                            flags,
                            send: 3,
                            receive: 3,
                        }
                        .encode(),
                        ..Options::default()
                    })?;
                    // Two keys: a plain registration cannot be invalidated, so let no key be the call's only one.
                    let mut writes = vec![b.chunk(&[32, 32])?];
                    if place == "alone" {
                        writes.clear();
                    }
                    if place == "middle" {
                        writes.push(b.chunk(&[32, 32])?);
                    }
                    writes.insert(empty, Vec::new());
                    let link = b.world.files.link.clone();
                    let call = b.number(nfs3::readlink(&link));
                    let seen = b.ask(&Message::inline(
                        &call,
                        Lists {
                            writes,
                            ..Lists::default()
                        },
                    ))?;
                    let item = seen.results.items.first().ok_or_else(|| seen.describe())?;
                    check(item.data == LINK, || "another target".into())?;
                    check(item.reduced == (empty > 0), || format!("{seen:?}"))?;
                    Ok(seen)
                },
            ));
        }
        cases.push(one(
            format!("C05.reply{flags}"),
            "8166 4.3.3",
            format!("GETATTR with an empty Reply chunk, R flag {flags}"),
            OK | EC,
            move |b| {
                b.reconnect(&Options {
                    private: Settings {
                        flags,
                        send: 3,
                        receive: 3,
                    }
                    .encode(),
                    ..Options::default()
                })?;
                Ok(Message::inline(
                    &b.number(nfs3::getattr(&b.world.files.root.clone())),
                    Lists::reply(Vec::new()),
                ))
            },
        ));
    }
    cases.push(full(
        "R15",
        "8166 3.4.6.2",
        "READ3 of 5 bytes into 8",
        OK,
        |b| {
            let region = b.region(8)?;
            let chunk = vec![b.segment(region, 0, 8)];
            let call = read_call(b, 0, 5);
            let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
            good_read(&seen, 0, 5, true)?;
            let rest = b.get(region).bytes(5, 3);
            check(rest == [CANARY; 3], || {
                format!("bytes after the item: {rest:02x?}")
            })?;
            Ok(seen)
        },
    ));
    cases
}
