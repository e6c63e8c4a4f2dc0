// SPDX-License-Identifier: GPL-2.0
//! Group F: remote memory that is not what a segment says (M116 to M132).

use std::time::Instant;

use super::{
    position_zero::long_write,
    read_list::Write,
    write_list::{good_read, read_call},
};
use crate::{
    answers::Next,
    bench::Bench,
    case::{check, full, skip, Case},
    connection::{Options, Own},
    explain::Seen,
    fake::named_memory,
    frame::{Lists, Segment},
    memory::Access,
    message::Message,
    nfs3,
    outcome::{Accept, Outcome, BROKEN, CLOSE, EC, OK},
    private::Settings,
    rpc::Call,
    send::Send,
};

/// An RDMA operation that fails ends the connection (RFC 8166, section 4.5.3); ERR_CHUNK may come
/// before that.
pub fn fatal(b: &mut Bench<'_>, seen: Seen) -> Result<Seen, String> {
    if seen.outcome != Outcome::Chunk {
        return Ok(seen);
    }
    let until = Instant::now() + b.world.limit();
    match b.next_message(until)? {
        Next::Closed | Next::Broken(_) => Ok(Seen {
            note: "then closed".into(),
            ..seen
        }),
        Next::Silence => Err("ERR_CHUNK, and the connection stays open".into()),
        Next::Message(_) => Err("ERR_CHUNK, and another message".into()),
    }
}

/// A WRITE whose Read segments are bad: nothing may be stored.
fn bad_write(
    id: &str,
    sends: &str,
    accept: Accept,
    make: impl Fn(&mut Bench<'_>, &Write) -> Result<Vec<(u32, Segment)>, String> + 'static,
) -> Case {
    full(id, "8166 4.5.3", sends, accept, move |b| {
        let write = Write::new(b, 4096)?;
        let reads = make(b, &write)?;
        let seen = b.ask(&write.message(reads))?;
        let seen = fatal(b, seen)?;
        write.verify(b, &seen)?;
        Ok(seen)
    })
}

/// A READ whose Write segments are bad: no reply may claim success.
fn bad_read(
    id: &str,
    sends: &str,
    make: impl Fn(&mut Bench<'_>) -> Result<Vec<Segment>, String> + 'static,
) -> Case {
    full(id, "8166 4.5.3", sends, CLOSE | EC, move |b| {
        let chunk = make(b)?;
        let call = read_call(b, 0, 4096);
        let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
        fatal(b, seen)
    })
}

fn bogus(segment: Segment) -> Segment {
    Segment {
        handle: segment.handle ^ 0x5a5a_0000,
        ..segment
    }
}

pub fn cases() -> Vec<Case> {
    let mut cases = reads();
    cases.extend(writes());
    cases.extend(reverse());
    cases
}

fn reads() -> Vec<Case> {
    let close = CLOSE | EC;
    let mut cases = vec![
        bad_write("M116", "Read segment with a bogus key", close, |b, w| {
            Ok(w.segments(b, &[4096])?
                .into_iter()
                .map(|(p, s)| (p, bogus(s)))
                .collect())
        }),
        bad_write(
            "M117",
            "Read segment whose registration was withdrawn",
            close,
            |b, w| {
                let region = b.region(4096)?;
                let segment = b.segment(region, 0, 4096);
                b.get(region).revoke();
                Ok(vec![(w.position, segment)])
            },
        ),
        bad_write(
            "M118",
            "Read segment of memory that may not be read",
            close,
            |b, w| {
                let region = b.region_at(4096, Access::WriteOnly, 0)?;
                Ok(vec![(w.position, b.segment(region, 0, 4096))])
            },
        ),
        bad_write(
            "M119",
            "Read segment that goes 1 byte beyond its registration",
            close,
            |b, w| {
                let region = b.region_exact(4095, Access::ReadWrite)?;
                Ok(vec![(
                    w.position,
                    Segment {
                        length: 4096,
                        ..b.segment(region, 0, 4095)
                    },
                )])
            },
        ),
        bad_write(
            "M119b",
            "Read segment that begins before its registration",
            close,
            |b, w| {
                let region = b.region_exact(4096, Access::ReadWrite)?;
                let segment = b.segment(region, 0, 4096);
                Ok(vec![(
                    w.position,
                    Segment {
                        offset: segment.offset - 8,
                        ..segment
                    },
                )])
            },
        ),
        full(
            "M122",
            "8166 4.5.3",
            "a good Position-Zero chunk, a data chunk with a bogus key",
            close,
            |b| {
                let (write, mut message) = long_write(b, 4096, 1, 1, false)?;
                let last = message.lists.reads.len() - 1;
                message.lists.reads[last].1 = bogus(message.lists.reads[last].1);
                let header = crate::frame::Header::new(
                    write.call.xid,
                    crate::frame::NOMSG,
                    message.lists.clone(),
                );
                let seen = b.ask(&Message::new(header, &[], message.kind))?;
                let seen = fatal(b, seen)?;
                write.verify(b, &seen)?;
                Ok(seen)
            },
        ),
        full(
            "M120",
            "8166 4.5.3",
            "Read registrations withdrawn just after the Send, 20 times",
            CLOSE | EC | OK,
            |b| {
                let mut last = None;
                for _ in 0..20 {
                    let write = Write::new(b, 65536)?;
                    let region = b.region(65536)?;
                    b.fill(region, 0, &write.data);
                    let message =
                        write.message(vec![(write.position, b.segment(region, 0, 65536))]);
                    b.post(&message)?;
                    b.get(region).revoke();
                    let seen = b.answer(&message)?;
                    let seen = fatal(b, seen)?;
                    check(b.accept.has(seen.outcome), || seen.describe())?;
                    let stored = b.world.content(&write.file, 65536)?;
                    check(stored.is_empty() || stored == write.data, || {
                        format!("{}: a part was stored", seen.describe())
                    })?;
                    if seen.outcome != Outcome::Ok {
                        b.reconnect(&Options::default())?;
                    }
                    last = Some(seen);
                }
                last.ok_or_else(String::new)
            },
        ),
        full(
            "R35",
            "8166 4.5.3",
            "a bogus Read key, then the same XID on a new connection with a good one",
            OK,
            |b| {
                let write = Write::new(b, 500)?;
                let reads = write.segments(b, &[500])?;
                let bad = reads.iter().map(|&(p, s)| (p, bogus(s))).collect();
                let seen = b.ask(&write.message(bad))?;
                let seen = fatal(b, seen)?;
                check(
                    matches!(seen.outcome, Outcome::Close | Outcome::Chunk),
                    || seen.describe(),
                )?;
                b.reconnect(&Options::default())?;
                let reads = write.segments(b, &[500])?;
                let seen = b.ask(&write.message(reads))?;
                write.verify(b, &seen)?;
                Ok(seen)
            },
        ),
    ];
    for k in 0..3usize {
        cases.push(bad_write(
            &format!("M121.{k}"),
            &format!("three Read segments, a bogus key in number {}", k + 1),
            close,
            move |b, w| {
                let mut reads = w.segments(b, &[1000, 2000, 1096])?;
                reads[k].1 = bogus(reads[k].1);
                Ok(reads)
            },
        ));
    }
    cases
}

fn writes() -> Vec<Case> {
    vec![
        bad_read("M123", "Write segment with a bogus key", |b| {
            Ok(b.chunk(&[4096])?.into_iter().map(bogus).collect())
        }),
        bad_read(
            "M123b",
            "second of two Write segments with a bogus key",
            |b| {
                let mut chunk = b.chunk(&[2048, 2048])?;
                chunk[1] = bogus(chunk[1]);
                Ok(chunk)
            },
        ),
        bad_read(
            "M124",
            "Write segment of memory that may not be written",
            |b| {
                let region = b.region_at(4096, Access::ReadOnly, 0)?;
                Ok(vec![b.segment(region, 0, 4096)])
            },
        ),
        full(
            "M125",
            "8166 3.4.6",
            "a Write segment longer than its registration, a READ within it",
            OK,
            |b| {
                let region = b.region_exact(4096, Access::ReadWrite)?;
                let chunk = vec![Segment {
                    length: 8192,
                    ..b.segment(region, 0, 4096)
                }];
                let call = read_call(b, 0, 4000);
                let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                good_read(&seen, 0, 4000, true)?;
                Ok(seen)
            },
        ),
        bad_read(
            "M126",
            "a Write segment longer than its registration, a READ beyond it",
            |b| {
                let region = b.region_exact(4000, Access::ReadWrite)?;
                Ok(vec![Segment {
                    length: 8192,
                    ..b.segment(region, 0, 4000)
                }])
            },
        ),
        bad_read(
            "M117w",
            "Write segment whose registration was withdrawn",
            |b| {
                let region = b.region(4096)?;
                let segment = b.segment(region, 0, 4096);
                b.get(region).revoke();
                Ok(vec![segment])
            },
        ),
        full(
            "M127a",
            "8166 4.5.3",
            "Reply chunk with a bogus key",
            CLOSE | EC,
            |b| {
                bad_reply(b, |b| {
                    Ok(b.chunk(&[16384])?.into_iter().map(bogus).collect())
                })
            },
        ),
        full(
            "M127b",
            "8166 4.5.3",
            "Reply chunk in memory that may not be written",
            CLOSE | EC,
            |b| {
                bad_reply(b, |b| {
                    let region = b.region_at(16384, Access::ReadOnly, 0)?;
                    Ok(vec![b.segment(region, 0, 16384)])
                })
            },
        ),
        full(
            "M128",
            "8166 8.1.1",
            "a key of another connection's protection domain",
            CLOSE | EC,
            |b| {
                let mut other = b.world.connect(&Options::default())?;
                let foreign = other.region(4096).map_err(|e| e.to_string())?;
                let before = foreign.snapshot();
                let call = read_call(b, 0, 4096);
                let seen = b.ask(&Message::inline(
                    &call,
                    Lists::write(vec![foreign.segment(0, 4096)]),
                ))?;
                let seen = fatal(b, seen)?;
                check(foreign.spoilt(&before, &[]).is_none(), || {
                    "memory of another protection domain was written".into()
                })?;
                b.world
                    .exchange(&mut other, Call::null())
                    .map_err(|e| format!("the other connection: {e}"))?;
                Ok(seen)
            },
        ),
        full(
            "M129",
            "8797 4.1",
            "key 0 in a Write chunk, R flag set",
            CLOSE | EC,
            |b| {
                // No memory has that key, so no reply can claim that it was written.
                b.reconnect(&Options {
                    private: Settings {
                        flags: 1,
                        send: 3,
                        receive: 3,
                    }
                    .encode(),
                    ..Options::default()
                })?;
                let chunk = b
                    .chunk(&[4096])?
                    .into_iter()
                    .map(|s| Segment { handle: 0, ..s })
                    .collect();
                let call = read_call(b, 0, 100);
                let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                check(!b.invalidated.contains(&0), || {
                    "key 0 was invalidated".into()
                })?;
                fatal(b, seen)
            },
        ),
        full(
            "C25",
            "8166 3.4.6",
            "READ3 of 64 KiB, the last byte looked at as soon as the reply is there, 200 times",
            OK,
            |b| {
                let region = b.region(65536)?;
                let mut last = None;
                for i in 0..200usize {
                    b.get(region).clear();
                    let from = 256 * i + 1;
                    let call = read_call(b, from, 65536);
                    let chunk = vec![b.segment(region, 0, 65536)];
                    let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                    good_read(&seen, from, 65536, true).map_err(|e| format!("round {i}: {e}"))?;
                    last = Some(seen);
                }
                last.ok_or_else(String::new)
            },
        ),
    ]
}

fn bad_reply(
    b: &mut Bench<'_>,
    make: impl Fn(&mut Bench<'_>) -> Result<Vec<Segment>, String>,
) -> Result<Seen, String> {
    let chunk = make(b)?;
    let many = b.world.files.many.clone();
    let call = b.number(nfs3::readdir(&many, 8192));
    let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
    fatal(b, seen)
}

/// Key and address of memory of the server that nobody has named; in the end, what a
/// fake peer names, so that these cases are seen to fail.
fn guess(b: &mut Bench<'_>, number: usize) -> Result<Option<(u32, u64)>, String> {
    let keys = [0, 0x100, 0x200, 0x300, 0x1234, 0x2345_6789, u32::MAX];
    if let Some(&key) = keys.get(number) {
        return Ok(Some((key, 0xffff_8880_0000_1000)));
    }
    let named = named_memory(&b.connection()?.peer);
    Ok(named.map(|s| (s.handle, s.offset)))
}

/// RDMA Reads or atomics, whatever depth the server allows for them: its end has to refuse them.
fn reach(b: &mut Bench<'_>, kind: impl Fn(u32, u64) -> Send) -> Result<Seen, String> {
    for number in 0.. {
        b.reconnect(&Options {
            initiator_depth: 1,
            own: Some(Own {
                rnr_retry: 0,
                depth: 1,
            }),
            ..Options::default()
        })?;
        let Some((key, address)) = guess(b, number)? else {
            break;
        };
        b.post_as(&Message::raw(vec![0x11; 8]), kind(key, address), 1)?;
        let until = Instant::now() + b.world.unit * 100;
        match b.next_message(until)? {
            Next::Closed | Next::Broken(_) => {}
            // Then our device does not send them.
            Next::Silence if b.connection()?.peer_depth == 0 && !b.connection()?.unbound() => {
                b.close()?;
                return Ok(skip("the server allows no such operations"));
            }
            Next::Silence => return Err(format!("the server let key {key:#x} pass")),
            Next::Message(_) => return Err("a message in answer to an RDMA operation".into()),
        }
    }
    Ok(Seen::only(Outcome::Broken))
}

/// The client reaches for the server's memory.
fn reverse() -> Vec<Case> {
    let mut cases = vec![
        full(
            "M131r",
            "8166 8.1",
            "RDMA Reads at guessed keys of the server",
            CLOSE | BROKEN,
            |b| reach(b, |key, address| Send::Read { key, address }),
        ),
        full(
            "M131a",
            "8166 8.1",
            "atomics at guessed keys of the server",
            CLOSE | BROKEN,
            |b| reach(b, |key, address| Send::Atomic { key, address }),
        ),
        full(
            "M131w",
            "8166 8.1",
            "RDMA Writes at guessed keys of the server",
            CLOSE | BROKEN,
            |b| reach_writing(b, |key, address| Send::Write { key, address }),
        ),
    ];
    for key in [0u32, 0x100, 0x1234_5678] {
        cases.push(full(
            format!("M132.{key:x}"),
            "8166 8.1",
            format!("Send with Invalidate of the server's key {key:#x}"),
            CLOSE | BROKEN,
            move |b| {
                let message = super::length::null(b);
                b.post_as(&message, Send::Invalidate(key), 1)?;
                b.answer(&message)
            },
        ));
    }
    cases
}

/// As reach(), for what needs no depth.
pub fn reach_writing(b: &mut Bench<'_>, kind: impl Fn(u32, u64) -> Send) -> Result<Seen, String> {
    for number in 0.. {
        b.reconnect(&Options::default())?;
        let Some((key, address)) = guess(b, number)? else {
            break;
        };
        let message = super::length::null(b);
        b.post_as(&message, kind(key, address), 1)?;
        let seen = b.answer(&message)?;
        check(
            matches!(seen.outcome, Outcome::Close | Outcome::Broken),
            || format!("key {key:#x}: {}", seen.describe()),
        )?;
    }
    Ok(Seen::only(Outcome::Broken))
}
