// SPDX-License-Identifier: GPL-2.0
//! Group J: private data and connecting (M174 to M182, C1 to C9).

use std::{
    io,
    time::{Duration, Instant},
};

use super::write_list::{good_read, read_call};
use crate::{
    bench::Bench,
    case::{check, full, Case},
    connection::{Connection, Event, Options},
    explain::{explain, Seen},
    frame::{Header, Lists, MSG},
    message::Message,
    nfs3,
    outcome::{Outcome, BROKEN, CLOSE, EC, OK, REFUSE, RPCERR},
    private::Settings,
    rpc::{auth_sys, Call, Kind},
    world::SMALL,
};

const FULL: Settings = Settings {
    flags: 0,
    send: 3,
    receive: 3,
};

fn at(offset: usize, settings: Settings) -> Vec<u8> {
    let mut data = vec![0; offset];
    data.extend(settings.encode());
    data
}

fn patched(index: usize, value: u8) -> Vec<u8> {
    let mut data = FULL.encode();
    data[index] = value;
    data
}

fn tail(bytes: usize) -> Vec<u8> {
    let mut data = vec![0; 56 - bytes];
    data.extend(&FULL.encode()[..bytes]);
    data
}

/// What a connection with this private data has to do: NULL, a small READ inline,
/// and for what does not fit the threshold, an error instead of a longer Send.
fn usable(b: &mut Bench<'_>, private: Vec<u8>, threshold: usize) -> Result<Seen, String> {
    b.reconnect(&Options {
        private,
        receives: 8,
        receive_size: threshold.max(16384),
        ..Options::default()
    })?;
    check(b.threshold() <= threshold, || {
        format!("the threshold is {}", b.threshold())
    })?;
    let threshold = b.threshold();
    let flags = Settings::find(&b.connection()?.peer).map_or(0, |s| s.flags);
    check(flags & 0xfe == 0, || {
        format!("reserved flags are set: {flags:#x}")
    })?;
    b.succeed(Call::null())?;
    let call = read_call(b, 0, 600);
    let seen = b.ask(&Message::inline(&call, Lists::default()))?;
    good_read(&seen, 0, 600, false)?;
    // 200 bytes of header and attributes at most.
    let call = read_call(b, 0, threshold - 24);
    let long = b.ask(&Message::inline(&call, Lists::default()))?;
    check(
        long.outcome == Outcome::Chunk || long.outcome == Outcome::RpcError,
        || format!("a reply beyond the threshold: {}", long.describe()),
    )?;
    let call = read_call(b, 0, threshold - 300);
    let short = b.ask(&Message::inline(&call, Lists::default()))?;
    good_read(&short, 0, threshold - 300, false)?;
    // A call with one key, which can be invalidated: it is only if both sides have said that they
    // support that, as the bench looks at each Send.
    let chunk = vec![b.window(512)?];
    let key = chunk[0].handle;
    b.invalidated.clear();
    let call = read_call(b, 0, 512);
    let reduced = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
    good_read(&reduced, 0, 512, true)?;
    check(b.invalidated.iter().all(|k| *k == key), || {
        format!("{:x?} invalidated, the call's: {key:x}", b.invalidated)
    })?;
    Ok(seen)
}

/// A connection that was not made: the server has refused it, or has not said anything.
fn refusal(error: &io::Error) -> Result<Seen, String> {
    let text = error.to_string();
    let silent = error.kind() == io::ErrorKind::TimedOut || text == "UNREACHABLE -110";
    let outcome = if silent {
        Outcome::Hang
    } else if text.starts_with("REJECTED") || text.starts_with("UNREACHABLE") {
        Outcome::Refuse
    } else {
        return Err(text);
    };
    Ok(Seen {
        note: text,
        ..Seen::only(outcome)
    })
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let none = 1024;
    let private: Vec<(&str, &str, Vec<u8>, usize)> = vec![
        ("M174", "no private data", vec![], none),
        (
            "M175",
            "private data with another magic",
            patched(0, 0xf7),
            none,
        ),
        (
            "M175b",
            "56 bytes of noise",
            (0..56).map(|i| (i * 37 + 11) as u8).collect(),
            none,
        ),
        ("M176a", "private data of version 0", patched(4, 0), none),
        ("M176b", "private data of version 2", patched(4, 2), none),
        (
            "M176c",
            "private data of version 255",
            patched(4, 255),
            none,
        ),
        ("M177", "flags 0xfe", patched(5, 0xfe), 4096),
        ("C2", "flags 0xff", patched(5, 0xff), 4096),
        ("M179a", "the magic at offset 1", at(1, FULL), 4096),
        ("M179b", "the magic at offset 3", at(3, FULL), 4096),
        ("M179c", "the magic at offset 8", at(8, FULL), 4096),
        ("M179d", "the magic at offset 48", at(48, FULL), 4096),
        ("M180a", "the magic in the last 7 bytes", tail(7), none),
        ("M180b", "the magic in the last 4 bytes", tail(4), none),
        (
            "C5",
            "receives of 1024 bytes",
            Settings { receive: 0, ..FULL }.encode(),
            1024,
        ),
        (
            "C5b",
            "receives of 2048 bytes",
            Settings { receive: 1, ..FULL }.encode(),
            2048,
        ),
    ];
    for (id, sends, data, threshold) in private {
        cases.push(full(id, "8797 5", sends, OK, move |b| {
            usable(b, data.clone(), threshold)
        }));
    }
    // What the server announces is less, so that is the threshold.
    cases.push(full("M178", "8797 4.2", "size codes 0xff", OK, |b| {
        let settings = Settings {
            flags: 0,
            send: 0xff,
            receive: 0xff,
        };
        usable(b, settings.encode(), 262_144)
    }));
    cases.push(full(
        "C1",
        "8797 4",
        "connections with 1024, 4096 and no settings in turn",
        OK,
        |b| {
            usable(b, Settings { receive: 0, ..FULL }.encode(), 1024)?;
            usable(b, FULL.encode(), 4096)?;
            usable(b, Vec::new(), 1024)
        },
    ));
    cases.push(full(
        "R4",
        "8166 3.3.3",
        "no private data, a call of exactly 1024 bytes",
        OK,
        |b| {
            b.reconnect(&Options {
                private: Vec::new(),
                ..Options::default()
            })?;
            padded_null(b, 1024)
        },
    ));
    cases.push(full(
        "R5",
        "8166 3.3.3",
        "no private data, READ3 of 8 KiB without chunks",
        EC | RPCERR | CLOSE,
        |b| {
            b.reconnect(&Options {
                private: Vec::new(),
                ..Options::default()
            })?;
            let call = read_call(b, 0, 8192);
            b.ask(&Message::inline(&call, Lists::default()))
        },
    ));
    cases.push(full(
        "M152",
        "8166 3.3.3",
        "a Send of exactly what the server takes",
        OK,
        |b| {
            let limit = b.call_limit()?;
            padded_null(b, limit)
        },
    ));
    cases.push(full(
        "C4",
        "8797 4.1",
        "R flag set, one key a call: Invalidate only if the server set R too",
        OK,
        |b| {
            b.reconnect(&Options {
                private: Settings { flags: 1, ..FULL }.encode(),
                ..Options::default()
            })?;
            // A server with R might invalidate a plain registration, which cannot be;
            // the first reply is looked at, then the connection is let go.
            let call = b.number(nfs3::read(&b.world.files.small.clone(), 0, SMALL as u32));
            let both = Settings::find(&b.connection()?.peer).is_some_and(|s| s.flags & 1 != 0);
            let lists = if both {
                Lists::default()
            } else {
                Lists::write(b.chunk(&[128])?)
            };
            b.ask(&Message::inline(&call, lists))
        },
    ));
    for (id, keys, sends) in [
        (
            "C3",
            1,
            "R flag set, one key that can be invalidated in each call",
        ),
        ("C3.two", 2, "R flag set, two keys in each call"),
    ] {
        cases.push(full(id, "8797 4.1", sends, OK, move |b| {
            invalidating(b, keys)
        }));
    }
    cases.push(full(
        "M130",
        "8797 4.1",
        "R flag set, memory that cannot be invalidated: only our side may suffer",
        OK | CLOSE | BROKEN,
        |b| {
            b.reconnect(&Options {
                private: Settings { flags: 1, ..FULL }.encode(),
                ..Options::default()
            })?;
            let chunk = b.chunk(&[512])?;
            let call = read_call(b, 0, 512);
            b.ask(&Message::inline(&call, Lists::write(chunk)))
        },
    ));
    cases.push(full(
        "M181",
        "8166 3.4",
        "no responder resources: the server cannot Read",
        REFUSE | EC,
        |b| {
            b.close()?;
            let options = Options {
                responder_resources: 0,
                ..Options::default()
            };
            match Connection::connect(b.world.server, &options, b.world.limit()) {
                Err(error) => refusal(&error),
                Ok(_) => {
                    b.reconnect(&options)?;
                    let write = super::read_list::Write::new(b, 100)?;
                    let reads = write.segments(b, &[100])?;
                    let seen = b.ask(&write.message(reads))?;
                    write.verify(b, &seen)?;
                    Ok(seen)
                }
            }
        },
    ));
    cases.push(full(
        "M182",
        "8166 3.1",
        "a datagram connection to the port",
        REFUSE,
        |b| {
            b.close()?;
            let options = Options {
                port_space: verbs_sys::RDMA_PS_UDP,
                receives: 0,
                ..Options::default()
            };
            match Connection::connect(b.world.server, &options, b.world.limit()) {
                Err(error) => refusal(&error),
                Ok(_) => Ok(Seen::only(Outcome::Ok)),
            }
        },
    ));
    cases.push(full(
        "M145",
        "8166 3.1",
        "connect, and leave before anything is sent",
        OK,
        |b| {
            for _ in 0..5 {
                b.reconnect(&Options::default())?;
                b.connection()?.disconnect();
            }
            b.reconnect(&Options::default())?;
            b.succeed(Call::null())
        },
    ));
    cases.push(full(
        "M145b",
        "8166 3.1",
        "ask for a connection, and leave before the answer",
        OK,
        |b| {
            for _ in 0..5 {
                let mut half =
                    Connection::prepare(b.world.server, &Options::default(), b.world.unit * 5000)
                        .map_err(|e| e.to_string())?;
                half.request().map_err(|e| e.to_string())?;
                drop(half);
            }
            b.succeed(Call::null())
        },
    ));
    cases.push(full(
        "M145c",
        "8166 3.1",
        "a call before the server is told that the connection is there (RTU)",
        OK | CLOSE,
        early,
    ));
    cases.push(full(
        "C44",
        "8166 3.1",
        "6 clients that never say that the connection is there (RTU), others come and go",
        OK,
        half_open,
    ));
    for (id, count) in [("M147", 200), ("C56", 500)] {
        cases.push(full(
            id,
            "8166 3.1",
            format!("{count} idle connections, opened one after another"),
            OK,
            move |b| idle(b, count),
        ));
    }
    cases.push(full(
        "C57",
        "8166 3.1",
        "300 connections asked for at once",
        OK,
        |b| storm(b, 300),
    ));
    cases
}

/// A NULL call made `len` bytes long by its verifier's place: AUTH_SYS groups do.
fn padded_null(b: &mut Bench<'_>, len: usize) -> Result<Seen, String> {
    // A WRITE of the length that is missing: groups end at 16.
    let file = b.world.fresh_file()?;
    let mut call = nfs3::write(&file, 0, &[]);
    call.auth = auth_sys(16);
    let base = 28 + call.encode().len();
    let mut call = nfs3::write(&file, 0, &vec![7; len - base]);
    call.auth = auth_sys(16);
    let call = b.number(call);
    let message = Message::new(
        Header::new(call.xid, MSG, Lists::default()),
        &call.encode(),
        Kind::Write,
    );
    check(message.bytes.len() == len, || {
        format!("{} bytes", message.bytes.len())
    })?;
    let seen = b.ask(&message)?;
    check(seen.results.count as usize == len - base, || {
        seen.describe()
    })?;
    Ok(seen)
}

/// For connections that are many.
fn small() -> Options {
    Options {
        receives: 2,
        receive_size: 4096,
        sends: 4,
        ..Options::default()
    }
}

/// Ask for all of them, then wait until the last is accepted. A server may close them afterwards.
fn storm(b: &mut Bench<'_>, count: usize) -> Result<Seen, String> {
    let text = |e: io::Error| e.to_string();
    let mut all = Vec::new();
    for _ in 0..count {
        let one = Connection::prepare(b.world.server, &small(), b.world.limit());
        all.push(one.map_err(text)?);
    }
    let begin = Instant::now();
    all.iter_mut()
        .try_for_each(Connection::request)
        .map_err(text)?;
    let until = begin + b.world.unit * 10_000;
    let mut asked: Vec<_> = all.iter().enumerate().collect();
    while !asked.is_empty() {
        check(Instant::now() < until, || {
            format!("{} of {count} connections: no answer", asked.len())
        })?;
        let mut wrong = None;
        asked.retain(|(i, one)| match one.cm_channel().next() {
            None => true,
            Some(event) => {
                if event.kind != verbs_sys::RDMA_CM_EVENT_ESTABLISHED {
                    wrong = Some(format!("connection {i}: {}", event.name()));
                }
                false
            }
        });
        wrong.map_or(Ok(()), Err)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    let millis = begin.elapsed().as_millis();
    drop(all);
    b.reconnect(&Options::default())?;
    let mut seen = b.succeed(Call::null())?;
    seen.note = format!("accepted in {millis} ms");
    Ok(seen)
}

fn idle(b: &mut Bench<'_>, count: usize) -> Result<Seen, String> {
    let options = small();
    let mut all = Vec::new();
    for i in 0..count {
        all.push(
            b.world
                .connect(&options)
                .map_err(|e| format!("connection {i}: {e}"))?,
        );
    }
    // A server may shed them (nfsd: the oldest of those that have not presented a file handle). Each
    // that it has not has to answer.
    std::thread::sleep(b.world.unit * 50);
    let mut shed = Vec::new();
    for (i, connection) in all.iter_mut().enumerate() {
        if connection.ends(Instant::now()) {
            shed.push(i);
        } else {
            b.world
                .exchange(connection, Call::null())
                .map_err(|e| format!("connection {i}: {e}"))?;
        }
    }
    drop(all);
    b.reconnect(&Options::default())?;
    let mut seen = b.succeed(Call::null())?;
    seen.note = match (shed.first(), shed.last()) {
        (Some(first), Some(last)) => format!("{} closed, of {first} to {last}", shed.len()),
        _ => "none closed".into(),
    };
    Ok(seen)
}

/// A call that the server has before it knows that its answer to the client has come through.
fn early(b: &mut Bench<'_>) -> Result<Seen, String> {
    let limit = b.world.limit();
    let text = |e: io::Error| e.to_string();
    let mut closed = 0;
    for _ in 0..5 {
        let options = Options::default();
        let mut one = Connection::prepare(b.world.server, &options, limit).map_err(text)?;
        one.half_open(verbs_sys::IBV_QPS_RTS, limit).map_err(text)?;
        let sent = super::length::null(b);
        one.send(&sent.bytes).map_err(text)?;
        std::thread::sleep(b.world.unit * 10);
        one.complete_handshake().map_err(text)?;
        let until = Instant::now() + limit;
        loop {
            match one.next(until) {
                Some(Event::Received { bytes, .. }) => {
                    let seen = explain(&bytes, &sent, &|_| None)?;
                    check(seen.outcome == Outcome::Ok, || seen.describe())?;
                    b.world.exchange(&mut one, Call::null())?;
                    break;
                }
                Some(Event::Disconnected) => {
                    closed += 1;
                    break;
                }
                Some(_) => {}
                None => return Ok(Seen::only(Outcome::Hang)),
            }
        }
    }
    let mut seen = match closed {
        0 => b.succeed(Call::null())?,
        _ => Seen::only(Outcome::Close),
    };
    seen.note = format!("{closed} of 5 closed");
    Ok(seen)
}

/// Connections that stay where they are in the middle of the handshake.
fn half_open(b: &mut Bench<'_>) -> Result<Seen, String> {
    let limit = b.world.limit();
    let text = |e: io::Error| e.to_string();
    let options = Options {
        receives: 4,
        ..Options::default()
    };
    let mut waiting = Vec::new();
    for _ in 0..6 {
        let mut one = Connection::prepare(b.world.server, &options, limit).map_err(text)?;
        one.half_open(verbs_sys::IBV_QPS_RTR, limit).map_err(text)?;
        waiting.push(one);
        for _ in 0..3 {
            b.reconnect(&options)?;
            b.succeed(Call::null())?;
            b.evidence.clear();
        }
    }
    // Some of them break their queue pairs, the rest goes with a word.
    waiting.iter_mut().take(3).for_each(Connection::break_queue);
    drop(waiting);
    b.reconnect(&Options::default())?;
    b.succeed(Call::null())
}

/// READs into windows: at most one key is invalidated a call, one of that call's.
fn invalidating(b: &mut Bench<'_>, keys: usize) -> Result<Seen, String> {
    b.reconnect(&Options {
        private: Settings { flags: 1, ..FULL }.encode(),
        ..Options::default()
    })?;
    let mut last = None;
    for i in 0..5usize {
        let chunk = (0..keys)
            .map(|_| b.window(512))
            .collect::<Result<Vec<_>, _>>()?;
        let own: Vec<_> = chunk.iter().map(|s| s.handle).collect();
        let call = read_call(b, i * 100, 512 * keys);
        b.invalidated.clear();
        let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
        good_read(&seen, i * 100, 512 * keys, true)?;
        let right = b.invalidated.iter().all(|key| own.contains(key));
        check(right && b.invalidated.len() <= 1, || {
            format!("{:x?} invalidated, the call's: {own:x?}", b.invalidated)
        })?;
        last = Some(seen);
    }
    last.ok_or_else(String::new)
}
