// SPDX-License-Identifier: GPL-2.0
//! Group H: credits and the kinds of Send (M149 to M158).

use super::{
    faults::reach_writing,
    length::null,
    write_list::{good_read, read_call},
};
use crate::{
    bench::Bench,
    case::{check, full, Case},
    connection::Options,
    explain::Seen,
    frame::Lists,
    message::Message,
    nfs3,
    outcome::{Outcome, BROKEN, CLOSE, DROP, OK},
    rpc::Call,
    send::Send,
    world::pattern,
};

fn wide(receives: usize) -> Options {
    Options {
        receives,
        receive_size: 4096,
        ..Options::default()
    }
}

/// So many NULL calls at once; how it ended if not all were answered.
fn burst(b: &mut Bench<'_>, count: usize) -> Result<Option<Outcome>, String> {
    let sent: Vec<_> = (0..count).map(|_| null(b)).collect();
    for message in &sent {
        if b.post(message).is_err() {
            break;
        }
    }
    let answers = b.answers(&sent, count)?;
    check(answers.seen.iter().all(|s| s.len() <= 1), || {
        "a call was answered twice".into()
    })?;
    Ok(answers.end)
}

/// Beyond the credits a server may close, and a client without RNR retry may break.
fn overrun(b: &mut Bench<'_>, more: usize, factor: usize, rnr_retry: u8) -> Result<Seen, String> {
    let grant = b.must(Call::null())?.grant.min(128) as usize;
    b.reconnect(&Options {
        rnr_retry,
        ..wide(448)
    })?;
    b.must(Call::null())?;
    match burst(b, grant * factor + more)? {
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
            "three times the grant at once",
            OK | CLOSE | BROKEN,
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
        full("M156c", "8166 3.4", "a Send of 16 elements", OK, |b| {
            send(b, Send::Plain, 16)
        }),
        full(
            "M157",
            "8166 3.3.1",
            "2,000 NULL calls, as many at once as granted",
            OK,
            |b| {
                let grant = b.must(Call::null())?.grant.min(128) as usize;
                b.reconnect(&wide(grant + 8))?;
                let mut seen = b.must(Call::null())?;
                for _ in 0..2000 / grant {
                    if let Some(end) = burst(b, grant)? {
                        return Ok(Seen::only(end));
                    }
                    b.evidence.clear();
                }
                seen.note = format!("{} calls", 2000 / grant * grant);
                Ok(seen)
            },
        ),
        full(
            "M158",
            "8166 3.3.1",
            "a client that does not look at its replies for a while",
            OK,
            |b| {
                b.reconnect(&wide(140))?;
                let grant = b.must(Call::null())?.grant.min(128) as usize;
                let sent: Vec<_> = (0..grant).map(|_| null(b)).collect();
                sent.iter().try_for_each(|m| b.post(m))?;
                std::thread::sleep(b.world.unit * 100);
                b.world.check_control()?;
                let answers = b.answers(&sent, grant)?;
                check(answers.end.is_none(), || format!("{:?}", answers.end))?;
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
                let grant = b.must(Call::null())?.grant.min(32) as usize;
                let mut sent = Vec::new();
                for i in 0..grant {
                    let chunk = b.chunk(&[65536])?;
                    let call = read_call(b, i * 1000, 65536);
                    sent.push(Message::inline(&call, Lists::write(chunk)));
                }
                sent.iter().try_for_each(|m| b.post(m))?;
                let answers = b.answers(&sent, grant)?;
                check(answers.end.is_none(), || {
                    format!("{} answers, {:?}", answers.count, answers.end)
                })?;
                for (i, seen) in answers.seen.iter().enumerate() {
                    good_read(&seen[0], i * 1000, 65536, true)?;
                }
                Ok(answers.seen[0][0].clone())
            },
        ),
        full(
            "C14",
            "8166 3.4.6",
            "8 READs at once, each into 200 segments of 512",
            OK,
            |b| {
                let mut sent = Vec::new();
                for i in 0..8 {
                    let chunk = b.slices(200, 512)?;
                    let call = read_call(b, i * 77, 200 * 512);
                    sent.push(Message::inline(&call, Lists::write(chunk)));
                }
                sent.iter().try_for_each(|m| b.post(m))?;
                let answers = b.answers(&sent, 8)?;
                check(answers.end.is_none(), || {
                    format!("{} answers, {:?}", answers.count, answers.end)
                })?;
                let first = answers.seen[0][0].clone();
                for (i, seen) in answers.seen.iter().enumerate() {
                    if seen[0].outcome != Outcome::Chunk {
                        good_read(&seen[0], i * 77, 200 * 512, true)?;
                    }
                }
                Ok(Seen {
                    outcome: Outcome::Ok,
                    ..first
                })
            },
        ),
        full(
            "C37",
            "8166 3.4.5",
            "16 WRITEs at once, each from 128 segments of 4096",
            OK,
            |b| {
                let count = ((b.call_limit()? - 200) / 24).min(128);
                let mut sent = Vec::new();
                let mut files = Vec::new();
                for i in 0..16usize {
                    let file = b.world.fresh_file()?;
                    let data = pattern(i * 31, count * 4096);
                    let call = b.number(nfs3::write(&file, 0, &data));
                    let region = b.region(data.len())?;
                    b.fill(region, 0, &data);
                    let position = call.item(0).0 as u32;
                    let reads = (0..count)
                        .map(|s| (position, b.segment(region, s * 4096, 4096)))
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
                    files.push((file, data));
                }
                sent.iter().try_for_each(|m| b.post(m))?;
                let answers = b.answers(&sent, 16)?;
                check(answers.end.is_none(), || {
                    format!("{} answers, {:?}", answers.count, answers.end)
                })?;
                for (seen, (file, data)) in answers.seen.iter().zip(&files) {
                    check(
                        seen[0].outcome == Outcome::Ok && seen[0].results.status == 0,
                        || seen[0].describe(),
                    )?;
                    check(&b.world.content(file, 1 << 20)? == data, || {
                        "other data were stored".into()
                    })?;
                }
                Ok(answers.seen[0][0].clone())
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
                let message = null(b).and(&vec![0; limit + len - 68]);
                b.ask(&message)
            },
        ));
    }
    cases
}

fn send(b: &mut Bench<'_>, kind: Send, pieces: usize) -> Result<Seen, String> {
    let message = null(b);
    b.post_as(&message, kind, pieces)?;
    b.answer(&message)
}
