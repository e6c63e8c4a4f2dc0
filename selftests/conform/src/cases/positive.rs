// SPDX-License-Identifier: GPL-2.0
//! What real clients put on the wire (P01 to P30): it has to work.

use super::{read_list::split, rules::compared, write_list::good_read};
use crate::{
    bench::Bench,
    case::{check, full, skip, Case},
    connection::Options,
    explain::Seen,
    frame::{total, Header, Lists, Segment, MSG},
    memory::Access,
    message::Message,
    nfs3,
    nfs4::Compound,
    outcome::{Outcome, OK},
    private::Settings,
    results::Item,
    rpc::Call,
    world::{long_target, pattern, BIG, LINK, NAMES},
};

/// How a chunk is cut up and where in a page its segments begin.
#[derive(Clone, Copy)]
pub struct Cut {
    pub segments: usize,
    pub offset: usize,
}

pub const PLAIN: Cut = Cut {
    segments: 1,
    offset: 0,
};

impl Cut {
    /// Memory for a chunk of that many bytes.
    pub fn chunk(
        self,
        b: &mut Bench<'_>,
        len: usize,
        data: Option<&[u8]>,
    ) -> Result<Vec<Segment>, String> {
        let mut from = 0;
        split(len, self.segments)
            .into_iter()
            .map(|part| {
                let region = b.region_at(part, Access::ReadWrite, self.offset)?;
                if let Some(data) = data {
                    b.fill(region, 0, &data[from..from + part]);
                }
                from += part;
                Ok(b.segment(region, 0, part))
            })
            .collect()
    }
}

pub fn succeeded(seen: &Seen) -> Result<(), String> {
    check(
        seen.outcome == Outcome::Ok && seen.results.status == 0,
        || seen.describe(),
    )
}

pub fn data(seen: &Seen, right: &[u8], reduced: bool) -> Result<(), String> {
    succeeded(seen)?;
    let right = Item {
        data: right.to_vec(),
        reduced,
    };
    check(seen.results.items.first() == Some(&right), || {
        "the data are others, or in another place".into()
    })
}

pub fn read(
    b: &mut Bench<'_>,
    v4: bool,
    from: usize,
    len: usize,
    cut: Cut,
) -> Result<Seen, String> {
    let len = len.min(b.world.most_read());
    let big = b.world.files.big.clone();
    let call = if v4 {
        Compound::new(0)
            .handle(&big)
            .read(from as u64, len as u32)
            .getattr()
            .call()
    } else {
        nfs3::read(&big, from as u64, len as u32)
    };
    let call = b.number(call);
    let mut chunk = cut.chunk(b, len, None)?;
    if len % 4 != 0 {
        // The Linux client's segment for the roundup: to be left alone.
        chunk.extend(b.chunk(&[4])?);
    }
    let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
    data(&seen, &pattern(from, len), true)?;
    check(!v4 || seen.results.ops.len() == 3, || {
        format!("{:?}", seen.results.ops)
    })?;
    Ok(seen)
}

pub fn write(b: &mut Bench<'_>, v4: bool, len: usize, cut: Cut) -> Result<Seen, String> {
    let len = len.min(b.world.most_written());
    let file = b.world.fresh_file()?;
    let bytes = pattern(11, len);
    let call = if v4 {
        Compound::new(0)
            .handle(&file)
            .write(0, &bytes)
            .getattr()
            .call()
    } else {
        nfs3::write(&file, 0, &bytes)
    };
    let call = b.number(call);
    let (stream, item) = call.reduced(0);
    let chunk = cut.chunk(b, len, Some(&item))?;
    let header = Header::new(call.xid, MSG, Lists::read(call.item(0).0 as u32, chunk));
    let seen = b.ask(&Message::new(header, &stream, call.kind))?;
    succeeded(&seen)?;
    stored(b, &file, &bytes)?;
    Ok(seen)
}

pub fn stored(b: &mut Bench<'_>, file: &[u8], right: &[u8]) -> Result<(), String> {
    let stored = b.world.content(file, 1 << 20)?;
    check(stored == right, || {
        format!(
            "the file has {} bytes that are not the {} sent",
            stored.len(),
            right.len()
        )
    })
}

pub fn readdir(b: &mut Bench<'_>, plus: bool, cut: Cut) -> Result<Seen, String> {
    let many = b.world.files.many.clone();
    let call = if plus {
        nfs3::readdirplus(&many, 32768)
    } else {
        nfs3::readdir(&many, 16384)
    };
    let call = b.number(call);
    let chunk = cut.chunk(b, 40960, None)?;
    let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
    succeeded(&seen)?;
    check(
        !seen.inline && seen.results.names.len() == NAMES + 2,
        || format!("{} names", seen.results.names.len()),
    )?;
    Ok(seen)
}

fn readdir4(b: &mut Bench<'_>, cut: Cut) -> Result<Seen, String> {
    let many = b.world.files.many.clone();
    let call = b.number(Compound::new(0).handle(&many).readdir(32768).call());
    let chunk = cut.chunk(b, 40960, None)?;
    let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
    succeeded(&seen)?;
    check(!seen.inline && seen.results.names.len() == NAMES, || {
        format!("{} names", seen.results.names.len())
    })?;
    Ok(seen)
}

/// Thresholds of 1024: what has to go into a Reply chunk is not long.
pub fn narrow() -> Options {
    Options {
        private: Settings {
            flags: 0,
            send: 0,
            receive: 0,
        }
        .encode(),
        ..Options::default()
    }
}

/// READLINK of the long link with a Reply chunk, or a Write chunk.
pub fn readlink(b: &mut Bench<'_>, v4: bool, reduced: bool, cut: Cut) -> Result<Seen, String> {
    let link = b.world.files.long_link.clone();
    let call = if v4 {
        Compound::new(0).handle(&link).readlink().getattr().call()
    } else {
        nfs3::readlink(&link)
    };
    let call = b.number(call);
    let chunk = cut.chunk(b, 4096, None)?;
    let lists = if reduced {
        Lists::write(chunk)
    } else {
        Lists::reply(chunk)
    };
    let seen = b.ask(&Message::inline(&call, lists))?;
    data(&seen, &long_target(), reduced)?;
    Ok(seen)
}

/// The whole call in a Position-Zero chunk.
pub fn long(b: &mut Bench<'_>, call: Call, cut: Cut, reply: Option<usize>) -> Result<Seen, String> {
    let call = b.number(call);
    let stream = call.encode();
    let chunk = cut.chunk(b, stream.len(), Some(&stream))?;
    let mut lists = Lists::read(0, chunk);
    if let Some(len) = reply {
        lists.reply = Some(cut.chunk(b, len, None)?);
    }
    b.ask(&Message::long(&call, lists))
}

/// Names v3 or v4 and the cut in an id.
fn suffix(v4: bool, cut: Cut) -> String {
    format!(
        "{}s{}o{}",
        if v4 { "v4" } else { "v3" },
        cut.segments,
        cut.offset
    )
}

pub fn cases() -> Vec<Case> {
    let mut cases = small();
    for v4 in [false, true] {
        for segments in [1, 2, 9, 16] {
            for offset in [0, 1, 4095] {
                let cut = Cut { segments, offset };
                let text = format!(
                    "NFSv{}, {segments} segments at page offset {offset}",
                    if v4 { "4.0" } else { "3" }
                );
                let name = suffix(v4, cut);
                cases.push(full(
                    format!("P04.{name}"),
                    "8267 4",
                    format!("READ of 65535 with a Write chunk: {text}"),
                    OK,
                    move |b| read(b, v4, 3, 65535, cut),
                ));
                let (id, len) = if v4 { ("P12", 32770) } else { ("P11", 32771) };
                cases.push(full(
                    format!("{id}.{name}"),
                    "8267 4",
                    format!("WRITE of {len} with a Read chunk: {text}"),
                    OK,
                    move |b| write(b, v4, len, cut),
                ));
                cases.push(full(
                    format!("P16.{name}"),
                    "8166 3.5.3",
                    format!("READLINK of 1501 with a Reply chunk, thresholds of 1024: {text}"),
                    OK,
                    move |b| {
                        b.reconnect(&narrow())?;
                        let seen = readlink(b, v4, false, cut)?;
                        check(!seen.inline, || "inline".into())?;
                        Ok(seen)
                    },
                ));
                cases.push(full(
                    format!("P18.{name}"),
                    "8166 3.5.3",
                    format!("READDIR with a Reply chunk: {text}"),
                    OK,
                    move |b| {
                        if v4 {
                            readdir4(b, cut)
                        } else {
                            readdir(b, false, cut)
                        }
                    },
                ));
            }
        }
    }
    cases
}

fn small() -> Vec<Case> {
    let mut cases = vec![
        full(
            "P01",
            "8166 3.5.1",
            "NULL, GETATTR, LOOKUP, ACCESS, a small COMPOUND: all inline",
            OK,
            |b| {
                let (root, dir) = (b.world.files.root.clone(), b.world.files.dir.clone());
                b.succeed(Call::null())?;
                succeeded(&b.succeed(nfs3::getattr(&root))?)?;
                succeeded(&b.succeed(nfs3::lookup(&dir, "small"))?)?;
                b.succeed(nfs3::access(&root))?;
                let seen = b.succeed(Compound::new(0).root().getattr().call())?;
                succeeded(&seen)?;
                Ok(seen)
            },
        ),
        full(
            "P02",
            "8267 6.5",
            "EXCHANGE_ID with a Reply chunk, the first on the connection",
            OK,
            |b| {
                b.reconnect(&Options::default())?;
                let chunk = b.chunk(&[2048, 2048])?;
                let owner = format!("conform {}", b.xid());
                let call = b.number(Compound::new(1).exchange_id(owner.as_bytes(), 1).call());
                let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
                succeeded(&seen)?;
                Ok(seen)
            },
        ),
        full(
            "P06",
            "8166 4.3.2.2",
            "READ that fails, a Write chunk of two segments",
            OK,
            |b| {
                let stale = b.world.files.stale.clone();
                let call = b.number(nfs3::read(&stale, 0, 8192));
                let message = Message::inline(&call, Lists::write(b.chunk(&[4096, 4096])?));
                let seen = b.ask(&message)?;
                b.written(&message.lists);
                check(
                    seen.results.status != 0 && total(&seen.lists.writes[0]) == 0,
                    || seen.describe(),
                )?;
                Ok(seen)
            },
        ),
        full(
            "P08",
            "8267 6.4.1",
            "COMPOUND of two READs and READLINK, three Write chunks",
            OK,
            |b| {
                let (big, link) = (b.world.files.big.clone(), b.world.files.link.clone());
                let call = Compound::new(0)
                    .handle(&big)
                    .read(0, 4097)
                    .read(8192, 4096)
                    .handle(&link)
                    .readlink()
                    .call();
                let right = [
                    (pattern(0, 4097), true),
                    (pattern(8192, 4096), true),
                    (LINK.to_vec(), true),
                ];
                compared(b, call, &[&[4097, 4], &[2000, 2096], &[64]], &right)
            },
        ),
        full("P10", "8166 3.5.1", "WRITE of 3000 bytes inline", OK, |b| {
            let file = b.world.fresh_file()?;
            let seen = b.succeed(nfs3::write(&file, 0, &pattern(1, 3000)))?;
            succeeded(&seen)?;
            stored(b, &file, &pattern(1, 3000))?;
            Ok(seen)
        }),
        full(
            "P14",
            "8267 4",
            "SYMLINK with a long target in a Read chunk",
            OK,
            |b| symlink(b, false, false),
        ),
        full(
            "P15",
            "8166 3.5.3",
            "SYMLINK with a long target, all in a Position-Zero chunk",
            OK,
            |b| symlink(b, false, true),
        ),
        full(
            "P14.v4",
            "8267 6.1",
            "NFSv4 CREATE of a link with a long target in a Read chunk",
            OK,
            |b| symlink(b, true, false),
        ),
        full(
            "P15.v4",
            "8166 3.5.3",
            "NFSv4 CREATE of a link with a long target, all in a Position-Zero chunk",
            OK,
            |b| symlink(b, true, true),
        ),
        full(
            "P28",
            "8166 4.3.3",
            "GETATTR with a Reply chunk of 31 segments of one region",
            OK,
            |b| {
                let root = b.world.files.root.clone();
                let region = b.region(31 * 1024)?;
                let chunk = (0..31).map(|i| b.segment(region, i * 1024, 1024)).collect();
                let call = b.number(nfs3::getattr(&root));
                let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
                succeeded(&seen)?;
                Ok(seen)
            },
        ),
    ];
    for len in [0usize, 1, 2, 3, 5, 100, 1024, 3884 - 156 - 100] {
        cases.push(full(
            format!("P03.{len}"),
            "8166 3.5.1",
            format!("READ3 of {len} bytes inline"),
            OK,
            move |b| {
                // With header, status and attributes.
                if len + 256 > b.threshold() {
                    return Ok(skip("the threshold is less"));
                }
                let big = b.world.files.big.clone();
                let seen = b.succeed(nfs3::read(&big, 5, len as u32))?;
                good_read(&seen, 5, len, false)?;
                Ok(seen)
            },
        ));
    }
    for (name, from, got) in [
        ("short", BIG - 10, 10),
        ("none", BIG, 0),
        ("far", BIG + 5000, 0),
    ] {
        cases.push(full(
            format!("P05.{name}"),
            "8166 3.4.6",
            format!("READ3 of 8192 bytes, {got} of them there, a Write chunk"),
            OK,
            move |b| {
                let big = b.world.files.big.clone();
                let call = b.number(nfs3::read(&big, from as u64, 8192));
                let chunk = b.chunk(&[6, 4096, 4090])?;
                let seen = b.ask(&Message::inline(&call, Lists::write(chunk)))?;
                data(&seen, &pattern(from, got), true)?;
                check(seen.results.eof, || "no EOF".into())?;
                Ok(seen)
            },
        ));
    }
    cases
}

fn symlink(b: &mut Bench<'_>, v4: bool, zero: bool) -> Result<Seen, String> {
    let (dir, name) = (b.world.files.dir.clone(), b.world.fresh_name());
    let target: Vec<u8> = (0..1023).map(|i| b'a' + (i % 7) as u8).collect();
    let call = if v4 {
        let made = Compound::new(0).handle(&dir).symlink(&name, &target);
        made.getattr().call()
    } else {
        nfs3::symlink(&dir, &name, &target)
    };
    let seen = if zero {
        long(
            b,
            call,
            Cut {
                segments: 2,
                offset: 1,
            },
            None,
        )?
    } else {
        let call = b.number(call);
        let (stream, item) = call.reduced(0);
        let chunk = PLAIN.chunk(b, item.len(), Some(&item))?;
        let header = Header::new(call.xid, MSG, Lists::read(call.item(0).0 as u32, chunk));
        b.ask(&Message::new(header, &stream, call.kind))?
    };
    succeeded(&seen)?;
    let made = b.world.must(nfs3::lookup(&dir, &name))?.handle;
    let read = b.world.must(nfs3::readlink(&made))?.items.remove(0).data;
    check(read == target, || "another target was stored".into())?;
    Ok(seen)
}
