// SPDX-License-Identifier: GPL-2.0
//! Access control lists and extended attributes: long arguments and results of which nothing is
//! eligible (P19, P20).

use super::{
    positive::{long, narrow, succeeded, Cut},
    replay::session_of,
};
use crate::{
    bench::Bench,
    case::{check, full, skip, Case},
    explain::Seen,
    frame::Lists,
    handle::Handle,
    message::Message,
    nfs3,
    nfs4::Compound,
    outcome::{Outcome, OK},
    rpc::{auth_sys, Call, Status},
    world::pattern,
};

/// Entries for users: their list is longer than the threshold, but not than the page that nfsd of
/// Linux 7.3 has to decode it.
const USERS: u32 = 335;

/// Entries that GETACL can give. With its attributes the list is longer than the threshold, but ends
/// in the reply's first page: nfs_stream_encode_acl() of Linux 7.3 writes into the pages of a reply
/// although xdr_reserve_space() will still move what crosses the end of one. What is behind that,
/// over TCP, too, is neither the list nor always the same.
const GIVEN: u32 = 324;

/// As many bytes as fit a block of ext4 with all that belongs to them.
const VALUE: usize = 3901;

const NAME: &str = "blob";

const CUT: Cut = Cut {
    segments: 3,
    offset: 1,
};

/// What a case returns if the server's file system has no such attributes.
fn without(what: &str) -> Result<Seen, String> {
    Ok(skip(format!("the server's files have no {what}")))
}

/// NFS3ERR_NOTSUPP and NFS4ERR_NOTSUPP, NFS4ERR_OP_ILLEGAL, NFS4ERR_NOXATTR.
fn unsupported(status: u32) -> bool {
    matches!(status, 10_004 | 10_044 | 10_095)
}

/// A file with a list for so many users, made over TCP.
fn listed(b: &mut Bench<'_>, users: u32) -> Result<Option<Handle>, String> {
    let file = b.world.fresh_file()?;
    match b.world.tcp.call(nfs3::setacl(&file, users)) {
        Ok(results) if results.status == 0 => Ok(Some(file)),
        Ok(results) if unsupported(results.status) => Ok(None),
        Ok(results) => Err(format!("SETACL over TCP: status {}", results.status)),
        // PROG_UNAVAIL
        Err(text) if text.contains("Accepted(1,") => Ok(None),
        Err(text) => Err(text),
    }
}

/// The call has a reply in the Reply chunk that is the one over TCP but for the XID.
fn as_over_tcp(b: &mut Bench<'_>, call: Call, room: usize) -> Result<Seen, String> {
    let (_, right) = b.world.tcp.raw(call.clone())?;
    let chunk = CUT.chunk(b, room, None)?;
    let call = b.number(call);
    let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
    succeeded(&seen)?;
    check(!seen.inline, || "inline".into())?;
    check(seen.stream[4..] == right[4..], || {
        format!(
            "{} bytes, over TCP {}, or others",
            seen.stream.len(),
            right.len()
        )
    })?;
    Ok(seen)
}

fn lists() -> Vec<Case> {
    vec![
        full(
            "P19",
            "8267 5.2",
            "NFSACL GETACL of 328 entries with a Reply chunk",
            OK,
            |b| {
                let Some(file) = listed(b, GIVEN)? else {
                    return without("access control lists");
                };
                as_over_tcp(b, nfs3::getacl(&file), 8192)
            },
        ),
        full(
            "P19.short",
            "8166 4.5.3",
            "the same with a Reply chunk that is too short, then with a longer one",
            OK,
            |b| {
                let Some(file) = listed(b, GIVEN)? else {
                    return without("access control lists");
                };
                let chunk = b.chunk(&[512, 512])?;
                let call = b.number(nfs3::getacl(&file));
                let short = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
                check(short.outcome == Outcome::Chunk, || short.describe())?;
                as_over_tcp(b, nfs3::getacl(&file), 8192)
            },
        ),
        full(
            "P19.v4",
            "8166 3.5.3",
            "NFSv4 GETATTR of an access control list with a Reply chunk",
            OK,
            |b| {
                let Some(file) = listed(b, USERS)? else {
                    return without("access control lists");
                };
                let call = Compound::new(0).handle(&file).attribute(12).call();
                as_over_tcp(b, call, 65536)
            },
        ),
        full(
            "P20",
            "8166 3.5.3",
            "NFSACL SETACL of 339 entries, all in a Position-Zero chunk",
            OK,
            |b| {
                let file = b.world.fresh_file()?;
                let call = nfs3::setacl(&file, USERS);
                let seen = long(b, call, CUT, None)?;
                if seen.status == Some(Status::Accepted(1, None))
                    || unsupported(seen.results.status)
                {
                    return without("access control lists");
                }
                succeeded(&seen)?;
                // As if it had been set over TCP. GETACL would not show it: see GIVEN.
                let other = listed(b, USERS)?.ok_or("no access control lists over TCP")?;
                let list = |file: &Handle| Compound::new(0).handle(file).attribute(12).call();
                let (_, now) = b.world.tcp.raw(list(&file))?;
                let (_, right) = b.world.tcp.raw(list(&other))?;
                check(right.len() > 12 * USERS as usize, || {
                    format!("a list of {} bytes over TCP", right.len())
                })?;
                check(now[4..] == right[4..], || {
                    "other entries were stored".into()
                })?;
                Ok(seen)
            },
        ),
    ]
}

/// SETXATTR of a long value, all in a Position-Zero chunk; then that it is there, over TCP. The
/// session and the file; None if there are no such attributes.
fn set(b: &mut Bench<'_>) -> Result<Option<([u8; 16], Handle, Seen)>, String> {
    let (session, _, _) = session_of(b, 2, 0, (1024, 2))?;
    let file = b.world.fresh_file()?;
    let start = Compound::new(2).sequence(&session, 1, 0, false);
    let set = start.handle(&file).setxattr(NAME, &pattern(3, VALUE));
    let mut call = set.call();
    call.auth = auth_sys(16);
    let seen = long(b, call, CUT, None)?;
    if unsupported(seen.results.status) {
        return Ok(None);
    }
    succeeded(&seen)?;
    let start = Compound::new(2).sequence(&session, 2, 0, false);
    let now = b.world.must(start.handle(&file).getxattr(NAME).call())?;
    check(
        now.items.iter().any(|i| i.data == pattern(3, VALUE)),
        || "another value was stored".into(),
    )?;
    Ok(Some((session, file, seen)))
}

/// One more COMPOUND on that file, with a Reply chunk.
fn get(
    b: &mut Bench<'_>,
    session: &[u8; 16],
    number: u32,
    operation: impl Fn(Compound) -> Compound,
) -> Result<Seen, String> {
    let start = Compound::new(2).sequence(session, number, 0, false);
    let call = b.number(operation(start).call());
    let chunk = CUT.chunk(b, 8192, None)?;
    let seen = b.ask(&Message::inline(&call, Lists::reply(chunk)))?;
    succeeded(&seen)?;
    check(!seen.inline, || "inline".into())?;
    b.succeed(Compound::new(1).destroy_session(session).call())?;
    Ok(seen)
}

fn attributes() -> Vec<Case> {
    vec![
        full(
            "P20.xattr",
            "8166 3.5.3",
            "SETXATTR of 3901 bytes, all in a Position-Zero chunk",
            OK,
            |b| {
                let Some((session, _, seen)) = set(b)? else {
                    return without("extended attributes");
                };
                b.succeed(Compound::new(1).destroy_session(&session).call())?;
                Ok(seen)
            },
        ),
        full(
            "P19.getxattr",
            "8166 3.5.3",
            "GETXATTR of 3901 bytes with a Reply chunk, thresholds of 1024",
            OK,
            |b| {
                b.reconnect(&narrow())?;
                let Some((session, file, _)) = set(b)? else {
                    return without("extended attributes");
                };
                let seen = get(b, &session, 3, |c| c.handle(&file).getxattr(NAME))?;
                check(seen.results.items[0].data == pattern(3, VALUE), || {
                    "another value".into()
                })?;
                Ok(seen)
            },
        ),
        full(
            "P19.listxattr",
            "8166 3.5.3",
            "LISTXATTRS of 40 names with a Reply chunk, thresholds of 1024",
            OK,
            |b| {
                b.reconnect(&narrow())?;
                let (session, _, _) = session_of(b, 2, 0, (1024, 2))?;
                let file = b.world.fresh_file()?;
                let name = |i: u32| format!("name-{i:02}-{}", "n".repeat(32));
                for i in 0..40 {
                    let start = Compound::new(2).sequence(&session, 1 + i, 0, false);
                    let set = start.handle(&file).setxattr(&name(i), b"v").call();
                    let results = b.world.tcp.call(set)?;
                    if i == 0 && unsupported(results.status) {
                        return without("extended attributes");
                    }
                    check(results.status == 0, || format!("status {}", results.status))?;
                }
                let seen = get(b, &session, 41, |c| c.handle(&file).listxattrs(8192))?;
                let right = (0..40).all(|i| seen.results.names.contains(&name(i)));
                check(right && seen.results.names.len() == 40, || {
                    format!("{:?}", seen.results.names)
                })?;
                Ok(seen)
            },
        ),
    ]
}

pub fn cases() -> Vec<Case> {
    let mut cases = lists();
    cases.extend(attributes());
    cases
}
