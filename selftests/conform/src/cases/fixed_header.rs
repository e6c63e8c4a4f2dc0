// SPDX-License-Identifier: GPL-2.0
//! Groups B and C: the four fixed words and the lists' discriminators (M025 to M048).

use std::time::Instant;

use super::{length::null, read_list::Write};
use crate::{
    answers::Next,
    bench::Bench,
    case::{check, full, one, Case},
    explain::{explain, unexplained, Seen},
    frame::{encode_chunk, words, Header, Lists, MSG, MSGP},
    message::Message,
    nfs3,
    outcome::{Outcome, DROP, EC, EV, OK},
    rpc::{Call, Kind},
};

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (id, vers) in [
        ("M025", 0),
        ("M026", 2),
        ("M027", u32::MAX),
        ("M028", 0x0100_0000),
        ("M026b", 7),
    ] {
        cases.push(one(
            id,
            "8166 4.5.1",
            format!("version {vers:#x}"),
            EV,
            move |b| Ok(null(b).poke(4, vers)),
        ));
    }
    cases.push(one(
        "M029",
        "8166 4.5",
        "version 2, RDMA_ERROR",
        DROP,
        |b| Ok(null(b).poke(4, 2).poke(12, 4)),
    ));
    cases.push(one("M030", "8166 4.5.1", "version 2, RDMA_DONE", EV, |b| {
        Ok(null(b).poke(4, 2).poke(12, 3))
    }));
    cases.push(one("M031", "8166 4.6.1", "RDMA_MSGP and a call", EC, |b| {
        let call = b.number(Call::null());
        let message = Message::words(call.xid, 1, MSGP, &[4, 1024, 0, 0, 0]);
        Ok(message.and(&call.encode()))
    }));
    let answerless: [(&str, &str, &str, u32, &[u32], usize); 5] = [
        ("M032", "8166 4.6.2", "RDMA_DONE, 16 bytes", 3, &[], 0),
        (
            "M033",
            "8166 4.6.2",
            "RDMA_DONE, 68 bytes",
            3,
            &[0, 0, 0],
            40,
        ),
        (
            "M034",
            "8166 4.2.4",
            "RDMA_ERROR, ERR_CHUNK, 20 bytes",
            4,
            &[2],
            0,
        ),
        (
            "M035",
            "8166 4.2.4",
            "RDMA_ERROR, ERR_VERS, 28 bytes",
            4,
            &[1, 1, 1],
            0,
        ),
        (
            "M036",
            "8166 4.2.4",
            "RDMA_ERROR, error 99",
            4,
            &[99, 0, 0],
            0,
        ),
    ];
    for (id, rfc, sends, proc, rest, more) in answerless {
        cases.push(one(id, rfc, sends, DROP, move |b| {
            Ok(Message::words(b.xid(), 1, proc, rest).and(&vec![0; more]))
        }));
    }
    for (id, proc) in [("M037", 5), ("M038", u32::MAX), ("M038b", 0x8000_0000)] {
        cases.push(one(
            id,
            "8166 4.5.2",
            format!("procedure {proc:#x}"),
            EC,
            move |b| Ok(null(b).poke(12, proc)),
        ));
    }
    for (id, credits) in [("M039", 0), ("M040", u32::MAX), ("M040b", 1)] {
        let sends = format!("a call that asks for {credits} credits");
        cases.push(full(id, "8166 3.3.1", sends, OK, move |b| {
            let message = null(b).poke(8, credits);
            let seen = b.ask(&message)?;
            check((1..=16384).contains(&seen.grant), || {
                format!("a grant of {}", seen.grant)
            })?;
            Ok(seen)
        }));
    }
    for (id, xid) in [("M041a", 0), ("M041b", u32::MAX)] {
        cases.push(one(
            id,
            "8166 4.2.1",
            format!("XID {xid:#x}"),
            OK,
            move |_| Ok(Message::inline(&Call::null().xid(xid), Lists::default())),
        ));
    }
    cases.push(full(
        "M042",
        "8166 4.5.2",
        "header XID is not the RPC's",
        EC | OK,
        |b| {
            let call = b.number(Call::null());
            let header = Header::new(call.xid ^ 0x0080_0000, MSG, Lists::default());
            two_xids(
                b,
                &Message::new(header, &call.encode(), Kind::Null),
                call.xid,
            )
        },
    ));

    for (id, value) in [("M043", 2), ("M044", u32::MAX)] {
        cases.push(one(
            id,
            "8166 4.5.2",
            format!("Read list discriminator {value:#x}"),
            EC,
            move |b| Ok(null(b).poke(16, value)),
        ));
    }
    // What follows would be right, were it not for the discriminator.
    cases.push(full(
        "M043b",
        "8166 4.5.2",
        "WRITE3, the discriminator of its Read segment is 2",
        EC,
        |b| {
            let write = Write::new(b, 100)?;
            let reads = write.segments(b, &[100])?;
            let seen = b.ask(&write.message(reads).poke(16, 2))?;
            write.verify(b, &seen)?;
            Ok(seen)
        },
    ));
    cases.push(one(
        "M045",
        "8166 4.5.2",
        "second Read discriminator 0x10000",
        EC,
        |b| {
            let chunk = b.chunk(&[4, 4])?;
            Ok(Message::inline(&b.number(Call::null()), Lists::read(40, chunk)).poke(40, 0x10000))
        },
    ));
    cases.push(one(
        "M046",
        "8166 4.5.2",
        "Write list discriminator 2",
        EC,
        |b| Ok(null(b).poke(20, 2)),
    ));
    cases.push(one(
        "M046b",
        "8166 4.5.2",
        "Write list discriminator 2, a chunk after it",
        EC,
        |b| {
            let chunk = b.chunk(&[64])?;
            Ok(Message::inline(&b.number(Call::null()), Lists::write(chunk)).poke(20, 2))
        },
    ));
    cases.push(one(
        "M047",
        "8166 4.5.2",
        "Reply chunk discriminator 0x01000000",
        EC,
        |b| Ok(null(b).poke(24, 0x0100_0000)),
    ));
    cases.push(one(
        "M047b",
        "8166 4.5.2",
        "GETATTR, the discriminator of its Reply chunk is 0x01000000",
        EC,
        |b| {
            let chunk = b.chunk(&[1024])?;
            let call = b.number(nfs3::getattr(&b.world.files.root.clone()));
            Ok(Message::inline(&call, Lists::reply(chunk)).poke(24, 0x0100_0000))
        },
    ));
    cases.push(one(
        "M048",
        "8166 4.5.2",
        "a Write chunk where the Read list belongs",
        EC,
        |b| {
            let chunk = b.chunk(&[64])?;
            let call = b.number(Call::null());
            let mut rest = words(&[1]);
            rest.extend(encode_chunk(&chunk));
            rest.extend(words(&[0, 0, 0]));
            Ok(Message::words(call.xid, 1, MSG, &[])
                .and(&rest)
                .and(&call.encode()))
        },
    ));
    // Its count is a Position that is aligned; the key of the second segment is no discriminator.
    cases.push(one(
        "M048b",
        "8166 4.5.2",
        "a Write chunk of 4 segments where the Read list belongs",
        EC,
        |b| {
            let chunk = b.chunk(&[64; 4])?;
            let call = b.number(Call::null());
            Ok(Message::words(call.xid, 1, MSG, &[1])
                .and(&encode_chunk(&chunk))
                .and(&words(&[0, 0, 0]))
                .and(&call.encode()))
        },
    ));
    cases
}

/// Send a call whose header has another XID than its RPC message.
pub fn two_xids(b: &mut Bench<'_>, sent: &Message, rpc: u32) -> Result<Seen, String> {
    b.post(sent)?;
    let until = Instant::now() + b.world.limit();
    match b.next_message(until)? {
        Next::Message(bytes) => match explain(&bytes, sent, &|_| None) {
            Ok(seen) if seen.outcome == Outcome::Chunk => Ok(seen),
            _ => mirrored(bytes, sent, rpc),
        },
        Next::Silence => Ok(Seen::only(Outcome::Hang)),
        _ => Ok(Seen::only(Outcome::Close)),
    }
}

/// A reply to a call whose two XIDs differ: its header has the RPC call's XID, or
/// mirrors the call in both places (RFC 8166, section 4.2.1, lets a receiver look
/// at the header only).
fn mirrored(mut bytes: Vec<u8>, sent: &Message, rpc: u32) -> Result<Seen, String> {
    if bytes.starts_with(&sent.xid.to_be_bytes()) {
        bytes[..4].copy_from_slice(&rpc.to_be_bytes());
    }
    let call = Message {
        xid: rpc,
        ..sent.clone()
    };
    let seen = explain(&bytes, &call, &|_| None)?;
    // An error has the XID of the header that is in error (section 4.5).
    check(
        matches!(seen.outcome, Outcome::Ok | Outcome::RpcError),
        || unexplained(format!("{} with the XID of the RPC", seen.describe())),
    )?;
    Ok(seen)
}
