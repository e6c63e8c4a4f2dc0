// SPDX-License-Identifier: GPL-2.0
//! Group G: connections that end at a bad moment (M133 to M144).

use super::{
    length::null,
    read_list::Write,
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
    outcome::{Outcome, BROKEN, CLOSE, OK},
    rpc::Call,
    world::BIG,
};

/// What a leaving client had under way.
#[derive(Clone, Copy)]
enum Work {
    Write,
    Read,
    Nulls,
}

/// How it leaves.
#[derive(Clone, Copy)]
enum Leave {
    Disconnect,
    Break,
    Drop,
}

/// Leave with work under way, at moments that differ from round to round.
fn leave(b: &mut Bench<'_>, work: Work, how: Leave, rounds: u32) -> Result<Seen, String> {
    for round in 0..rounds {
        b.reconnect(&Options {
            receives: 140,
            receive_size: 4096,
            ..Options::default()
        })?;
        match work {
            Work::Write => {
                let write = Write::new(b, BIG)?;
                let reads = write.segments(b, &[BIG / 2, BIG / 2])?;
                b.post(&write.message(reads))?;
            }
            Work::Read => {
                let chunk = b.chunk(&[BIG])?;
                let call = read_call(b, 0, BIG);
                b.post(&Message::inline(&call, Lists::write(chunk.clone())))?;
                // What was written until then is within the chunk.
                b.allow(&chunk);
            }
            Work::Nulls => {
                for _ in 0..64 {
                    let message = null(b);
                    b.post(&message)?;
                }
            }
        }
        std::thread::sleep(b.world.unit * round / 4);
        match how {
            Leave::Disconnect => b.connection()?.disconnect(),
            Leave::Break => b.connection()?.break_queue(),
            Leave::Drop => {}
        }
        b.evidence.clear();
    }
    b.reconnect(&Options::default())?;
    let call = read_call(b, 0, 1000);
    let seen = b.ask(&Message::inline(&call, Lists::default()))?;
    good_read(&seen, 0, 1000, false)?;
    Ok(seen)
}

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
            "everything destroyed with a WRITE of 1 MiB under way",
            Work::Write,
            Leave::Drop,
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
            "disconnect with 64 NULL calls under way",
            Work::Nulls,
            Leave::Disconnect,
        ),
        (
            "C39",
            "everything destroyed with 64 NULL calls under way",
            Work::Nulls,
            Leave::Drop,
        ),
    ] {
        cases.push(full(
            id,
            "8166 3.1",
            format!("{sends}, 12 times"),
            OK,
            move |b| leave(b, work, how, 12),
        ));
    }
    cases.push(full(
        "M140",
        "8166 3.3.2",
        "no Receive posted for the reply, RNR retry 0",
        CLOSE | BROKEN,
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
        CLOSE | BROKEN,
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
        CLOSE | BROKEN,
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
        "C36",
        "8166 3.1",
        "32 READs of 256 KiB under way, then everything is destroyed",
        OK,
        |b| {
            for _ in 0..4 {
                b.reconnect(&Options::default())?;
                for i in 0..32 {
                    let chunk = b.chunk(&[262_144])?;
                    b.allow(&chunk);
                    let call = read_call(b, i * 100, 262_144);
                    b.post(&Message::inline(&call, Lists::write(chunk)))?;
                }
                b.evidence.clear();
            }
            b.reconnect(&Options::default())?;
            b.succeed(Call::null())
        },
    ));
    cases.push(full(
        "M144",
        "8166 3.1",
        "connect, one call, close: 60 times",
        OK,
        |b| {
            for _ in 0..60 {
                b.reconnect(&Options {
                    receives: 4,
                    ..Options::default()
                })?;
                b.succeed(Call::null())?;
                b.evidence.clear();
            }
            b.succeed(Call::null())
        },
    ));
    cases.push(full(
        "C29",
        "8166 4.5.3",
        "a bogus Read key, 25 times on new connections: each is closed",
        CLOSE,
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
                check(
                    matches!(seen.outcome, Outcome::Close | Outcome::Chunk),
                    || format!("round {round}: {}", seen.describe()),
                )?;
                last = Some(seen);
                b.evidence.clear();
            }
            last.map(|s| Seen {
                outcome: Outcome::Close,
                ..s
            })
            .ok_or_else(String::new)
        },
    ));
    cases
}
