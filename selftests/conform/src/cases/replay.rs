// SPDX-License-Identifier: GPL-2.0
//! Group I: XIDs and calls that are sent again (M159 to M161, C32).

use std::ops::Range;

use super::{flow::all_ok, length::null};
use crate::{
    bench::Bench,
    case::{check, full, setup, Case},
    connection::Options,
    explain::Seen,
    frame::Lists,
    message::Message,
    nfs3,
    nfs4::Compound,
    outcome::{Outcome, OK},
    rpc::Call,
};

/// EXCHANGE_ID and CREATE_SESSION; the session, its client and what CREATE_SESSION said.
pub fn session(b: &mut Bench<'_>, flags: u32) -> Result<([u8; 16], u64, Seen), String> {
    session_of(b, 1, flags, (1024, 2))
}

/// As session(), of this minor version, with callbacks of at most so many bytes, in so many slots.
pub fn session_of(
    b: &mut Bench<'_>,
    minor: u32,
    flags: u32,
    back: (u32, u32),
) -> Result<([u8; 16], u64, Seen), String> {
    setup(make_session(b, minor, flags, back))
}

fn make_session(
    b: &mut Bench<'_>,
    minor: u32,
    flags: u32,
    back: (u32, u32),
) -> Result<([u8; 16], u64, Seen), String> {
    let owner = format!("conform {} {}", std::process::id(), b.xid());
    let chunk = b.chunk(&[4096])?;
    let call = b.number(Compound::new(minor).exchange_id(owner.as_bytes(), 1).call());
    let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
    check(seen.results.status == 0, || {
        format!("EXCHANGE_ID: {}", seen.describe())
    })?;
    let (client, number) = (seen.results.client, seen.results.number);
    let chunk = b.chunk(&[4096])?;
    let compound = Compound::new(minor).create_session(client, number, flags, back);
    let call = b.number(compound.call());
    // The first callback may overtake the reply.
    b.backchannel |= flags & 2 != 0;
    let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
    check(seen.results.status == 0, || {
        format!("CREATE_SESSION: {}", seen.describe())
    })?;
    let session = seen.results.sequence.ok_or("no session")?;
    Ok((session, client, seen))
}

/// The answer to a MKDIR that is sent again: replayed from the server's cache, or executed, which
/// finds that the directory exists (NFS3ERR_EXIST).
fn replayed(first: &Seen, mut again: Seen) -> Result<Seen, String> {
    check(again.outcome == Outcome::Ok, || again.describe())?;
    match again.results.status {
        0 => {
            check(again.stream == first.stream, || {
                "the replayed reply differs".into()
            })?;
            again.note = "replayed".into();
        }
        17 => again.note = "executed".into(),
        _ => return Err(again.describe()),
    }
    Ok(again)
}

pub fn cases() -> Vec<Case> {
    vec![
        full(
            "M159",
            "8166 3.3.1",
            "the same bytes twice, back to back",
            OK,
            |b| {
                let sent = null(b);
                b.post(&sent)?;
                b.post(&sent)?;
                let answers = b.answers(&[sent.clone(), sent.clone()], 1)?;
                check(answers.count == 1, || format!("{:?}", answers.end))?;
                // The second reply comes, or the server has dropped the repetition:
                // both are right, but nothing else may come.
                let until = std::time::Instant::now() + b.world.unit * 100;
                if let crate::answers::Next::Message(bytes) = b.next_message(until)? {
                    let seen = crate::explain::explain(&bytes, &sent, &|_| None)?;
                    check(seen.outcome == Outcome::Ok, || seen.describe())?;
                }
                Ok(answers.seen.into_iter().flatten().next().expect("one came"))
            },
        ),
        full(
            "M160",
            "5531 9",
            "two calls with one XID at once: NULL and GETATTR",
            OK,
            |b| {
                let root = b.world.files.root.clone();
                let first = null(b);
                let second =
                    Message::inline(&nfs3::getattr(&root).xid(first.xid), Lists::default());
                b.post(&first)?;
                b.post(&second)?;
                let mut lengths = Vec::new();
                for _ in 0..2 {
                    let until = std::time::Instant::now() + b.world.limit();
                    let crate::answers::Next::Message(bytes) = b.next_message(until)? else {
                        return Err(format!("{} answers to two calls", lengths.len()));
                    };
                    lengths.push(bytes.len());
                    let sent = if bytes.len() == 52 { &first } else { &second };
                    let seen = crate::explain::explain(&bytes, sent, &|_| None)?;
                    check(seen.outcome == Outcome::Ok, || seen.describe())?;
                }
                lengths.sort();
                check(lengths[0] == 52 && lengths[1] > 52, || {
                    format!("lengths {lengths:?}")
                })?;
                b.succeed(Call::null())
            },
        ),
        full(
            "M161",
            "8267 6.7.2",
            "MKDIR3 again on a new connection: one directory",
            OK,
            |b| {
                let (dir, name) = (b.world.files.dir.clone(), b.world.fresh_name());
                let call = b.number(nfs3::mkdir(&dir, &name));
                let first = setup(b.ask(&Message::inline(&call, Lists::default())))?;
                setup(check(first.results.status == 0, || first.describe()))?;
                b.reconnect(&Options::default())?;
                let again = b.ask(&Message::inline(&call, Lists::default()))?;
                let again = replayed(&first, again)?;
                check(b.world.exists(&name)?, || "there is no directory".into())?;
                Ok(again)
            },
        ),
        full(
            "M161b",
            "5531 9",
            "MKDIR3 twice on one connection",
            OK,
            |b| {
                let (dir, name) = (b.world.files.dir.clone(), b.world.fresh_name());
                let call = b.number(nfs3::mkdir(&dir, &name));
                let first = setup(b.ask(&Message::inline(&call, Lists::default())))?;
                setup(check(first.results.status == 0, || first.describe()))?;
                let again = b.ask(&Message::inline(&call, Lists::default()))?;
                replayed(&first, again)
            },
        ),
        full(
            "M161c",
            "8267 6.7.2",
            "MKDIR3 again, first inline and then with a Reply chunk",
            OK,
            |b| {
                let (dir, name) = (b.world.files.dir.clone(), b.world.fresh_name());
                let call = b.number(nfs3::mkdir(&dir, &name));
                let first = setup(b.ask(&Message::inline(&call, Lists::default())))?;
                setup(check(first.results.status == 0, || first.describe()))?;
                let chunk = b.chunk(&[1024])?;
                let again = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
                replayed(&first, again)
            },
        ),
        full(
            "C32",
            "8881 2.10.6",
            "a session's cached reply, asked for on one connection and another",
            OK,
            |b| {
                let (session, _, _) = session(b, 0)?;
                let root = b.world.files.root.clone();
                let ask = |b: &mut Bench<'_>| {
                    let compound = Compound::new(1)
                        .sequence(&session, 1, 0, true)
                        .handle(&root)
                        .getattr();
                    let call = b.number(compound.call());
                    b.ask(&Message::inline(&call, Lists::default()))
                };
                let first = setup(ask(b))?;
                setup(check(first.results.status == 0, || first.describe()))?;
                let again = ask(b)?;
                b.reconnect(&Options::default())?;
                let elsewhere = ask(b)?;
                for (where_, seen) in [("the same", &again), ("another", &elsewhere)] {
                    check(seen.outcome == Outcome::Ok, || seen.describe())?;
                    // All but the XID.
                    check(seen.stream[4..] == first.stream[4..], || {
                        format!("on {where_} connection the reply differs")
                    })?;
                }
                let destroy = Compound::new(1).destroy_session(&session).call();
                b.succeed(destroy)?;
                Ok(elsewhere)
            },
        ),
        full(
            "U13",
            "8267 6.6",
            "a session with more slots used than credits asked for, as many at once as granted",
            OK,
            |b| {
                let (session, _, _) = session(b, 0)?;
                let calls = |b: &mut Bench<'_>, slots: Range<u32>| -> Vec<Message> {
                    let call = |slot| {
                        let start = Compound::new(1).sequence(&session, 1, slot, false);
                        let call = b.number(start.root().getattr().call());
                        Message::inline(&call, Lists::default()).poke(8, 1)
                    };
                    slots.map(call).collect()
                };
                // What is granted to those who ask for one.
                let first = calls(b, 0..1).remove(0);
                let mut grant = setup(b.ask(&first))?.grant;
                let mut next: u32 = 1;
                while next < 8 {
                    let end = next.saturating_add(grant).min(8);
                    let sent = calls(b, next..end);
                    sent.iter().try_for_each(|m| b.post(m))?;
                    let answers = b.answers(&sent, sent.len())?;
                    all_ok(&answers)?;
                    let grants = answers.seen.iter().flatten().map(|seen| seen.grant);
                    grant = grants.last().unwrap_or(1);
                    next = end;
                }
                b.succeed(Compound::new(1).destroy_session(&session).call())
            },
        ),
    ]
}
