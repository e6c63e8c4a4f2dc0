// SPDX-License-Identifier: GPL-2.0
//! The credits of the two directions (B2 to B4, B7, C49).

use std::{ops::RangeInclusive, time::Instant};

use super::{
    flow::{all_ok, granted, wide, window},
    length::null,
    session::{reply, ungranted, Callback, Session, DOWN},
};
use crate::{
    answers::Next,
    bench::Bench,
    case::{check, full, setup, skip, Case},
    explain::Seen,
    frame::NOMSG,
    handle::Handle,
    message::Message,
    nfs3,
    outcome::{Outcome, OK},
    rpc::Call,
};

pub fn cases() -> Vec<Case> {
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
            "B7a",
            "8167 4.1",
            "a callback's reply that grants 0, then 8 recalls: one callback at a time",
            OK,
            |b| recalls(b, |_| 0, 1..=1),
        ),
        full(
            "B7b",
            "8167 4.1",
            "a callback's reply that grants 0xffffffff, then 8 recalls: as many at once as asked for",
            OK,
            |b| recalls(b, |_| u32::MAX, 2..=8),
        ),
        full(
            "B7c",
            "8167 4.1",
            "8 recalls, their replies grant 0xffffffff and 1 by turns",
            OK,
            |b| recalls(b, |i| [u32::MAX, 1][i % 2], 2..=8),
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
    waiting.extend(session.callbacks(b)?);
    let count = waiting.len();
    if count == 1 {
        b.post(&waiting[0].right())?;
        return Ok(skip("the server has one callback at a time"));
    }
    check(count == 2, || {
        format!("{count} callbacks at once, 2 granted")
    })?;
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
    session.end_with(b, format!("{count} callbacks at once"))
}

/// Writers that the server has to keep waiting, all at once.
fn conflicts(b: &mut Bench<'_>, files: &[Handle]) -> Result<(), String> {
    let text = |e: std::io::Error| format!("over TCP: {e}");
    for (i, file) in files.iter().enumerate() {
        let call = nfs3::write(file, 0, b"conflict").xid(0x7d00_0000 + i as u32);
        b.world.tcp.send(&call.encode()).map_err(text)?;
    }
    for _ in files {
        b.world.tcp.receive().map_err(text)?;
    }
    Ok(())
}

/// Slots for callbacks: more than recalls, so that only credits limit how many there are at once.
const SLOTS: u32 = 16;
const RECALLS: usize = 8;
/// Units in which nothing may come, and how often in a row until no more is coming.
const QUIET: u32 = 5;
const TIMES: u32 = 5;
/// So many times that: the server must not give up meanwhile what waits for its turn.
const TURNS: u32 = 2 * (RECALLS as u32 + 1) * TIMES;

/// Callbacks that come until none has for some time, behind those that wait for their replies. If
/// none waits and more are due, the first is waited for.
fn settle(
    b: &mut Bench<'_>,
    session: &Session,
    waiting: &mut Vec<Callback>,
    due: bool,
) -> Result<(), String> {
    let limit = Instant::now() + b.world.limit();
    let pause = (b.world.unit * QUIET).min(session.patience / TURNS);
    let mut quiet = 0;
    while quiet < TIMES {
        let until = Instant::now() + pause;
        let silent = matches!(b.next_message(until)?, Next::Silence);
        check(silent, || "a message, no callback".into())?;
        let came = session.callbacks(b)?;
        let missing = due && waiting.is_empty() && came.is_empty();
        check(!missing || until < limit, || {
            "recalls are due, and no callback comes".into()
        })?;
        match missing || !came.is_empty() {
            true => quiet = 0,
            false => quiet += 1,
        }
        waiting.extend(came);
    }
    Ok(())
}

/// The reply to one callback grants so much, then as many are due as files: the first time so
/// many of them may come at once. Then each is answered, and there are never more than granted,
/// or than the server has asked for: what exceeds that grants no more (RFC 8166, section 3.3.1).
fn recalls(
    b: &mut Bench<'_>,
    grant: impl Fn(usize) -> u32,
    at_once: RangeInclusive<usize>,
) -> Result<Seen, String> {
    let Some(mut session) = Session::with_slots(b, &wide(64), 1024, SLOTS)? else {
        return Ok(ungranted());
    };
    let mut files = Vec::new();
    for _ in 0..RECALLS {
        let Some(file) = setup(session.delegated(b))? else {
            return Ok(ungranted());
        };
        files.push(file);
    }
    let Some(first) = session.recall(b)? else {
        return Ok(ungranted());
    };
    let asked = first.call.credits as usize;
    let granted = |i: usize| (grant(i) as usize).clamp(1, asked);
    b.post(&first.granting(grant(0)))?;
    b.succeed(Call::null())?;
    std::thread::sleep(b.world.unit * 20);
    conflicts(b, &files)?;
    let mut waiting = Vec::new();
    settle(b, &session, &mut waiting, true)?;
    let most = waiting.len();
    let (least, limit) = (*at_once.start(), granted(0).min(*at_once.end()));
    check(most <= limit, || {
        format!("{most} callbacks at once, granted are {limit}")
    })?;
    let (mut done, mut late) = (0, false);
    while !waiting.is_empty() {
        let callback = waiting.remove(0);
        late = session.gives_up(&callback);
        done += 1;
        b.post(&callback.granting(grant(done)))?;
        // Those that are out already stay.
        let limit = granted(done).max(waiting.len());
        settle(b, &session, &mut waiting, done < RECALLS)?;
        check(waiting.len() <= limit, || {
            let count = waiting.len();
            format!("{count} callbacks at once behind reply {done}, granted are {limit}")
        })?;
    }
    let flags = session.flags(b)?;
    check(late || done == RECALLS && flags & DOWN == 0, || {
        format!("{done} callbacks for {RECALLS} recalls, SEQUENCE has flags {flags:#x}")
    })?;
    let note = format!("{most} callbacks at once, asked for {asked}");
    let seen = session.end_with(b, note)?;
    Ok(match most < least && asked >= least {
        true => skip("the server has fewer callbacks at a time than it may"),
        false => seen,
    })
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
    conflicts(b, &files)?;
    b.succeed(Call::null())?;
    // The session has two slots for callbacks, and no answer has freed one. What is given up may
    // come again.
    let mut places: Vec<_> = session.callbacks(b)?.iter().map(Callback::place).collect();
    places.sort_unstable();
    places.dedup();
    let count = places.len();
    check((1..=2).contains(&count), || {
        format!("callbacks at once, slots and numbers: {places:?}")
    })?;
    window(b, grant)?;
    session.down(b, limit)?;
    window(b, grant)?;
    session.end_with(b, format!("{count} callbacks at once"))
}
