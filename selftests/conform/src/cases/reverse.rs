// SPDX-License-Identifier: GPL-2.0
//! Reverse direction: callbacks of a v4.1 session, and replies that nobody waits
//! for (B2 to B10, M162 to M173, C49, C50).
//!
//! What became of a callback's answer shows in what the server does next. If it was taken, the
//! next callback has the same slot and the next number (RFC 8881, section 2.10.6.1); if not, a
//! later SEQUENCE has one of the flags of a backchannel that is out of order (section 18.46.3).

use std::time::{Duration, Instant};

use super::{
    flow::{all_ok, granted, wide, window},
    leave::parked,
    length::null,
    replay::{session_of, PROGRAM},
};
use crate::{
    answers::Next,
    bench::Bench,
    case::{check, full, one, setup, skip, Case},
    connection::Options,
    explain::Seen,
    frame::{self, words, Lists, Words, ERROR, NOMSG},
    message::Message,
    nfs3,
    nfs4::Compound,
    outcome::{Outcome, DROP, EC, OK},
    rpc::{self, Call, Status},
};

/// CB_PATH_DOWN, CB_PATH_DOWN_SESSION and BACKCHANNEL_FAULT.
const DOWN: u32 = 0x1 | 0x200 | 0x400;

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
    slot: u32,
    number: u32,
    came: Instant,
    /// The results that its COMPOUND should have.
    results: Vec<u8>,
}

impl Callback {
    fn right(&self) -> Message {
        self.granting(2)
    }

    fn granting(&self, credits: u32) -> Message {
        reply(self.xid, credits, &[self.xid, 1, 0, 0, 0, 0]).and(&self.results)
    }
}

/// A session with a backchannel on the bench's connection.
struct Session {
    id: [u8; 16],
    client: u64,
    number: u32,
    /// The longest callback.
    back: u32,
    /// How long the server waits for the answer to a callback.
    patience: Duration,
}

impl Session {
    /// On a new connection of these settings; None if the server gives no backchannel.
    fn new(b: &mut Bench<'_>, options: &Options, back: u32) -> Result<Option<Self>, String> {
        b.reconnect(options)?;
        b.reverse.clear();
        let (id, client, seen) = session_of(b, 1, 2, back)?;
        if seen.results.flags & 2 == 0 {
            return Ok(None);
        }
        let mut session = Self {
            id,
            client,
            number: 0,
            back,
            patience: patience(b)?,
        };
        let start = session.begin();
        b.must(start.reclaim_complete().call())?;
        Ok(Some(session))
    }

    /// A COMPOUND with the next number of slot 0.
    fn begin(&mut self) -> Compound {
        self.number += 1;
        Compound::new(1).sequence(&self.id, self.number, 0, false)
    }

    /// A file whose delegation we have; None if the server gives none.
    fn delegated(&mut self, b: &mut Bench<'_>) -> Result<Option<Vec<u8>>, String> {
        let until = Instant::now() + b.world.grace;
        loop {
            let file = b.world.fresh_file()?;
            let open = self.begin().handle(&file).open(self.client, b"opener");
            let seen = b.succeed(open.call())?;
            check(seen.results.status == 0, || {
                format!("OPEN: {}", seen.describe())
            })?;
            if matches!(seen.results.number, 1 | 2) {
                return Ok(Some(file));
            }
            if Instant::now() > until {
                // Not again for each case.
                b.world.grace = Duration::ZERO;
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// The recall of a delegation; None if the server gives none.
    fn recall(&mut self, b: &mut Bench<'_>) -> Result<Option<Callback>, String> {
        match setup(self.delegated(b))? {
            Some(file) => self.conflict(b, &file).map(Some),
            None => Ok(None),
        }
    }

    /// A writer that the server has to keep waiting, and the callback that it then makes.
    fn conflict(&self, b: &mut Bench<'_>, file: &[u8]) -> Result<Callback, String> {
        b.world.tcp.call(nfs3::write(file, 0, b"conflict"))?;
        let until = Instant::now() + b.world.limit();
        while b.reverse.is_empty() {
            b.succeed(Call::null())?;
            check(Instant::now() < until, || {
                "a delegation is to be recalled, and no callback comes".into()
            })?;
        }
        let bytes = b.reverse.remove(0);
        self.understand(&bytes)
    }

    fn understand(&self, bytes: &[u8]) -> Result<Callback, String> {
        check(bytes.len() - 28 <= self.back as usize, || {
            let (len, most) = (bytes.len() - 28, self.back);
            format!("a callback of {len} bytes, at most {most} may come")
        })?;
        let mut words = Words::new(bytes);
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
            .position(|w| w == self.id)
            .ok_or("a callback without the session")?;
        let sequence = bytes[at..].get(..28).ok_or("a short CB_SEQUENCE")?;
        let mut words = Words::new(&sequence[16..]);
        let (number, slot) = (words.word()?, words.word()?);
        // CB_SEQUENCE with what it had, then CB_RECALL.
        let results = [
            frame::words(&[0, 0, 2, 11, 0]),
            sequence.to_vec(),
            sequence[24..28].to_vec(),
            frame::words(&[4, 0]),
        ];
        Ok(Callback {
            xid,
            slot,
            number,
            came: Instant::now(),
            results: results.concat(),
        })
    }

    /// sr_status_flags of one more SEQUENCE.
    fn flags(&mut self, b: &mut Bench<'_>) -> Result<u32, String> {
        let seen = b.succeed(self.begin().call())?;
        check(seen.results.status == 0, || {
            format!("SEQUENCE: {}", seen.describe())
        })?;
        Ok(seen.results.flags)
    }

    /// The answer to this callback was taken: another one shows it, which is answered, too.
    fn done(&mut self, b: &mut Bench<'_>, first: &Callback) -> Result<(), String> {
        if first.came.elapsed() > self.patience * 3 / 4 {
            b.note("late", "the server may have given up this callback".into());
            return Ok(());
        }
        b.succeed(Call::null())?;
        std::thread::sleep(b.world.unit * 20);
        let file = self.delegated(b)?.ok_or("no delegation any more")?;
        let next = self.conflict(b, &file)?;
        let was = (first.slot, first.number);
        check((next.slot, next.number) == (was.0, was.1 + 1), || {
            let is = (next.slot, next.number);
            format!("the answer was not taken: slot and number {is:?} after {was:?}")
        })?;
        b.post(&next.right())?;
        for _ in 0..20 {
            let flags = self.flags(b)?;
            check(flags & DOWN == 0, || {
                format!("the answer was right, SEQUENCE has flags {flags:#x}")
            })?;
        }
        Ok(())
    }

    /// The server says that the backchannel is out of order, within so much time; how long it took.
    fn down(&mut self, b: &mut Bench<'_>, limit: Duration) -> Result<Duration, String> {
        let begin = Instant::now();
        loop {
            let flags = self.flags(b)?;
            if flags & DOWN != 0 {
                return Ok(begin.elapsed());
            }
            check(begin.elapsed() < limit, || {
                format!("{limit:?} after a callback that failed, SEQUENCE has flags {flags:#x}")
            })?;
            std::thread::sleep(b.world.unit * 10);
        }
    }

    /// The session is to be let go, whatever became of its callbacks.
    fn end(self, b: &mut Bench<'_>) -> Result<Seen, String> {
        b.succeed(Compound::new(1).destroy_session(&self.id).call())
    }
}

/// How long nfsd waits for the answer to a callback: a tenth of a lease, a second at least.
fn patience(b: &mut Bench<'_>) -> Result<Duration, String> {
    let call = Compound::new(0).root().attribute(10).call();
    let (xid, stream) = b.world.tcp.raw(call)?;
    let mut words = Words::new(&stream);
    check(rpc::reply(&mut words, xid)? == Status::Success, || {
        "GETATTR over TCP".into()
    })?;
    // Status, tag, count, PUTROOTFH and GETATTR with theirs, bitmap, length of the attributes.
    words.take(10 * 4)?;
    let lease = words.word()?;
    Ok(Duration::from_secs(u64::from(lease / 10).max(1)))
}

fn ungranted() -> Seen {
    skip("the server grants no backchannel, or no delegation")
}

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
        let seen = session.end(b)?;
        Ok(Seen { note, ..seen })
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
            "B7a",
            "8167 4.1",
            "a callback's reply that grants 0: another callback comes",
            Fate::Done,
            |c| vec![c.granting(0)],
        ),
        answered(
            "B7b",
            "8167 4.1",
            "a callback's reply that grants 0xffffffff",
            Fate::Done,
            |c| vec![c.granting(u32::MAX)],
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
                let (id, client, seen) = session_of(b, 1, 0, 1024)?;
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
                b.reverse.clear();
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

/// The credits of the two directions.
fn credits() -> Vec<Case> {
    vec![
        full(
            "B2",
            "8167 4.1",
            "a callback that waits for its reply, meanwhile as many calls as granted, up to five times",
            OK,
            |b| {
                let grant = granted(b)?;
                let Some(mut session) = Session::new(b, &wide(grant), 1024)? else {
                    return Ok(ungranted());
                };
                let Some(callback) = session.recall(b)? else {
                    return Ok(ungranted());
                };
                let mut windows = 0;
                while windows < 5 && callback.came.elapsed() < session.patience / 3 {
                    window(b, grant)?;
                    b.evidence.clear();
                    windows += 1;
                }
                b.post(&callback.right())?;
                session.done(b, &callback)?;
                session.end(b)
            },
        ),
        full(
            "B3",
            "8167 4.1",
            "odd credits in messages that have no direction, a callback waits: no window changes",
            OK,
            |b| {
                let grant = granted(b)?;
                let Some(mut session) = Session::new(b, &wide(grant), 1024)? else {
                    return Ok(ungranted());
                };
                let Some(callback) = session.recall(b)? else {
                    return Ok(ungranted());
                };
                for credits in [0, u32::MAX, 1, 3] {
                    if callback.came.elapsed() > session.patience / 3 {
                        break;
                    }
                    let long = Message::words(b.xid(), 1, NOMSG, &[0, 0, 0]).poke(8, credits);
                    let seen = b.ask(&long)?;
                    check(seen.outcome == Outcome::Chunk, || seen.describe())?;
                    for len in [28, 32, 35] {
                        b.post(&reply(callback.xid, credits, &[callback.xid, 1]).cut(len))?;
                    }
                    window(b, grant).map_err(|e| format!("{credits} credits: {e}"))?;
                    b.evidence.clear();
                }
                b.post(&callback.right())?;
                session.done(b, &callback)?;
                session.end(b)
            },
        ),
        full(
            "B4",
            "8167 4.3.2",
            "two callbacks, their replies in the middle of as many calls as granted",
            OK,
            two_callbacks,
        ),
        full(
            "C49",
            "8167 4.2",
            "64 delegations recalled at once, no callback is answered",
            OK,
            storm,
        ),
    ]
}

fn two_callbacks(b: &mut Bench<'_>) -> Result<Seen, String> {
    let grant = granted(b)?;
    let Some(mut session) = Session::new(b, &wide(grant), 1024)? else {
        return Ok(ungranted());
    };
    // Its reply grants two.
    let Some(first) = session.recall(b)? else {
        return Ok(ungranted());
    };
    b.post(&first.right())?;
    session.done(b, &first)?;
    let one = session.recall(b)?.ok_or("no delegation any more")?;
    // A server may also have no more than one under way.
    let file = setup(session.delegated(b))?.ok_or("no delegation any more")?;
    b.world.tcp.call(nfs3::write(&file, 0, b"conflict"))?;
    let until = Instant::now() + b.world.unit * 200;
    while b.reverse.is_empty() && Instant::now() < until {
        b.succeed(Call::null())?;
        std::thread::sleep(b.world.unit);
    }
    let mut waiting = vec![one];
    for bytes in std::mem::take(&mut b.reverse) {
        waiting.push(session.understand(&bytes)?);
    }
    let count = waiting.len();
    let sent: Vec<_> = (0..grant).map(|_| null(b)).collect();
    for (i, message) in sent.iter().enumerate() {
        b.post(message)?;
        if i % (grant / 4).max(1) == 0 {
            if let Some(callback) = waiting.pop() {
                b.post(&callback.right())?;
            }
        }
    }
    all_ok(&b.answers(&sent, grant)?)?;
    for callback in waiting {
        b.post(&callback.right())?;
    }
    for _ in 0..20 {
        let flags = session.flags(b)?;
        check(flags & DOWN == 0, || {
            format!("SEQUENCE has flags {flags:#x}")
        })?;
    }
    let seen = session.end(b)?;
    let note = format!("{count} callbacks at once");
    Ok(Seen { note, ..seen })
}

fn storm(b: &mut Bench<'_>) -> Result<Seen, String> {
    let grant = granted(b)?;
    let Some(mut session) = Session::new(b, &wide(grant + 64), 1024)? else {
        return Ok(ungranted());
    };
    let limit = session.patience * 3 + b.world.limit();
    let mut files = Vec::new();
    for _ in 0..64 {
        let Some(file) = setup(session.delegated(b))? else {
            return Ok(ungranted());
        };
        files.push(file);
    }
    // All the writers at once.
    let text = |e: std::io::Error| format!("over TCP: {e}");
    for (i, file) in files.iter().enumerate() {
        let call = nfs3::write(file, 0, b"conflict").xid(0x7d00_0000 + i as u32);
        b.world.tcp.send(&call.encode()).map_err(text)?;
    }
    for _ in &files {
        b.world.tcp.receive().map_err(text)?;
    }
    b.succeed(Call::null())?;
    // The session has two slots for callbacks, and no answer has freed one. What is given up may
    // come again.
    let mut places = Vec::new();
    for bytes in std::mem::take(&mut b.reverse) {
        let callback = session.understand(&bytes)?;
        places.push((callback.slot, callback.number));
    }
    places.sort_unstable();
    places.dedup();
    let count = places.len();
    check((1..=2).contains(&count), || {
        format!("callbacks at once, slots and numbers: {places:?}")
    })?;
    window(b, grant)?;
    session.down(b, limit)?;
    window(b, grant)?;
    let seen = session.end(b)?;
    let note = format!("{count} callbacks at once");
    Ok(Seen { note, ..seen })
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
    cases.extend(credits());
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
            b.post(&callback.right())?;
            session.done(b, &callback)?;
            session.end(b)?;
            Ok(seen)
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
