// SPDX-License-Identifier: GPL-2.0
//! Group A: messages that end early (M001 to M024).

use crate::{
    bench::Bench,
    case::{check, full, one, Case},
    frame::{words, Header, Lists, MSG, NOMSG},
    message::Message,
    nfs3,
    outcome::{Outcome, CLOSE, DROP, EC, OK, RPCERR},
    rpc::Call,
    world::pattern,
};

/// A NULL call, inline, no lists: 68 bytes.
pub fn null(bench: &mut Bench<'_>) -> Message {
    let call = bench.number(Call::null());
    Message::inline(&call, Lists::default())
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (id, len) in [
        ("M001", 0),
        ("M002", 1),
        ("M003", 4),
        ("M004", 8),
        ("M005", 12),
        ("M006", 16),
        ("M008a", 20),
        ("M008b", 24),
        ("M009", 27),
    ] {
        let text = if len == 0 {
            "zero-length Send".into()
        } else {
            format!("{len} bytes of a NULL call")
        };
        cases.push(one(id, "8166 4.5", text, DROP, move |b| {
            Ok(null(b).cut(len))
        }));
    }
    cases.push(one("M007", "8166 4.5", "16 bytes, version 2", DROP, |b| {
        Ok(null(b).cut(16).poke(4, 2))
    }));
    cases.push(one(
        "M010",
        "8166 4.2.4",
        "28 bytes of RDMA_MSG, no payload",
        DROP | EC,
        |b| Ok(null(b).cut(28)),
    ));
    for extra in 1..=3 {
        let id = format!("M011{}", ["", "a", "b", "c"][extra]);
        cases.push(one(
            id,
            "8166 4.2.4",
            format!("header and {extra} bytes"),
            DROP | EC,
            move |b| Ok(null(b).cut(28 + extra)),
        ));
    }
    cases.push(one(
        "M012",
        "8166 4.2.4",
        "header and the RPC XID",
        DROP | EC,
        |b| Ok(null(b).cut(32)),
    ));
    for extra in [8, 12, 16, 20] {
        let sends = format!("header and {extra} bytes of an RPC call");
        cases.push(one(
            format!("M013.{extra}"),
            "8166 4.5",
            sends,
            DROP | EC | CLOSE,
            move |b| Ok(null(b).cut(28 + extra)),
        ));
    }
    for extra in [24, 28, 32, 36] {
        let sends = format!("RPC call cut in credential or verifier, {extra} bytes");
        cases.push(one(
            format!("M014.{extra}"),
            "5531 9",
            sends,
            RPCERR | DROP,
            move |b| Ok(null(b).cut(28 + extra)),
        ));
    }
    for (letter, len) in [("a", 0), ("b", 4), ("c", 8), ("d", 12), ("e", 16)] {
        let sends = format!("second Read segment cut after {len} bytes");
        cases.push(one(
            format!("M015{letter}"),
            "8166 4.5.2",
            sends,
            EC,
            move |b| {
                let chunk = b.chunk(&[8, 8])?;
                let message = Message::inline(&b.number(Call::null()), Lists::read(40, chunk));
                Ok(message.cut(16 + 24 + 4 + len))
            },
        ));
    }
    cases.push(one(
        "M016",
        "8166 4.5.2",
        "Read list without its end",
        EC,
        |b| {
            let chunk = b.chunk(&[8])?;
            Ok(Message::inline(&b.number(Call::null()), Lists::read(40, chunk)).cut(16 + 24))
        },
    ));
    let with_read = |b: &mut Bench<'_>, rest: &[u32]| -> Result<Message, String> {
        let chunk = b.chunk(&[8])?;
        let xid = b.xid();
        let head = Header::new(xid, MSG, Lists::read(40, chunk)).encode();
        Ok(Message::raw(head[..44].to_vec()).and(&words(rest)))
    };
    cases.push(one(
        "M017",
        "8166 4.5.2",
        "Write list: 1, then the end",
        EC,
        move |b| with_read(b, &[1]),
    ));
    for (letter, rest) in [("a", 0), ("b", 1), ("c", 2), ("d", 3)] {
        let sends = format!("Write chunk of one segment, {rest} words of it");
        cases.push(one(
            format!("M018{letter}"),
            "8166 4.5.2",
            sends,
            EC,
            move |b| with_read(b, &[&[1, 1][..], &vec![0x1234; rest][..]].concat()),
        ));
    }
    cases.push(one(
        "M019",
        "8166 4.5.2",
        "Write list without its end",
        EC,
        move |b| with_read(b, &[1, 1, 7, 8, 0, 0]),
    ));
    cases.push(one(
        "M020",
        "8166 4.5.2",
        "message ends before the Reply chunk",
        EC,
        move |b| with_read(b, &[0]),
    ));
    cases.push(one(
        "M021",
        "8166 4.5.2",
        "Reply chunk: 1, then the end",
        EC,
        move |b| with_read(b, &[0, 1]),
    ));
    cases.push(one(
        "M022",
        "8166 4.5.2",
        "Reply chunk of two segments, one there",
        EC,
        move |b| with_read(b, &[0, 1, 2, 7, 8, 0, 0]),
    ));
    cases.extend(unended());
    cases.push(full(
        "M023",
        "8166 4.5",
        "a WRITE3 cut at every byte",
        OK | DROP | RPCERR | EC | CLOSE,
        write_prefixes,
    ));
    for extra in 1..=3 {
        let sends = format!("NULL call and {extra} more bytes");
        cases.push(one(
            format!("M024{}", ["", "a", "b", "c"][extra]),
            "8166 4.2.4",
            sends,
            OK | RPCERR,
            move |b| Ok(null(b).and(&vec![0; extra])),
        ));
    }
    cases.push(full(
        "C15",
        "8166 4.5",
        "a NULL call cut at every byte",
        DROP | RPCERR | EC | CLOSE,
        |b| {
            let mut last = None;
            for len in 0..68 {
                let message = null(b).cut(len);
                let seen = b.ask(&message).map_err(|e| format!("cut at {len}: {e}"))?;
                check(len >= 28 || seen.outcome == Outcome::Drop, || {
                    format!("cut at {len}: {}", seen.describe())
                })?;
                check(b.accept.has(seen.outcome), || {
                    format!("cut at {len}: {}", seen.describe())
                })?;
                if seen.outcome == Outcome::Close {
                    b.reconnect(&Default::default())?;
                }
                last = Some(seen);
            }
            last.ok_or_else(String::new)
        },
    ));
    cases
}

/// Lists that end too early, each behind a Position-Zero chunk with a good NULL: to a server that
/// takes what is missing for zeros, there is a call to answer.
fn unended() -> Vec<Case> {
    let cases: [(&str, &str, Option<&[u32]>); 6] = [
        ("M016b", "Read list without its end", None),
        ("M017b", "Write list: 1, then the end", Some(&[1])),
        (
            "M019b",
            "Write list without its end",
            Some(&[1, 1, 7, 8, 0, 0]),
        ),
        ("M020b", "message ends before the Reply chunk", Some(&[0])),
        ("M021b", "Reply chunk: 1, then the end", Some(&[0, 1])),
        (
            "M022b",
            "Reply chunk of two segments, one there",
            Some(&[0, 1, 2, 7, 8, 0, 0]),
        ),
    ];
    let made = cases.into_iter().map(|(id, sends, rest)| {
        let sends = format!("NULL in a Position-Zero chunk; {sends}");
        one(id, "8166 4.5.2", sends, EC, move |b| {
            let call = b.number(Call::null());
            let stream = call.encode();
            let chunk = b.source(&stream, &[stream.len()])?;
            let head = Header::new(call.xid, NOMSG, Lists::read(0, chunk)).encode();
            // Up to its segment, or to the end of the Read list.
            let list = match rest {
                None => head[..40].to_vec(),
                Some(rest) => [&head[..44], &words(rest)].concat(),
            };
            Ok(Message::raw(list))
        })
    });
    made.collect()
}

/// Every prefix of a good WRITE; none may store anything but what the whole has.
fn write_prefixes(bench: &mut Bench<'_>) -> Result<crate::explain::Seen, String> {
    let file = bench.world.fresh_file()?;
    let data = pattern(0, 64);
    let whole = Message::inline(
        &bench.number(nfs3::write(&file, 0, &data)),
        Lists::default(),
    );
    let mut last = None;
    for len in 28..whole.bytes.len() {
        let xid = bench.xid();
        let mut message =
            Message::inline(&nfs3::write(&file, 0, &data).xid(xid), Lists::default()).cut(len);
        message.kind = crate::rpc::Kind::Write;
        let seen = bench
            .ask(&message)
            .map_err(|e| format!("cut at {len}: {e}"))?;
        check(bench.accept.has(seen.outcome), || {
            format!("cut at {len}: {}", seen.describe())
        })?;
        if seen.outcome == Outcome::Ok && seen.results.status == 0 {
            return Err(format!(
                "cut at {len}: the WRITE succeeded with {} bytes",
                seen.results.count
            ));
        }
        if seen.outcome == Outcome::Close {
            bench.reconnect(&Default::default())?;
        }
        last = Some(seen);
    }
    let stored = bench.world.content(&file, 4096)?;
    check(stored.is_empty(), || {
        format!("a cut WRITE stored {} bytes", stored.len())
    })?;
    let seen = bench.ask(&whole)?;
    check(
        seen.outcome == Outcome::Ok && seen.results.status == 0,
        || format!("the whole WRITE: {}", seen.describe()),
    )?;
    let stored = bench.world.content(&file, 4096)?;
    check(stored == data, || {
        "the whole WRITE stored other data".into()
    })?;
    last.ok_or_else(|| "nothing was sent".into())
}
