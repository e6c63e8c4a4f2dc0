// SPDX-License-Identifier: GPL-2.0
//! Group G: connections that end at a bad moment (M133 to M144).

use std::time::Instant;

use super::{
    faults::fatal,
    leave::{leave, Leave, Work},
    length::null,
    positive::stored,
    write_list::read_call,
};
use crate::{
    bench::Bench,
    case::{check, full, Case},
    connection::{Connection, Event, Options},
    explain::{explain, Seen},
    frame::Lists,
    message::Message,
    nfs3,
    outcome::{Outcome, CLOSE, EC, OK},
    rpc::Call,
    world::{pattern, SMALL},
};

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (id, sends, work, how) in [
        (
            "M133",
            "disconnect with a WRITE of 1 MiB under way",
            Work::Write,
            Leave::Disconnect,
        ),
        (
            "M134",
            "own queue pair to error with a WRITE of 1 MiB under way",
            Work::Write,
            Leave::Break,
        ),
        (
            "M135",
            "a process killed with a WRITE of 1 MiB under way",
            Work::Write,
            Leave::Kill,
        ),
        (
            "M138",
            "disconnect with a READ of 1 MiB under way",
            Work::Read,
            Leave::Disconnect,
        ),
        (
            "M138b",
            "own queue pair to error with a READ of 1 MiB under way",
            Work::Read,
            Leave::Break,
        ),
        (
            "M137",
            "disconnect with 16 WRITEs of 64 KiB sent, before their data are read",
            Work::Writes,
            Leave::Disconnect,
        ),
        (
            "M137b",
            "disconnect with 64 NULL calls under way",
            Work::Nulls,
            Leave::Disconnect,
        ),
        (
            "C39",
            "a process killed with 64 NULL calls under way",
            Work::Nulls,
            Leave::Kill,
        ),
        (
            "C39b",
            "own queue pair to error with 64 NULL calls under way",
            Work::Nulls,
            Leave::Break,
        ),
        (
            "C36",
            "own queue pair to error with 32 READs of 256 KiB under way",
            Work::Reads,
            Leave::Break,
        ),
        (
            "C36b",
            "a process killed with 32 READs of 256 KiB under way",
            Work::Reads,
            Leave::Kill,
        ),
    ] {
        let rounds = if work == Work::Reads { 4 } else { 12 };
        cases.push(full(
            id,
            "8166 3.1",
            format!("{sends}, {rounds} times"),
            OK,
            move |b| leave(b, work, how, rounds),
        ));
    }
    cases.push(full(
        "M140",
        "8166 3.3.2",
        "no Receive posted for the reply, RNR retry 0",
        CLOSE,
        |b| {
            b.reconnect(&Options {
                receives: 0,
                rnr_retry: 0,
                ..Options::default()
            })?;
            let message = null(b);
            b.ask(&message)
        },
    ));
    cases.push(full(
        "M139",
        "8166 3.3.2",
        "READ of 64 KiB, no Receive posted for its reply",
        CLOSE,
        |b| {
            b.reconnect(&Options {
                receives: 0,
                rnr_retry: 0,
                ..Options::default()
            })?;
            let chunk = b.chunk(&[65536])?;
            let call = read_call(b, 0, 65536);
            b.ask(&Message::inline(&call, Lists::write(chunk)))
        },
    ));
    cases.push(full(
        "M141",
        "8166 3.3.2",
        "a Receive of 512 bytes, a reply of 700",
        CLOSE,
        |b| {
            b.reconnect(&Options {
                receives: 4,
                receive_size: 512,
                ..Options::default()
            })?;
            let call = read_call(b, 0, 700);
            b.ask(&Message::inline(&call, Lists::default()))
        },
    ));
    cases.push(full(
        "M144",
        "8166 3.1",
        "8 clients at once: connect, one call, close, 20 times each",
        OK,
        churn,
    ));
    cases.push(full(
        "C29",
        "8166 4.5.3",
        "a bogus Read key, 25 times on new connections: each is closed",
        CLOSE | EC,
        |b| {
            let mut last = None;
            for round in 0..25 {
                b.reconnect(&Options {
                    receives: 4,
                    ..Options::default()
                })?;
                let file = b.world.files.small.clone();
                let call = b.number(nfs3::write(&file, 0, &[1; 64]));
                let mut chunk = b.chunk(&[64])?;
                chunk[0].handle ^= 0x5a5a_0000;
                let lists = Lists::read(call.item(0).0 as u32, chunk);
                let header = crate::frame::Header::new(call.xid, crate::frame::MSG, lists);
                let seen = b.ask(&Message::new(header, &call.reduced(0).0, call.kind))?;
                let seen = fatal(b, seen).map_err(|e| format!("round {round}: {e}"))?;
                check(b.accept.has(seen.outcome), || {
                    format!("round {round}: {}", seen.describe())
                })?;
                stored(b, &file, &pattern(0, SMALL))?;
                last = Some(seen);
                b.evidence.clear();
            }
            last.ok_or_else(String::new)
        },
    ));
    cases
}

/// Connections that come and go, of several threads at once.
fn churn(b: &mut Bench<'_>) -> Result<Seen, String> {
    let (server, limit) = (b.world.server, b.world.limit());
    let options = Options {
        receives: 4,
        ..Options::default()
    };
    let client = |number: u32| -> Result<(), String> {
        for i in 0..20 {
            let mut one = Connection::connect(server, &options, limit)
                .map_err(|e| format!("connect: {e}"))?;
            let call = Call::null().xid(0x1c00_0000 | number << 8 | i);
            let sent = Message::inline(&call, Lists::default());
            one.send(&sent.bytes).map_err(|e| e.to_string())?;
            let until = Instant::now() + limit;
            let bytes = loop {
                match one.next(until) {
                    Some(Event::Received { bytes, .. }) => break bytes,
                    Some(Event::Sent) => {}
                    other => return Err(format!("connection {i} of client {number}: {other:?}")),
                }
            };
            let seen = explain(&bytes, &sent, &|_| None)?;
            check(seen.outcome == Outcome::Ok, || seen.describe())?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let client = &client;
        let all: Vec<_> = (0..8).map(|n| scope.spawn(move || client(n))).collect();
        all.into_iter()
            .map(|one| one.join())
            .try_for_each(|ended| ended.unwrap_or_else(|_| Err("a client panicked".into())))
    })?;
    b.succeed(Call::null())
}
