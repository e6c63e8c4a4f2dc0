// SPDX-License-Identifier: GPL-2.0
//! Group H: credits and the kinds of Send (M149 to M158).

use super::{
    faults::reach_writing,
    length::null,
    write_list::{good_read, read_call},
};
use crate::{
    answers::Answers,
    bench::Bench,
    case::{check, full, setup, skip, Case},
    connection::{Options, Own},
    explain::Seen,
    frame::Lists,
    message::Message,
    nfs3,
    outcome::{Outcome, BROKEN, CLOSE, DROP, EC, OK},
    rpc::Call,
    send::Send,
    world::pattern,
};

/// Receives, and Sends, for so many calls at once. A Receive that the server lacks for one of them
/// breaks our queue pair: its answer may ask for repetitions without end, which would hide that.
pub fn wide(calls: usize) -> Options {
    Options {
        receives: calls + 8,
        receive_size: 4096,
        sends: calls + 64,
        own: Some(Own {
            rnr_retry: 0,
            depth: 0,
        }),
        ..Options::default()
    }
}

/// As many calls as a client can have under way here.
const MOST: usize = 2000;

/// What the server grants; not more than MOST.
pub fn granted(b: &mut Bench<'_>) -> Result<usize, String> {
    Ok((b.must(Call::null())?.grant as usize).min(MOST))
}

/// No call was answered twice, and none but with success.
fn each_ok(answers: &Answers) -> Result<(), String> {
    for (i, seen) in answers.seen.iter().enumerate() {
        check(seen.len() <= 1, || format!("call {i} was answered twice"))?;
        for one in seen {
            check(
                one.outcome == Outcome::Ok && one.results.status == 0,
                || format!("call {i}: {}", one.describe()),
            )?;
        }
    }
    Ok(())
}

/// Each call was answered once, with success, and the connection is there.
pub fn all_ok(answers: &Answers) -> Result<(), String> {
    each_ok(answers)?;
    check(answers.end.is_none(), || {
        let (count, all) = (answers.count, answers.seen.len());
        format!("{count} answers to {all} calls, then {:?}", answers.end)
    })?;
    let missing = answers.seen.iter().position(Vec::is_empty);
    check(missing.is_none(), || {
        format!("no answer to call {missing:?}")
    })
}

/// So many NULL calls at once; how it ended if not all were answered.
fn burst(b: &mut Bench<'_>, count: usize) -> Result<Option<Outcome>, String> {
    let sent: Vec<_> = (0..count).map(|_| null(b)).collect();
    for message in &sent {
        // The connection may have ended already: the answers show it.
        if b.post(message).is_err() {
            break;
        }
    }
    let answers = b.answers(&sent, count)?;
    each_ok(&answers)?;
    if answers.end.is_none() {
        all_ok(&answers)?;
    }
    Ok(answers.end)
}

/// A full window: as many NULL calls at once as granted, all of which have to be answered.
pub fn window(b: &mut Bench<'_>, grant: usize) -> Result<(), String> {
    let end = burst(b, grant)?;
    check(end.is_none(), || {
        format!("{grant} calls at once, as granted: {end:?}")
    })
}

/// Beyond the credits a server may close, and a client without RNR retry may break.
fn overrun(b: &mut Bench<'_>, more: usize, factor: usize, rnr_retry: u8) -> Result<Seen, String> {
    let grant = granted(b)?;
    if grant == MOST {
        return Ok(skip(format!("the server grants {grant} or more")));
    }
    let count = grant * factor + more;
    b.reconnect(&Options {
        own: Some(Own {
            rnr_retry,
            depth: 0,
        }),
        ..wide(count)
    })?;
    b.must(Call::null())?;
    match burst(b, count)? {
        None => Ok(Seen::only(Outcome::Ok)),
        Some(Outcome::Hang) => {
            Err("HANG: not all calls were answered, and the connection is open".into())
        }
        Some(end) => Ok(Seen::only(end)),
    }
}

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        full(
            "M149",
            "8166 3.3.1",
            "one call more than granted at once",
            OK | CLOSE | BROKEN,
            |b| overrun(b, 1, 1, 0),
        ),
        full(
            "R3",
            "8166 3.3.1",
            "64 calls more than granted at once",
            OK | CLOSE | BROKEN,
            |b| overrun(b, 64, 1, 0),
        ),
        full(
            "M150",
            "8166 3.3.1",
            "three times the grant at once, RNR retry 7",
            OK | CLOSE,
            |b| overrun(b, 0, 3, 7),
        ),
        full(
            "M151",
            "8166 3.3.3",
            "a second call before the first reply of a new connection",
            OK,
            |b| {
                b.reconnect(&Options::default())?;
                match burst(b, 2)? {
                    None => b.succeed(Call::null()),
                    Some(end) => Ok(Seen::only(end)),
                }
            },
        ),
        full(
            "M154",
            "8166 3.4",
            "a call by Send with immediate data",
            OK,
            |b| send(b, Send::Immediate(0x1234_5678), 1),
        ),
        full(
            "M155",
            "8166 4.5",
            "RDMA Write with immediate data of length 0, no key",
            DROP | CLOSE,
            |b| {
                let message = Message::raw(Vec::new());
                b.post_as(
                    &message,
                    Send::WriteImmediate {
                        key: 0,
                        address: 0,
                        value: 7,
                    },
                    1,
                )?;
                b.answer(&message)
            },
        ),
        full(
            "M155b",
            "8166 4.5",
            "five of them, then calls",
            DROP | CLOSE,
            |b| {
                let message = Message::raw(Vec::new());
                for value in 0..5 {
                    if b.post_as(
                        &message,
                        Send::WriteImmediate {
                            key: value * 0x1111,
                            address: 0x1000,
                            value,
                        },
                        1,
                    )
                    .is_err()
                    {
                        break;
                    }
                }
                b.answer(&message)
            },
        ),
        full(
            "M155c",
            "8166 8.1",
            "RDMA Writes with immediate data of 68 bytes at guessed keys",
            CLOSE | BROKEN,
            |b| {
                reach_writing(b, |key, address| Send::WriteImmediate {
                    key,
                    address,
                    value: 7,
                })
            },
        ),
        full("M156a", "8166 3.4", "a solicited Send", OK, |b| {
            send(b, Send::Solicited, 1)
        }),
        full("M156b", "8166 3.4", "a fenced Send", OK, |b| {
            send(b, Send::Fenced, 1)
        }),
        full("M156c", "8166 3.4", "a Send of many elements", OK, |b| {
            send(b, Send::Plain, 16)
        }),
        full(
            "M157",
            "8166 3.3.1",
            "2,000 NULL calls, as many at once as granted",
            OK,
            |b| {
                let grant = granted(b)?;
                b.reconnect(&wide(grant))?;
                let mut seen = b.must(Call::null())?;
                let rounds = 2000usize.div_ceil(grant);
                for _ in 0..rounds {
                    window(b, grant)?;
                    b.evidence.clear();
                }
                seen.note = format!("{} calls", rounds * grant);
                Ok(seen)
            },
        ),
        full(
            "C51",
            "8166 3.3.1",
            "calls that ask for 0, 1, 64 and 0xffffffff credits, after each as many as granted",
            OK,
            |b| {
                // More may be granted if more is asked for.
                let greedy = null(b).poke(8, u32::MAX);
                let most = setup(b.ask(&greedy))?.grant as usize;
                let most = most.max(granted(b)?).min(MOST);
                b.reconnect(&wide(most))?;
                let mut grants = Vec::new();
                for credits in [0, 1, 64, u32::MAX] {
                    let message = null(b).poke(8, credits);
                    let seen = b.ask(&message)?;
                    check(seen.outcome == Outcome::Ok, || seen.describe())?;
                    grants.push(seen.grant);
                    // A grant that no Receive is behind would show in an RNR error.
                    window(b, (seen.grant as usize).min(most))?;
                }
                let mut seen = b.succeed(Call::null())?;
                seen.note = format!("grants {grants:?}");
                Ok(seen)
            },
        ),
        full(
            "C52",
            "8166 3.3.1",
            "10,000 calls in bursts of all lengths up to the grant, with pauses, READs among them",
            OK,
            bursts,
        ),
        full(
            "M158",
            "8166 3.3.1",
            "a client that does not look at its replies for a while",
            OK,
            |b| {
                let grant = granted(b)?;
                b.reconnect(&wide(grant))?;
                b.must(Call::null())?;
                let sent: Vec<_> = (0..grant).map(|_| null(b)).collect();
                sent.iter().try_for_each(|m| b.post(m))?;
                std::thread::sleep(b.world.unit * 100);
                b.world.check_control()?;
                all_ok(&b.answers(&sent, grant)?)?;
                b.succeed(Call::null())
            },
        ),
        full(
            "M156d",
            "8166 3.5",
            "a Send with immediate data that names no call",
            DROP,
            |b| {
                let message = Message::raw(vec![0; 12]);
                b.post_as(&message, Send::Immediate(1), 1)?;
                b.answer(&message)
            },
        ),
        full(
            "H1",
            "8166 3.3.1",
            "READs of 64 KiB, as many at once as granted",
            OK,
            |b| {
                let grant = granted(b)?.min(256);
                b.reconnect(&wide(grant))?;
                b.must(Call::null())?;
                let mut sent = Vec::new();
                for i in 0..grant {
                    let chunk = b.chunk(&[65536])?;
                    let call = read_call(b, i * 1000, 65536);
                    sent.push(Message::inline(&call, Lists::write(chunk)));
                }
                sent.iter().try_for_each(|m| b.post(m))?;
                let answers = b.answers(&sent, grant)?;
                all_ok(&answers)?;
                for (i, seen) in answers.seen.iter().enumerate() {
                    good_read(&seen[0], i * 1000, 65536, true)?;
                }
                Ok(answers.seen[0][0].clone())
            },
        ),
        full(
            "C14",
            "8166 3.4.6",
            "READs, as many at once as granted, each into 200 segments of 512",
            OK | EC,
            |b| {
                // RFC 8267, section 6.4.2, asks for 16 segments: a server may refuse so many.
                let grant = granted(b)?.min(256);
                b.reconnect(&wide(grant))?;
                b.must(Call::null())?;
                let mut sent = Vec::new();
                for i in 0..grant {
                    let chunk = b.slices(200, 512)?;
                    let call = read_call(b, i * 77, 200 * 512);
                    sent.push(Message::inline(&call, Lists::write(chunk)));
                }
                sent.iter().try_for_each(|m| b.post(m))?;
                let answers = b.answers(&sent, grant)?;
                check(
                    answers.end.is_none() && answers.seen.iter().all(|s| s.len() == 1),
                    || format!("{} answers, {:?}", answers.count, answers.end),
                )?;
                let all: Vec<_> = answers.seen.into_iter().flatten().collect();
                for (i, seen) in all.iter().enumerate() {
                    if seen.outcome != Outcome::Chunk {
                        good_read(seen, i * 77, 200 * 512, true)?;
                    }
                }
                let refused = all.iter().filter(|s| s.outcome == Outcome::Chunk).count();
                let worst = all.iter().find(|s| s.outcome == Outcome::Chunk);
                let mut seen = worst.unwrap_or(&all[0]).clone();
                seen.note = format!("{grant} READs, {refused} refused");
                Ok(seen)
            },
        ),
        full(
            "C37",
            "8166 3.4.5",
            "WRITEs, as many at once as granted, each from 128 segments of 1024",
            OK,
            |b| {
                let grant = granted(b)?.min(128);
                b.reconnect(&wide(grant))?;
                b.must(Call::null())?;
                let count = ((b.call_limit()? - 200) / 24).min(128);
                // All from one region, and no two have the same data.
                let (len, step) = (count * 1024, 4097);
                let bytes = pattern(0, len + grant * step);
                let region = b.region(bytes.len())?;
                b.fill(region, 0, &bytes);
                let mut sent = Vec::new();
                let mut files = Vec::new();
                for from in (0..grant).map(|i| i * step) {
                    let file = b.world.fresh_file()?;
                    let call = b.number(nfs3::write(&file, 0, &bytes[from..from + len]));
                    let position = call.item(0).0 as u32;
                    let reads = (0..count)
                        .map(|s| (position, b.segment(region, from + s * 1024, 1024)))
                        .collect();
                    let header = crate::frame::Header::new(
                        call.xid,
                        crate::frame::MSG,
                        Lists {
                            reads,
                            ..Lists::default()
                        },
                    );
                    sent.push(Message::new(header, &call.reduced(0).0, call.kind));
                    files.push((file, from));
                }
                sent.iter().try_for_each(|m| b.post(m))?;
                let answers = b.answers(&sent, grant)?;
                all_ok(&answers)?;
                for (file, from) in files {
                    check(
                        b.world.content(&file, 1 << 20)? == bytes[from..from + len],
                        || "other data were stored".into(),
                    )?;
                }
                let mut seen = answers.seen[0][0].clone();
                seen.note = format!("{grant} WRITEs");
                Ok(seen)
            },
        ),
    ];
    for (id, len) in [("M153a", 1usize), ("M153b", 61440)] {
        // Longer than the server's Receive: nothing but the end of the connection can follow.
        cases.push(full(
            id,
            "8166 3.3.2",
            format!("a Send {len} bytes longer than the server takes"),
            CLOSE,
            move |b| {
                let limit = b.call_limit()?;
                b.longer = true;
                let message = null(b).and(&vec![0; limit + len - 68]);
                b.ask(&message)
            },
        ));
    }
    cases
}

/// Bursts whose lengths are no multiples of one another, each READ into a chunk of its own.
fn bursts(b: &mut Bench<'_>) -> Result<Seen, String> {
    let grant = granted(b)?;
    b.reconnect(&wide(grant))?;
    let mut seen = b.must(Call::null())?;
    let region = b.region(64 * 256)?;
    let (mut calls, mut step) = (0, 0);
    while calls < 10_000 {
        step += 37;
        let count = 1 + step % grant;
        let sent: Vec<_> = (0..count)
            .map(|i| match i % 8 {
                3 if i < 512 => {
                    let segment = b.segment(region, i / 8 * 256, 256);
                    let call = read_call(b, i, 256);
                    Message::inline(&call, Lists::write(vec![segment]))
                }
                _ => null(b),
            })
            .collect();
        sent.iter().try_for_each(|m| b.post(m))?;
        let answers = b.answers(&sent, count)?;
        all_ok(&answers).map_err(|e| format!("after {calls} calls: {e}"))?;
        calls += count;
        b.evidence.clear();
        if step % 5 == 0 {
            std::thread::sleep(b.world.unit * (step % 4) as u32);
        }
    }
    seen.note = format!("{calls} calls");
    Ok(seen)
}

fn send(b: &mut Bench<'_>, kind: Send, pieces: usize) -> Result<Seen, String> {
    let message = null(b);
    b.post_as(&message, kind, pieces)?;
    b.answer(&message)
}
