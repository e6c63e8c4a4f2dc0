// SPDX-License-Identifier: GPL-2.0
//! Reverse direction: callbacks of a v4.1 session, and replies that nobody waits
//! for (B5 to B10, M162 to M173, C50).

use std::time::{Duration, Instant};

use super::{
    length::null,
    replay::{session, session_of, PROGRAM},
};
use crate::{
    answers::Next,
    bench::Bench,
    case::{check, full, one, setup, Case},
    connection::Options,
    explain::Seen,
    frame::{self, words, Lists, Words, ERROR},
    message::Message,
    nfs3,
    nfs4::Compound,
    outcome::{Outcome, DROP, EC, OK},
    rpc::Call,
};

/// A reply of the reverse direction with this XID and credit word.
fn reply(xid: u32, credits: u32, payload: &[u32]) -> Message {
    let mut all = vec![xid, 1, credits, 0, 0, 0, 0];
    all.extend_from_slice(payload);
    Message::raw(words(&all))
}

fn good_reply(xid: u32) -> Message {
    reply(xid, 2, &[xid, 1, 0, 0, 0, 0])
}

/// A callback that waits for its reply.
pub struct Callback {
    xid: u32,
    session: [u8; 16],
    /// The results that its COMPOUND should have.
    results: Vec<u8>,
}

impl Callback {
    fn right(&self) -> Message {
        reply(self.xid, 2, &[self.xid, 1, 0, 0, 0, 0]).and(&self.results)
    }
}

/// The recall of a delegation, on a new connection with a backchannel; None if the
/// server does not grant that or gives no delegation.
fn callback(b: &mut Bench<'_>) -> Result<Option<Callback>, String> {
    callback_of(b, &Options::default(), 1024)
}

/// As callback(), on a connection of these settings; callbacks may have `back` bytes.
fn callback_of(
    b: &mut Bench<'_>,
    options: &Options,
    back: u32,
) -> Result<Option<Callback>, String> {
    b.reconnect(options)?;
    b.reverse.clear();
    let (session, client, seen) = session_of(b, 1, 2, back)?;
    if seen.results.flags & 2 == 0 {
        return Ok(None);
    }
    let start = Compound::new(1).sequence(&session, 1, 0, false);
    b.must(start.reclaim_complete().call())?;
    let mut number = 1;
    let until = Instant::now() + b.world.grace;
    let file = loop {
        number += 1;
        let file = b.world.fresh_file()?;
        let open = Compound::new(1).sequence(&session, number, 0, false);
        let seen = b.must(open.handle(&file).open(client, b"opener").call())?;
        setup(check(seen.results.status == 0, || {
            format!("OPEN: {}", seen.describe())
        }))?;
        if matches!(seen.results.number, 1 | 2) {
            break file;
        }
        if Instant::now() > until {
            // Not again for each case.
            b.world.grace = Duration::ZERO;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(500));
    };
    // A writer that the server has to keep waiting.
    b.world.tcp.call(nfs3::write(&file, 0, b"conflict"))?;
    let until = Instant::now() + b.world.limit();
    while b.reverse.is_empty() {
        b.succeed(Call::null())?;
        check(Instant::now() < until, || {
            "a delegation is to be recalled, and no callback comes".into()
        })?;
    }
    let bytes = b.reverse.remove(0);
    check(bytes.len() - 28 <= back as usize, || {
        format!(
            "a callback of {} bytes, at most {back} may come",
            bytes.len() - 28
        )
    })?;
    let mut words = Words::new(&bytes);
    let xid = words.word()?;
    let header: Vec<_> = (0..10).map(|_| words.word()).collect::<Result<_, _>>()?;
    check(
        header[0] == 1 && header[1] >= 1 && header[2..6] == [0; 4],
        || format!("header of a callback: {header:x?}"),
    )?;
    check(header[6..] == [xid, 0, 2, PROGRAM], || {
        format!("XID {xid:#x}, call {:x?}", &header[6..])
    })?;
    let at = bytes
        .windows(16)
        .position(|w| w == session)
        .ok_or("a callback without the session")?;
    let sequence = bytes[at..].get(..28).ok_or("a short CB_SEQUENCE")?;
    // CB_SEQUENCE with what it had, then CB_RECALL.
    let results = [
        frame::words(&[0, 0, 2, 11, 0]),
        sequence.to_vec(),
        sequence[24..28].to_vec(),
        frame::words(&[4, 0]),
    ];
    Ok(Some(Callback {
        xid,
        session,
        results: results.concat(),
    }))
}

fn ungranted() -> Seen {
    Seen {
        note: "the server grants no backchannel, or no delegation".into(),
        ..Seen::only(Outcome::Ok)
    }
}

/// Answer the first callback with this; the forward direction has to go on.
fn answered(
    id: &'static str,
    rfc: &'static str,
    sends: &'static str,
    make: impl Fn(&Callback) -> Vec<Message> + 'static,
) -> Case {
    full(id, rfc, sends, OK, move |b| {
        let Some(callback) = callback(b)? else {
            return Ok(ungranted());
        };
        for message in make(&callback) {
            b.post(&message)?;
        }
        let mut seen = b.succeed(Call::null())?;
        for _ in 0..20 {
            seen = b.succeed(Compound::new(0).root().getattr().call())?;
        }
        // Whatever the answer was worth, the session can be used and let go.
        b.succeed(Compound::new(1).destroy_session(&callback.session).call())?;
        Ok(seen)
    })
}

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
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
        one("M169", "8166 4.5", "direction 7", DROP | EC, |b| {
            let xid = b.xid();
            Ok(reply(xid, 2, &[xid, 7, 2, 100_003, 3, 0, 0, 0, 0, 0]))
        }),
        full(
            "B9",
            "8167 6",
            "a v4.1 session that asks for no backchannel: no callback comes",
            OK,
            |b| {
                b.reconnect(&Options::default())?;
                let (session, _, seen) = session(b, 0)?;
                check(seen.results.flags & 2 == 0, || {
                    "a backchannel that was not asked for".into()
                })?;
                let until = Instant::now() + b.world.unit * 200;
                check(matches!(b.next_message(until)?, Next::Silence), || {
                    "a message".into()
                })?;
                check(b.reverse.is_empty(), || "a callback".into())?;
                b.succeed(Compound::new(1).destroy_session(&session).call())
            },
        ),
        answered(
            "B5",
            "8167 5.1",
            "a callback, answered as it should be",
            |c| vec![c.right()],
        ),
        answered(
            "B6",
            "8167 5.2",
            "a callback's reply with an unknown XID, then the right one",
            |c| vec![good_reply(c.xid ^ 0x55), c.right()],
        ),
        answered("M165", "8167 5.2", "a callback's reply sent twice", |c| {
            vec![c.right(), c.right()]
        }),
        answered("B7a", "8167 4.1", "a callback's reply that grants 0", |c| {
            vec![reply(c.xid, 0, &[c.xid, 1, 0, 0, 0, 0])]
        }),
        answered(
            "B7b",
            "8167 4.1",
            "a callback's reply that grants 0xffffffff",
            |c| vec![reply(c.xid, u32::MAX, &[c.xid, 1, 0, 0, 0, 0])],
        ),
        answered(
            "B8",
            "8167 5.3",
            "a callback answered with ERR_CHUNK",
            |c| vec![Message::words(c.xid, 1, ERROR, &[2, 0, 0])],
        ),
        answered(
            "M171",
            "8167 5.3",
            "a callback answered with ERR_CHUNK of 20 bytes",
            |c| vec![Message::words(c.xid, 1, ERROR, &[2])],
        ),
        answered(
            "M171b",
            "8166 4.5.1",
            "a callback answered with ERR_VERS",
            |c| vec![Message::words(c.xid, 1, ERROR, &[1, 1, 1])],
        ),
        answered(
            "M164",
            "8167 5.2",
            "replies with unknown XIDs on a connection with a backchannel",
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
            |c| vec![reply(c.xid, 2, &[c.xid, 1, 0, 0, 0, 0]).and(&vec![0x5a; 3000])],
        ),
        answered("M167", "8167 5.2", "a callback's reply of 8 bytes", |c| {
            vec![reply(c.xid, 2, &[c.xid, 1])]
        }),
        answered(
            "M172",
            "8167 4.2",
            "a callback that is never answered",
            |_| Vec::new(),
        ),
        answered(
            "M170",
            "8166 4.5",
            "28 to 35 bytes on a connection with a backchannel",
            |c| (0..8).map(|n| good_reply(c.xid).cut(28 + n)).collect(),
        ),
    ];
    cases.push(full(
        "M162",
        "8167 2.4.1",
        "a forward call with the XID of a callback under way",
        OK,
        |b| {
            let Some(callback) = callback(b)? else {
                return Ok(ungranted());
            };
            let message = Message::inline(&Call::null().xid(callback.xid), Lists::default());
            let seen = b.ask(&message)?;
            b.post(&callback.right())?;
            b.succeed(Compound::new(1).destroy_session(&callback.session).call())?;
            Ok(seen)
        },
    ));
    cases.push(full(
        "C50",
        "8167 5.2",
        "1,000 replies that nobody waits for, then as many calls as granted",
        OK,
        |b| {
            for i in 0..1000u32 {
                let xid = b.xid();
                let payload = [xid, 1, 0, 0, 0, 0];
                b.post(&reply(
                    xid,
                    if i % 3 == 0 { u32::MAX } else { 0 },
                    &payload[..2 + i as usize % 5],
                ))?;
                if i % 30 == 29 {
                    // Keep within the credits: replies of the reverse direction take Receives too.
                    b.succeed(Call::null())?;
                    b.evidence.clear();
                }
            }
            let grant = b.succeed(Call::null())?.grant.min(32) as usize;
            let sent: Vec<_> = (0..grant).map(|_| null(b)).collect();
            sent.iter().try_for_each(|m| b.post(m))?;
            let answers = b.answers(&sent, grant)?;
            check(answers.end.is_none(), || {
                format!("{} answers, {:?}", answers.count, answers.end)
            })?;
            Ok(answers.seen[0][0].clone())
        },
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
            let Some(callback) = callback_of(b, &options, back)? else {
                return Ok(ungranted());
            };
            b.post(&callback.right())?;
            b.succeed(Compound::new(1).destroy_session(&callback.session).call())
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
            let Some(callback) = callback(b)? else {
                return Ok(Seen {
                    outcome: Outcome::Drop,
                    ..ungranted()
                });
            };
            let xid = callback.xid;
            let broken = [0, 1, u32::MAX, 0, xid, 1, 0, 0, 0, 0];
            let seen = b.ask(&Message::words(xid, 1, 0, &broken))?;
            b.succeed(Call::null())?;
            Ok(seen)
        },
    ));
    for (id, how, sends) in [
        ("M143", false, "disconnect with a callback outstanding"),
        (
            "M143b",
            true,
            "own queue pair to error with a callback outstanding",
        ),
    ] {
        cases.push(full(
            id,
            "8167 4.2",
            format!("{sends}, 5 times"),
            OK,
            move |b| {
                for _ in 0..5 {
                    if callback(b)?.is_none() {
                        return Ok(ungranted());
                    }
                    if how {
                        b.connection()?.break_queue();
                    } else {
                        b.connection()?.disconnect();
                    }
                    b.close()?;
                }
                b.reconnect(&Options::default())?;
                b.succeed(Call::null())
            },
        ));
    }
    cases
}
