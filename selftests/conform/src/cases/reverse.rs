// SPDX-License-Identifier: GPL-2.0
//! Reverse direction: callbacks of a v4.1 session, and replies that nobody waits
//! for (B5 to B10, M162 to M173, C50).

use std::time::Instant;

use super::{
    flow::{granted, wide, window},
    leave::parked,
    replay::session_of,
    session::{good_reply, reply, ungranted, Callback, Session},
};
use crate::{
    answers::Next,
    bench::Bench,
    case::{check, full, one, setup, Case},
    connection::Options,
    explain::Seen,
    frame::{words, Lists, ERROR},
    message::Message,
    nfs3,
    nfs4::Compound,
    outcome::{Outcome, DROP, EC, OK},
    rpc::Call,
};

/// What has to become of a callback.
#[derive(Clone, Copy)]
enum Fate {
    /// It is done.
    Done,
    /// It fails, as there is no answer to it.
    Fails,
    /// It fails before the server's patience is over.
    FailsAtOnce,
}

/// Answer the first callback with this; the forward direction has to go on.
fn answered(
    id: &'static str,
    rfc: &'static str,
    sends: &'static str,
    fate: Fate,
    make: impl Fn(&Callback) -> Vec<Message> + 'static,
) -> Case {
    full(id, rfc, sends, OK, move |b| {
        let Some(mut session) = Session::new(b, &Options::default(), 1024)? else {
            return Ok(ungranted());
        };
        let patience = session.patience;
        let Some(callback) = session.recall(b)? else {
            return Ok(ungranted());
        };
        for message in make(&callback) {
            b.post(&message)?;
        }
        b.succeed(Call::null())?;
        let mut note = String::new();
        match fate {
            Fate::Done => session.done(b, &callback)?,
            Fate::FailsAtOnce => {
                let took = session.down(b, patience / 2)?;
                note = format!("failed in {} ms", took.as_millis());
            }
            Fate::Fails => {
                let limit = patience * 3 + b.world.limit();
                let took = session.down(b, limit)?;
                note = format!("failed in {} ms", took.as_millis());
            }
        }
        for _ in 0..20 {
            b.succeed(Compound::new(0).root().getattr().call())?;
        }
        session.end_with(b, note)
    })
}

fn strays() -> Vec<Case> {
    vec![
        one(
            "M163",
            "8166 4.5",
            "an RPC reply where no call was made",
            DROP,
            |b| Ok(good_reply(b.xid())),
        ),
        one(
            "M163b",
            "8167 5.2",
            "an RPC reply with another XID in its header",
            DROP | EC,
            |b| {
                let xid = b.xid();
                Ok(reply(xid, 2, &[xid ^ 0xff, 1, 0, 0, 0, 0]))
            },
        ),
        one(
            "M168",
            "8166 4.5",
            "an RPC reply with a Write list",
            DROP | EC,
            |b| {
                let chunk = b.chunk(&[64])?;
                let xid = b.xid();
                let header = crate::frame::Header::new(xid, 0, Lists::write(chunk));
                Ok(Message::new(
                    header,
                    &words(&[xid, 1, 0, 0, 0, 0]),
                    crate::rpc::Kind::Null,
                ))
            },
        ),
        one("M169", "8166 4.5", "direction 7", DROP, |b| {
            let xid = b.xid();
            Ok(reply(xid, 2, &[xid, 7, 2, 100_003, 3, 0, 0, 0, 0, 0]))
        }),
    ]
}

fn answers() -> Vec<Case> {
    vec![
        answered(
            "B5",
            "8167 5.1",
            "a callback, answered as it should be",
            Fate::Done,
            |c| vec![c.right()],
        ),
        answered(
            "B6",
            "8167 5.2",
            "a callback's reply with an unknown XID, then the right one",
            Fate::Done,
            |c| vec![good_reply(c.xid ^ 0x55), c.right()],
        ),
        answered(
            "M165",
            "8167 5.2",
            "a callback's reply sent twice",
            Fate::Done,
            |c| vec![c.right(), c.right()],
        ),
        answered(
            "M169b",
            "8166 4.5",
            "direction 7 with the XID of a callback, then the right reply",
            Fate::Done,
            |c| vec![reply(c.xid, 2, &[c.xid, 7, 0, 0, 0, 0]), c.right()],
        ),
        answered(
            "B8",
            "8167 5.3",
            "a callback answered with ERR_CHUNK",
            Fate::FailsAtOnce,
            |c| vec![Message::words(c.xid, 1, ERROR, &[2, 0, 0])],
        ),
        // RFC 8166, section 4.5, has less than 28 bytes discarded, the whole error has 20.
        answered(
            "M171",
            "8167 5.3",
            "a callback answered with ERR_CHUNK of 20 bytes",
            Fate::Fails,
            |c| vec![Message::words(c.xid, 1, ERROR, &[2])],
        ),
        answered(
            "M171b",
            "8166 4.5.1",
            "a callback answered with ERR_VERS",
            Fate::FailsAtOnce,
            |c| vec![Message::words(c.xid, 1, ERROR, &[1, 1, 1])],
        ),
        answered(
            "M164",
            "8167 5.2",
            "replies with unknown XIDs on a connection with a backchannel",
            Fate::Fails,
            |c| {
                (1..20)
                    .map(|i| good_reply(c.xid.wrapping_add(i * 1000)))
                    .collect()
            },
        ),
        answered(
            "M166",
            "8167 5.2",
            "a callback's reply of 3000 bytes",
            Fate::Fails,
            |c| vec![reply(c.xid, 2, &[c.xid, 1, 0, 0, 0, 0]).and(&vec![0x5a; 3000])],
        ),
        answered(
            "M167",
            "8167 5.2",
            "a callback's reply of 8 bytes",
            Fate::Fails,
            |c| vec![reply(c.xid, 2, &[c.xid, 1])],
        ),
        answered(
            "M172",
            "8167 4.2",
            "a callback that is never answered",
            Fate::Fails,
            |_| Vec::new(),
        ),
        answered(
            "M170",
            "8166 4.5",
            "28 to 35 bytes on a connection with a backchannel",
            Fate::Fails,
            |c| (0..8).map(|n| good_reply(c.xid).cut(28 + n)).collect(),
        ),
    ]
}

/// Sessions whose backchannel, if there is one, is on no connection that is left.
fn undeclared() -> Vec<Case> {
    vec![
        full(
            "B9",
            "8167 6",
            "a v4.1 session that asks for no backchannel, an open file and a conflict: no callback",
            OK,
            |b| {
                b.reconnect(&Options::default())?;
                let (id, client, seen) = session_of(b, 1, 0, (1024, 2))?;
                check(seen.results.flags & 2 == 0, || {
                    "a backchannel that was not asked for".into()
                })?;
                let start = Compound::new(1).sequence(&id, 1, 0, false);
                b.must(start.reclaim_complete().call())?;
                let file = b.world.fresh_file()?;
                let start = Compound::new(1).sequence(&id, 2, 0, false);
                let open = b.must(start.handle(&file).open(client, b"opener").call())?;
                b.world.tcp.call(nfs3::write(&file, 0, b"conflict"))?;
                silence(b)?;
                let mut seen = b.succeed(Compound::new(1).destroy_session(&id).call())?;
                if matches!(open.results.number, 1 | 2) {
                    seen.note = "the server gave a delegation".into();
                }
                Ok(seen)
            },
        ),
        full(
            "B9b",
            "8167 6",
            "a session's connection with its backchannel is gone, another is used: no callback there",
            OK,
            |b| {
                let Some(mut session) = Session::new(b, &Options::default(), 1024)? else {
                    return Ok(ungranted());
                };
                let Some(file) = setup(session.delegated(b))? else {
                    return Ok(ungranted());
                };
                b.reconnect(&Options::default())?;
                session.flags(b)?;
                b.world.tcp.call(nfs3::write(&file, 0, b"conflict"))?;
                silence(b)?;
                let limit = b.world.limit();
                session.down(b, limit)?;
                session.end(b)
            },
        ),
    ]
}

fn silence(b: &mut Bench<'_>) -> Result<(), String> {
    let until = Instant::now() + b.world.unit * 200;
    check(matches!(b.next_message(until)?, Next::Silence), || {
        "a message".into()
    })?;
    check(b.reverse.is_empty(), || "a callback".into())
}

/// 10,000 replies that are for no callback, as long as any or too short.
fn bogus(b: &mut Bench<'_>) -> Result<Seen, String> {
    let grant = granted(b)?;
    let Some(session) = Session::new(b, &wide(grant), 1024)? else {
        return Ok(ungranted());
    };
    let batch = (grant / 4).clamp(1, 30) as u32;
    for i in 0..10_000u32 {
        let xid = b.xid();
        let payload = [xid, 1, 0, 0, 0, 0];
        b.post(&reply(
            xid,
            if i % 3 == 0 { u32::MAX } else { 0 },
            &payload[..2 + i as usize % 5],
        ))?;
        if i % batch == batch - 1 {
            // Keep within the credits: replies of the reverse direction take Receives too.
            b.succeed(Call::null())?;
            b.evidence.clear();
        }
    }
    b.succeed(Call::null())?;
    window(b, grant)?;
    session.end(b)
}

pub fn cases() -> Vec<Case> {
    let mut cases = strays();
    cases.extend(undeclared());
    cases.extend(answers());
    cases.push(full(
        "M162",
        "8167 2.4.1",
        "a forward call with the XID of a callback under way",
        OK,
        |b| {
            let Some(mut session) = Session::new(b, &Options::default(), 1024)? else {
                return Ok(ungranted());
            };
            let Some(callback) = session.recall(b)? else {
                return Ok(ungranted());
            };
            let message = Message::inline(&Call::null().xid(callback.xid), Lists::default());
            let seen = b.ask(&message)?;
            if seen.outcome != Outcome::Ok {
                // Whatever becomes of the callback.
                return Ok(seen);
            }
            b.post(&callback.right())?;
            session.done(b, &callback)?;
            let end = session.end(b)?;
            Ok(match end.outcome {
                Outcome::Skip => end,
                _ => seen,
            })
        },
    ));
    cases.push(full(
        "C50",
        "8167 5.2",
        "10,000 replies that nobody waits for in a session, then as many calls as granted",
        OK,
        bogus,
    ));
    // What comes is within the threshold, or received() fails; without chunks, or it
    // is not taken for a call.
    for (id, private, back, sends) in [
        (
            "U12",
            Vec::new(),
            1 << 20,
            "no private data, callbacks of up to 1 MiB allowed: short ones come",
        ),
        (
            "U12b",
            Options::default().private,
            1024,
            "callbacks of up to 1024 bytes allowed: none is longer",
        ),
    ] {
        cases.push(full(id, "8267 6.5.2", sends, OK, move |b| {
            let options = Options {
                private: private.clone(),
                ..Options::default()
            };
            let Some(mut session) = Session::new(b, &options, back)? else {
                return Ok(ungranted());
            };
            let Some(callback) = session.recall(b)? else {
                return Ok(ungranted());
            };
            b.post(&callback.right())?;
            session.done(b, &callback)?;
            session.end(b)
        }));
    }
    // With a broken header its direction cannot be known: RFC 8166, section 4.5, asks
    // a requester for silence and a responder for an error.
    cases.push(full(
        "B10",
        "8166 4.5",
        "a callback's reply with a broken chunk list",
        DROP | EC,
        |b| {
            let Some(mut session) = Session::new(b, &Options::default(), 1024)? else {
                return Ok(ungranted());
            };
            let Some(callback) = session.recall(b)? else {
                return Ok(ungranted());
            };
            let xid = callback.xid;
            let broken = [0, 1, u32::MAX, 0, xid, 1, 0, 0, 0, 0];
            let seen = b.ask(&Message::words(xid, 1, 0, &broken))?;
            if seen.outcome != Outcome::Close {
                b.succeed(Call::null())?;
            }
            Ok(seen)
        },
    ));
    cases.extend(leaving());
    cases
}

/// Clients that leave with a callback outstanding.
fn leaving() -> Vec<Case> {
    vec![
        full(
            "M143",
            "8167 4.2",
            "disconnect with a callback outstanding, 5 times",
            OK,
            |b| {
                for _ in 0..5 {
                    if outstanding(b)?.is_none() {
                        return Ok(ungranted());
                    }
                    b.connection()?.disconnect();
                    b.close()?;
                }
                b.reconnect(&Options::default())?;
                b.succeed(Call::null())
            },
        ),
        full(
            "M143b",
            "8167 4.2",
            "own queue pair to error with a callback outstanding, 5 times",
            OK,
            |b| {
                let mut broken = Vec::new();
                for _ in 0..5 {
                    if outstanding(b)?.is_none() {
                        return Ok(ungranted());
                    }
                    b.connection()?.break_queue();
                    // The server finds out when it calls again.
                    let other = b.world.connect(&Options::default())?;
                    broken.push(std::mem::replace(b.connection()?, other));
                }
                let closed = parked(broken.iter_mut());
                drop(broken);
                b.reconnect(&Options::default())?;
                let mut seen = b.succeed(Call::null())?;
                seen.note = format!("{closed} of 5 closed by the server");
                Ok(seen)
            },
        ),
    ]
}

fn outstanding(b: &mut Bench<'_>) -> Result<Option<Callback>, String> {
    let options = Options {
        retry: 1,
        ..Options::default()
    };
    match Session::new(b, &options, 1024)? {
        Some(mut session) => session.recall(b),
        None => Ok(None),
    }
}
