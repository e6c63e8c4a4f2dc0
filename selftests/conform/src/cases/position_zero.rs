// SPDX-License-Identifier: GPL-2.0
//! Group D: Position-Zero Read chunks, alone and with others (M069 to M083, C03).

use super::read_list::{long, split, Write};
use crate::{
    bench::Bench,
    case::{check, full, one, Case},
    explain::Seen,
    frame::{Header, Lists, NOMSG},
    memory::Access,
    message::Message,
    nfs3,
    nfs4::Compound,
    outcome::{Outcome, CLOSE, DROP, EC, OK, RPCERR},
    rpc::{Call, Kind},
    world::pattern,
};

pub fn cases() -> Vec<Case> {
    let mut cases = position_zero();
    cases.extend(position_zero_and_more());
    cases
}

fn position_zero() -> Vec<Case> {
    let mut cases = vec![
        one("M069", "8166 4.2.4", "RDMA_NOMSG without lists", EC, |b| {
            Ok(Message::words(b.xid(), 1, NOMSG, &[0, 0, 0]))
        }),
        one(
            "M070",
            "8166 4.2.4",
            "RDMA_NOMSG, only a Reply chunk",
            EC,
            |b| {
                let chunk = b.chunk(&[1024])?;
                Ok(Message::long(&b.number(Call::null()), Lists::reply(chunk)))
            },
        ),
        one(
            "M071",
            "8166 4.2.4",
            "RDMA_NOMSG, only a Write list",
            EC,
            |b| {
                let chunk = b.chunk(&[1024])?;
                Ok(Message::long(&b.number(Call::null()), Lists::write(chunk)))
            },
        ),
        one(
            "M072",
            "8166 4.2.4",
            "RDMA_NOMSG, a Read chunk, but none at Position 0",
            EC,
            |b| {
                let call = b.number(Call::null());
                let chunk = b.source(&call.encode(), &[40])?;
                Ok(Message::long(&call, Lists::read(40, chunk)))
            },
        ),
        one(
            "M073",
            "8166 4.2.4",
            "RDMA_NOMSG with a Position-Zero chunk and 40 bytes after the header",
            EC,
            |b| {
                let call = b.number(Call::null());
                Ok(long(b, &call, &[40])?.and(&call.encode()))
            },
        ),
        one(
            "M074",
            "8166 4.2.4",
            "RDMA_NOMSG with an inline call, no lists",
            EC,
            |b| {
                let call = b.number(Call::null());
                Ok(Message::long(&call, Lists::default()).and(&call.encode()))
            },
        ),
        one(
            "M075",
            "8166 3.5.3",
            "RDMA_MSG with a Position-Zero chunk and an inline call",
            EC,
            |b| {
                let call = b.number(Call::null());
                let chunk = b.source(&call.encode(), &[40])?;
                Ok(Message::inline(&call, Lists::read(0, chunk)))
            },
        ),
        one(
            "M076",
            "8166 3.5.3",
            "a Position-Zero chunk of 0 bytes",
            EC,
            |b| {
                let call = b.number(Call::null());
                long(b, &call, &[0])
            },
        ),
        one(
            "M076b",
            "8166 3.5.3",
            "a Position-Zero chunk of three empty segments",
            EC,
            |b| {
                let call = b.number(Call::null());
                long(b, &call, &[0, 0, 0])
            },
        ),
        one(
            "M078",
            "8166 3.5.3",
            "a Position-Zero chunk of 41 bytes",
            OK | EC | RPCERR,
            |b| {
                let call = b.number(Call::null());
                long(b, &call, &[41])
            },
        ),
        full(
            "M088",
            "8166 3.5.3",
            "a Position-Zero chunk of 16 segments of 1 to 7 bytes",
            OK,
            |b| {
                let call = b.number(nfs3::getattr(&b.world.files.root.clone()));
                let total = call.encode().len();
                let mut lengths: Vec<usize> = (0..15).map(|i| 1 + i % 7).collect();
                lengths.push(total - lengths.iter().sum::<usize>());
                let message = long(b, &call, &lengths)?;
                b.ask(&message)
            },
        ),
        full(
            "M088b",
            "8166 3.5.3",
            "a Position-Zero chunk of 2 to 7 bytes a segment, each across the end of a page",
            OK,
            |b| {
                let call = b.number(nfs3::getattr(&b.world.files.root.clone()));
                let stream = call.encode();
                let mut segments = Vec::new();
                let mut from = 0;
                while from < stream.len() {
                    let len = (2 + segments.len() % 6).min(stream.len() - from);
                    let before = len.div_ceil(2);
                    let region = b.region_at(len, Access::ReadWrite, 4096 - before)?;
                    b.fill(region, 0, &stream[from..from + len]);
                    segments.push(b.segment(region, 0, len));
                    from += len;
                }
                b.ask(&Message::long(&call, Lists::read(0, segments)))
            },
        ),
        one(
            "E",
            "8166 3.5.3",
            "NULL in a Position-Zero chunk (reference frame E)",
            OK,
            |b| {
                let call = b.number(Call::null());
                long(b, &call, &[40])
            },
        ),
    ];
    for len in [4, 8, 20, 39] {
        cases.push(one(
            format!("M077.{len}"),
            "8166 3.5.3",
            format!("a Position-Zero chunk of {len} bytes"),
            DROP | EC | RPCERR | CLOSE,
            move |b| {
                let call = b.number(Call::null());
                long(b, &call, &[len])
            },
        ));
    }
    cases.push(full(
        "M082",
        "8166 4.5.2",
        "a Position-Zero chunk whose call has another XID",
        EC | OK,
        |b| {
            let call = b.number(Call::null());
            let chunk = b.source(&call.encode(), &[40])?;
            let header = Header::new(call.xid ^ 0x0080_0000, NOMSG, Lists::read(0, chunk));
            super::fixed_header::two_xids(b, &Message::new(header, &[], Kind::Null), call.xid)
        },
    ));
    cases.push(one(
        "M083",
        "8166 4.5",
        "a Position-Zero chunk with an RPC reply",
        DROP,
        |b| {
            let call = b.number(Call::null());
            let mut stream = call.encode();
            stream[7] = 1;
            let chunk = b.source(&stream, &[40])?;
            Ok(Message::long(&call, Lists::read(0, chunk)))
        },
    ));
    cases
}

/// RDMA_NOMSG whose WRITE data are in a chunk of their own (RFC 8267, 6.4.2).
pub fn long_write(
    b: &mut Bench<'_>,
    len: usize,
    base: usize,
    segments: usize,
    zero_last: bool,
) -> Result<(Write, Message), String> {
    let write = Write::new(b, len)?;
    let (stream, item) = write.call.reduced(0);
    let zero = b
        .source(&stream, &split(stream.len(), base))?
        .into_iter()
        .map(|s| (0, s));
    let data = b
        .source(&item, &split(item.len(), segments))?
        .into_iter()
        .map(|s| (write.position, s));
    let reads: Vec<_> = if zero_last {
        data.chain(zero).collect()
    } else {
        zero.chain(data).collect()
    };
    let message = Message::new(
        Header::new(
            write.call.xid,
            NOMSG,
            Lists {
                reads,
                ..Lists::default()
            },
        ),
        &[],
        Kind::Write,
    );
    Ok((write, message))
}

fn position_zero_and_more() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.push(full(
        "M079",
        "8166 3.4.5",
        "the Position-Zero chunk behind another in the list",
        OK,
        |b| {
            let (write, message) = long_write(b, 101, 1, 1, true)?;
            let seen = b.ask(&message)?;
            write.verify(b, &seen)?;
            Ok(seen)
        },
    ));
    cases.push(one(
        "M080",
        "8166 3.4.5",
        "Position-Zero chunk and one far behind the call's end",
        EC,
        |b| {
            let call = b.number(Call::null());
            let zero = b.source(&call.encode(), &[40])?;
            let data = b.chunk(&[16])?;
            Ok(Message::long(
                &call,
                Lists {
                    reads: vec![(0, zero[0]), (4000, data[0])],
                    ..Lists::default()
                },
            ))
        },
    ));
    // Boundaries of the base's segments around the data's place (field report C03).
    for split_at in [-8i64, -4, 0, 4, 8] {
        let sends = format!(
            "RDMA_NOMSG WRITE3, a base segment ends {split_at} bytes from the data's Position"
        );
        cases.push(full(
            format!("C03.{split_at}"),
            "8166 3.4.5",
            sends,
            OK,
            move |b| cut_base(b, 1, split_at),
        ));
    }
    for count in 2..=7 {
        let sends = format!(
            "RDMA_NOMSG WRITE3, a base of {} segments, one ends -9 to 9 bytes from the data's Position",
            count + 1
        );
        cases.push(full(
            format!("C03.s{}", count + 1),
            "8166 3.4.5",
            sends,
            OK,
            move |b| {
                for split_at in -9..9 {
                    cut_base(b, count, split_at).map_err(|e| format!("{split_at}: {e}"))?;
                }
                cut_base(b, count, 9)
            },
        ));
    }
    cases
}

/// A WRITE whose stream is in a Position-Zero chunk: so many segments up to some bytes from the
/// Position of its data, and one more.
fn cut_base(b: &mut Bench<'_>, count: usize, split_at: i64) -> Result<Seen, String> {
    let data = pattern(7, 61);
    let file = b.world.fresh_file()?;
    // The stream has to go on behind the data, so the WRITE is an NFSv4 one.
    let compound = Compound::new(0).handle(&file).write(0, &data).getattr();
    let call = b.number(compound.call());
    let (stream, item) = call.reduced(0);
    let position = call.item(0).0;
    let first = (position as i64 + split_at) as usize;
    let mut lengths = split(first, count);
    lengths.push(stream.len() - first);
    let zero = b.source(&stream, &lengths)?.into_iter().map(|s| (0, s));
    let chunk = b.source(&item, &[61])?;
    let data_at = (position as u32, chunk[0]);
    let lists = Lists {
        reads: zero.chain([data_at]).collect(),
        ..Lists::default()
    };
    let seen = b.ask(&Message::long(&call, lists))?;
    check(
        seen.outcome == Outcome::Ok && seen.results.status == 0,
        || seen.describe(),
    )?;
    let stored = b.world.content(&file, 4096)?;
    check(stored == data, || {
        format!(
            "the file has {} bytes, other than the 61 sent",
            stored.len()
        )
    })?;
    Ok(seen)
}
