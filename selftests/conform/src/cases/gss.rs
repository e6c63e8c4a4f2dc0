// SPDX-License-Identifier: GPL-2.0
//! RPCSEC_GSS with Kerberos (R43, R44, P24 to P27): what is in chunks, and what must not be.

use std::rc::Rc;

use super::{
    flow::granted,
    positive::{data, stored, succeeded, Cut, PLAIN},
};
use crate::{
    bench::Bench,
    case::{check, full, setup, Case},
    connection::Options,
    explain::Seen,
    frame::{total, Header, Lists, Words, MSG},
    gss::{
        first_call, Context, Guard,
        Service::{self, Integrity, None as NoService, Privacy},
        Step,
    },
    handle::Handle,
    message::Message,
    nfs3,
    nfs4::Compound,
    outcome::{Outcome, CLOSE, DROP, EC, OK, RPCERR},
    rpc::{Call, Status},
    world::{long_target, pattern, BIG, LINK, NAMES},
};

/// Room in a Reply chunk for all of a reply that is not data: checksums, too.
const MORE: usize = 1024;

/// RPCSEC_GSS_CREDPROBLEM: nobody knows the context, or the call's checksum is wrong.
const CREDENTIAL: Status = Status::AuthError(13);

/// Give a call its XID and protect it.
fn protect(b: &mut Bench<'_>, call: Call, service: Service) -> Result<(Call, Guard), String> {
    let call = b.number(call);
    b.world.context()?.protect(call, service)
}

fn inline(
    b: &mut Bench<'_>,
    call: Call,
    service: Service,
    lists: Lists,
) -> Result<Message, String> {
    let (call, guard) = protect(b, call, service)?;
    Ok(Message::inline(&call, lists).guarded(guard))
}

/// The whole call in a Position-Zero chunk.
fn long(
    b: &mut Bench<'_>,
    call: Call,
    service: Service,
    cut: Cut,
    reply: Option<usize>,
) -> Result<Message, String> {
    let (call, guard) = protect(b, call, service)?;
    let stream = call.encode();
    let chunk = cut.chunk(b, stream.len(), Some(&stream))?;
    let mut lists = Lists::read(0, chunk);
    if let Some(len) = reply {
        lists.reply = Some(cut.chunk(b, len, None)?);
    }
    Ok(Message::long(&call, lists).guarded(guard))
}

/// The call with item `n` in a Read chunk.
fn reduced(
    b: &mut Bench<'_>,
    call: Call,
    service: Service,
    n: usize,
    cut: Cut,
) -> Result<Message, String> {
    let (call, guard) = protect(b, call, service)?;
    let (stream, item) = call.reduced(n);
    let chunk = cut.chunk(b, item.len(), Some(&item))?;
    let header = Header::new(call.xid, MSG, Lists::read(call.item(n).0 as u32, chunk));
    Ok(Message::new(header, &stream, call.kind).guarded(guard))
}

fn read_call(b: &Bench<'_>, v4: bool, from: usize, len: usize) -> Call {
    let big = &b.world.files.big;
    if v4 {
        let read = Compound::new(0).handle(big).read(from as u64, len as u32);
        read.getattr().call()
    } else {
        nfs3::read(big, from as u64, len as u32)
    }
}

fn write_call(v4: bool, file: &Handle, bytes: &[u8]) -> Call {
    if v4 {
        Compound::new(0).handle(file).write(0, bytes).call()
    } else {
        nfs3::write(file, 0, bytes)
    }
}

/// READ with a Write chunk: the data in it.
fn read_reduced(b: &mut Bench<'_>, v4: bool, len: usize, cut: Cut) -> Result<Seen, String> {
    let call = read_call(b, v4, 3, len);
    let chunk = cut.chunk(b, len, None)?;
    let message = inline(b, call, NoService, Lists::write(chunk))?;
    let seen = b.ask(&message)?;
    data(&seen, &pattern(3, len), true)?;
    Ok(seen)
}

/// WRITE with a Read chunk: the data from it.
fn write_reduced(b: &mut Bench<'_>, v4: bool, len: usize, cut: Cut) -> Result<Seen, String> {
    let file = b.world.fresh_file()?;
    let bytes = pattern(11, len);
    let message = reduced(b, write_call(v4, &file, &bytes), NoService, 0, cut)?;
    let seen = b.ask(&message)?;
    succeeded(&seen)?;
    stored(b, &file, &bytes)?;
    Ok(seen)
}

/// READ with a Reply chunk: all of the reply in it, if it is long.
fn read_whole(
    b: &mut Bench<'_>,
    v4: bool,
    service: Service,
    len: usize,
    cut: Cut,
) -> Result<Seen, String> {
    let from = if len == BIG { 0 } else { 3 };
    let len = len.min(b.world.most_read());
    let call = read_call(b, v4, from, len);
    let chunk = cut.chunk(b, len.next_multiple_of(4) + MORE, None)?;
    let message = inline(b, call, service, Lists::reply(chunk))?;
    let seen = b.ask(&message)?;
    data(&seen, &pattern(from, len), false)?;
    let threshold = b.threshold();
    check(!seen.inline || len < threshold, || "inline".into())?;
    Ok(seen)
}

/// WRITE in a Position-Zero chunk.
fn write_whole(
    b: &mut Bench<'_>,
    v4: bool,
    service: Service,
    len: usize,
    cut: Cut,
    reply: Option<usize>,
) -> Result<Seen, String> {
    let len = len.min(b.world.most_written());
    let file = b.world.fresh_file()?;
    let bytes = pattern(11, len);
    let message = long(b, write_call(v4, &file, &bytes), service, cut, reply)?;
    let seen = b.ask(&message)?;
    succeeded(&seen)?;
    stored(b, &file, &bytes)?;
    Ok(seen)
}

/// GETATTR behind the data of a WRITE4. nfsd of Linux 7.3 may lose its place behind data that it
/// has decrypted (svcauth_gss_unwrap_priv leaves the end of the head where it was): if it fails,
/// it has to fail over TCP in the same way.
fn after(b: &mut Bench<'_>, service: Service) -> Result<Seen, String> {
    let file = b.world.fresh_file()?;
    let bytes = pattern(11, 32771);
    let write = Compound::new(0).handle(&file).write(0, &bytes);
    let call = write.getattr().call();
    let message = long(b, call.clone(), service, CUTS[1], None)?;
    let mut seen = b.ask(&message)?;
    stored(b, &file, &bytes)?;
    let (call, guard) = protect(b, call, service)?;
    let reply = b.world.tcp.exchange(&call.encode());
    let reply = reply.map_err(|e| format!("over TCP: {e}"))?;
    let right = guard.results(call.kind, call.xid, &reply)?;
    check(seen.results.ops == right.ops, || {
        format!("{:?}, over TCP {:?}", seen.results.ops, right.ops)
    })?;
    if right.status != 0 {
        seen.note = "as over TCP".into();
    }
    Ok(seen)
}

/// READ of a length with a Write chunk that is not to be used, and a Reply chunk if there is one.
fn read_offered(
    b: &mut Bench<'_>,
    v4: bool,
    service: Service,
    len: usize,
    reply: bool,
) -> Result<Seen, String> {
    let call = read_call(b, v4, 3, len);
    let mut lists = Lists::write(b.chunk(&[len / 2, len - len / 2])?);
    if reply {
        lists.reply = Some(b.chunk(&[len + MORE])?);
    }
    let message = inline(b, call, service, lists)?;
    let seen = b.ask(&message)?;
    if seen.outcome == Outcome::Ok {
        data(&seen, &pattern(3, len), false)?;
        check(total(&seen.lists.writes[0]) == 0, || {
            "the Write chunk was used".into()
        })?;
    }
    Ok(seen)
}

fn version(v4: bool) -> &'static str {
    if v4 {
        "v4"
    } else {
        "v3"
    }
}

const CUTS: [Cut; 3] = [
    PLAIN,
    Cut {
        segments: 3,
        offset: 1,
    },
    Cut {
        segments: 9,
        offset: 4095,
    },
];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for v4 in [false, true] {
        let name = version(v4);
        for cut in CUTS {
            let text = format!("NFS{name}, {} segments", cut.segments);
            let name = format!("{name}s{}", cut.segments);
            cases.push(full(
                format!("P24.r{name}"),
                "8166 8.2.2.1",
                format!("krb5: READ of 65535 with a Write chunk: {text}"),
                OK,
                move |b| read_reduced(b, v4, 65535, cut),
            ));
            let len = if v4 { 32770 } else { 32771 };
            cases.push(full(
                format!("P24.w{name}"),
                "8166 8.2.2.1",
                format!("krb5: WRITE of {len} with a Read chunk: {text}"),
                OK,
                move |b| write_reduced(b, v4, len, cut),
            ));
        }
        for service in [Integrity, Privacy] {
            cases.extend(wrapped(v4, service));
        }
    }
    for service in [NoService, Integrity, Privacy] {
        cases.extend(of_service(service));
    }
    cases.extend(contexts());
    cases.extend(broken());
    cases.extend(material());
    cases.into_iter().map(|c| c.needs(&["--gss"])).collect()
}

/// With krb5i and krb5p: no reduction.
fn wrapped(v4: bool, service: Service) -> Vec<Case> {
    let mut cases = Vec::new();
    let (flavor, nfs) = (service.name(), version(v4));
    for cut in CUTS {
        let name = format!("{flavor}.{nfs}s{}", cut.segments);
        let text = format!("NFS{nfs}, {} segments", cut.segments);
        cases.push(full(
            format!("P25.{name}"),
            "8166 8.2.2.3",
            format!("{flavor}: READ of 65535 with a Reply chunk: {text}"),
            OK,
            move |b| read_whole(b, v4, service, 65535, cut),
        ));
        cases.push(full(
            format!("P26.{name}"),
            "8166 8.2.2.3",
            format!("{flavor}: WRITE of 32771, all in a Position-Zero chunk: {text}"),
            OK,
            move |b| write_whole(b, v4, service, 32771, cut, None),
        ));
        cases.push(full(
            format!("P26y.{name}"),
            "8166 8.2.2.3",
            format!("{flavor}: the same with a Reply chunk: {text}"),
            OK,
            move |b| write_whole(b, v4, service, 32771, cut, Some(4096)),
        ));
    }
    cases.push(full(
        format!("P25.{flavor}.{nfs}mib"),
        "8166 8.2.2.3",
        format!("{flavor}: READ of 1 MiB with a Reply chunk: NFS{nfs}"),
        OK,
        move |b| read_whole(b, v4, service, BIG, CUTS[1]),
    ));
    cases.push(full(
        format!("P26.{flavor}.{nfs}mib"),
        "8166 8.2.2.3",
        format!("{flavor}: WRITE of 1 MiB, all in a Position-Zero chunk: NFS{nfs}"),
        OK,
        move |b| write_whole(b, v4, service, BIG, CUTS[1], None),
    ));
    cases.push(full(
        format!("R44.{flavor}.{nfs}small"),
        "8166 8.2.2.3",
        format!("{flavor}: READ of 1000 with a Write chunk: NFS{nfs}"),
        OK,
        move |b| read_offered(b, v4, service, 1000, false),
    ));
    cases.push(full(
        format!("R44.{flavor}.{nfs}both"),
        "8166 8.2.2.3",
        format!("{flavor}: READ of 1000 with Write and Reply chunk: NFS{nfs}"),
        OK,
        move |b| read_offered(b, v4, service, 1000, true),
    ));
    cases.push(full(
        format!("R44.{flavor}.{nfs}large"),
        "8166 8.2.2.3",
        format!("{flavor}: READ of 65532 with Write and Reply chunk: NFS{nfs}"),
        OK,
        move |b| read_offered(b, v4, service, 65532, true),
    ));
    cases.push(full(
        format!("R44.{flavor}.{nfs}none"),
        "8166 8.2.2.3",
        format!("{flavor}: READ of 65532 with nothing but a Write chunk: NFS{nfs}"),
        EC | RPCERR,
        move |b| read_offered(b, v4, service, 65532, false),
    ));
    if v4 {
        cases.push(full(
            format!("P26.{flavor}.v4after"),
            "8166 8.2.2.3",
            format!("{flavor}: WRITE and GETATTR, all in a Position-Zero chunk: as over TCP"),
            OK,
            move |b| after(b, service),
        ));
    }
    if service == Integrity {
        cases.push(full(
            format!("R44.{flavor}.{nfs}write"),
            "8166 8.2.2.3",
            format!("{flavor}: the data of a WRITE in a Read chunk: NFS{nfs}"),
            EC | RPCERR,
            move |b| {
                let file = b.world.fresh_file()?;
                let bytes = pattern(7, 4096);
                let message = reduced(b, write_call(v4, &file, &bytes), service, 0, PLAIN)?;
                let seen = b.ask(&message)?;
                stored(b, &file, &[])?;
                refused(&seen)?;
                Ok(seen)
            },
        ));
    }
    cases
}

/// If RPC has refused a call whose RPCSEC_GSS material, or whose protected arguments, came in a
/// chunk: for that reason.
fn refused(seen: &Seen) -> Result<(), String> {
    let right = matches!(
        &seen.status,
        Some(Status::AuthError(_)) | Some(Status::Accepted(4, None))
    );
    check(seen.outcome != Outcome::RpcError || right, || {
        seen.describe()
    })
}

/// What each service has.
fn of_service(service: Service) -> Vec<Case> {
    let flavor = service.name();
    let id = match service {
        NoService => "P24",
        _ => "P25",
    };
    vec![
        full(
            format!("{id}.{flavor}.inline"),
            "2203 5.3",
            format!("{flavor}: GETATTR, READs to the threshold, WRITE, all without chunks"),
            OK,
            move |b| {
                let root = b.world.files.root.clone();
                let message = inline(b, nfs3::getattr(&root), service, Lists::default())?;
                succeeded(&b.ask(&message)?)?;
                // What is around the data may have so many bytes.
                let around = 596;
                let most = b.threshold() - around;
                for len in [0, 1, 2, 3, 5, 1000, 3500].map(|len: usize| len.min(most)) {
                    let call = read_call(b, false, 3, len);
                    let message = inline(b, call, service, Lists::default())?;
                    data(&b.ask(&message)?, &pattern(3, len), false)?;
                }
                let file = b.world.fresh_file()?;
                let bytes = pattern(5, 1001.min(b.call_limit()? - around));
                let call = write_call(false, &file, &bytes);
                let message = inline(b, call, service, Lists::default())?;
                let seen = b.ask(&message)?;
                succeeded(&seen)?;
                stored(b, &file, &bytes)?;
                Ok(seen)
            },
        ),
        full(
            format!("{id}.{flavor}.edge"),
            "8166 3.5.3",
            format!(
                "{flavor}: READs whose replies just fit inline, and just not, with a Reply chunk"
            ),
            OK,
            move |b| {
                let mut inline = 0;
                let mut last = None;
                for len in (3600..4000).step_by(4) {
                    let seen = read_whole(b, false, service, len, PLAIN)?;
                    inline += usize::from(seen.inline);
                    last = Some(seen);
                }
                // A server may use a Reply chunk that it does not need.
                let mut seen = last.ok_or("no READ")?;
                check(!seen.inline, || "the longest was inline".into())?;
                seen.note = format!("{inline} of 100 inline");
                Ok(seen)
            },
        ),
        full(
            format!("{id}.{flavor}.readdir"),
            "8166 3.5.3",
            format!("{flavor}: READDIR with a Reply chunk"),
            OK,
            move |b| {
                let many = b.world.files.many.clone();
                let chunk = CUTS[1].chunk(b, 40960, None)?;
                let call = nfs3::readdir(&many, 16384);
                let message = inline(b, call, service, Lists::reply(chunk))?;
                let seen = b.ask(&message)?;
                succeeded(&seen)?;
                check(
                    !seen.inline && seen.results.names.len() == NAMES + 2,
                    || format!("{} names", seen.results.names.len()),
                )?;
                Ok(seen)
            },
        ),
        full(
            format!("{id}.{flavor}.symlink"),
            "8166 3.5.3",
            format!("{flavor}: SYMLINK with a long target, all in a Position-Zero chunk"),
            OK,
            move |b| {
                let (dir, name) = (b.world.files.dir.clone(), b.world.fresh_name());
                let target = long_target();
                let call = nfs3::symlink(&dir, &name, &target[..1023]);
                let message = long(b, call, service, CUTS[1], Some(2048))?;
                let seen = b.ask(&message)?;
                succeeded(&seen)?;
                let made = b.world.must(nfs3::lookup(&dir, &name))?.handle;
                let read = b.world.must(nfs3::readlink(&made))?.items.remove(0).data;
                check(read == target[..1023], || {
                    "another target was stored".into()
                })?;
                Ok(seen)
            },
        ),
        full(
            format!("R44.{flavor}.readlink"),
            "8166 8.2.2.3",
            format!("{flavor}: READLINK with a Write chunk"),
            OK,
            move |b| {
                let link = b.world.files.link.clone();
                let chunk = b.chunk(&[64])?;
                let message = inline(b, nfs3::readlink(&link), service, Lists::write(chunk))?;
                let seen = b.ask(&message)?;
                // With krb5 it is eligible.
                data(&seen, LINK, service == NoService)?;
                check(
                    (total(&seen.lists.writes[0]) > 0) == (service == NoService),
                    || format!("{:x?}", seen.lists.writes[0]),
                )?;
                Ok(seen)
            },
        ),
        full(
            format!("P27.{flavor}.null"),
            "2203 5.3",
            format!("{flavor}: NULL, without chunks and with a Reply chunk"),
            OK,
            move |b| {
                let message = inline(b, Call::null(), service, Lists::default())?;
                let seen = b.ask(&message)?;
                check(seen.outcome == Outcome::Ok, || seen.describe())?;
                let chunk = b.chunk(&[40, 1000])?;
                let message = inline(b, Call::null(), service, Lists::reply(chunk))?;
                b.ask(&message)
            },
        ),
    ]
}

/// A context made on this connection; each call has a Reply chunk if wanted (Solaris).
fn establish(b: &mut Bench<'_>, chunk: bool) -> Result<Rc<Context>, String> {
    let service = b.world.gss.clone().ok_or("no --gss")?;
    let made = Context::establish(&service, |call| {
        let lists = reply_lists(b, chunk)?;
        let call = b.number(call);
        let seen = b.ask(&Message::inline(&call, lists))?;
        check(seen.outcome == Outcome::Ok, || seen.describe())?;
        Ok((call.xid, seen.stream))
    })?;
    Ok(Rc::new(made))
}

fn reply_lists(b: &mut Bench<'_>, chunk: bool) -> Result<Lists, String> {
    Ok(if chunk {
        Lists::reply(b.chunk(&[1000, 3096])?)
    } else {
        Lists::default()
    })
}

/// INIT, data of each service, DESTROY, and data again.
fn life(b: &mut Bench<'_>, chunk: bool) -> Result<Seen, String> {
    // The server's first context may take longer than a connection lives.
    b.world.context()?;
    let context = establish(b, chunk)?;
    for service in [NoService, Integrity, Privacy] {
        let call = b.number(read_call(b, false, 3, 1000));
        let (call, guard) = context.protect(call, service)?;
        let lists = reply_lists(b, chunk)?;
        let seen = b.ask(&Message::inline(&call, lists).guarded(guard))?;
        data(&seen, &pattern(3, 1000), false)?;
    }
    let (call, guard) = context.destroy(b.number(Call::null()))?;
    let lists = reply_lists(b, chunk)?;
    let seen = b.ask(&Message::inline(&call, lists).guarded(guard))?;
    check(seen.outcome == Outcome::Ok, || {
        format!("DESTROY: {}", seen.describe())
    })?;
    let (call, guard) = context.protect(b.number(Call::null()), NoService)?;
    let lists = reply_lists(b, chunk)?;
    let after = b.ask(&Message::inline(&call, lists).guarded(guard))?;
    check(
        after.outcome != Outcome::RpcError || after.status == Some(CREDENTIAL),
        || format!("after DESTROY: {}", after.describe()),
    )?;
    Ok(after)
}

fn contexts() -> Vec<Case> {
    vec![
        // A server may drop the connection of a client whose context it does not know.
        full(
            "P27.life",
            "2203 5.2",
            "INIT by NULL calls, data, DESTROY, and data for what is no context any more",
            RPCERR | CLOSE,
            |b| life(b, false),
        ),
        full(
            "P27.lifey",
            "2203 5.2",
            "the same, each call with a Reply chunk",
            RPCERR | CLOSE,
            |b| life(b, true),
        ),
    ]
}

/// Protected wrongly: RPC has to refuse it, or drop it.
fn broken() -> Vec<Case> {
    vec![
        full(
            "P27.forged",
            "2203 5.3.3.1",
            "a call whose checksum is another's",
            RPCERR | CLOSE,
            |b| {
                let root = b.world.files.root.clone();
                let (mut call, guard) = protect(b, nfs3::getattr(&root), NoService)?;
                *call.auth.last_mut().ok_or("no verifier")? ^= 1;
                let seen = b.ask(&Message::inline(&call, Lists::default()).guarded(guard))?;
                check(
                    seen.outcome != Outcome::RpcError || seen.status == Some(CREDENTIAL),
                    || seen.describe(),
                )?;
                Ok(seen)
            },
        ),
        full(
            "P27.again",
            "2203 5.3.3.1",
            "a call, and over and over one with its number: to be dropped, or the connection closed",
            DROP | CLOSE,
            again,
        ),
        full(
            "P26.spoilt",
            "2203 5.3.3.4.2",
            "krb5i: WRITE in a Position-Zero chunk, a byte of it changed",
            RPCERR,
            |b| spoilt(b, Integrity),
        ),
        full(
            "P26.spoiltp",
            "2203 5.3.3.4.3",
            "krb5p: WRITE in a Position-Zero chunk, a byte of it changed",
            RPCERR,
            |b| spoilt(b, Privacy),
        ),
    ]
}

/// A number that was used before, on one connection as long as the server drops it: more often
/// than it grants credits, as dropped calls have to give theirs back. sunrpc of Linux 7.3 closes
/// the connection instead, so each round may have to begin with another.
fn again(b: &mut Bench<'_>) -> Result<Seen, String> {
    let grant = granted(b)?;
    let root = b.world.files.root.clone();
    let (call, guard) = protect(b, nfs3::getattr(&root), NoService)?;
    let message = Message::inline(&call, Lists::default()).guarded(guard);
    setup(b.ask(&message).and_then(|first| succeeded(&first)))?;
    let (mut drops, mut closes) = (0, 0);
    let mut seen = loop {
        let seen = b.ask(&message)?;
        match seen.outcome {
            Outcome::Drop => drops += 1,
            Outcome::Close => {
                closes += 1;
                b.reconnect(&Options::default())?;
            }
            _ => return Ok(seen),
        }
        b.evidence.clear();
        if closes == 24 || drops > grant {
            break seen;
        }
    };
    // The context is not to blame.
    let fresh = inline(b, nfs3::getattr(&root), NoService, Lists::default())?;
    let last = b.ask(&fresh)?;
    succeeded(&last).map_err(|e| format!("a number of its own behind them: {e}"))?;
    seen.note = format!("{drops} times dropped, {closes} times closed");
    Ok(seen)
}

/// Arguments that cannot be read (RFC 2203, section 5.3.3.4.2, and RFC 5531).
const GARBAGE: Status = Status::Accepted(4, None);

fn spoilt(b: &mut Bench<'_>, service: Service) -> Result<Seen, String> {
    let file = b.world.fresh_file()?;
    let (call, guard) = protect(b, write_call(false, &file, &pattern(1, 20000)), service)?;
    let mut stream = call.encode();
    let middle = stream.len() / 2;
    stream[middle] ^= 1;
    let chunk = CUTS[1].chunk(b, stream.len(), Some(&stream))?;
    let seen = b.ask(&Message::long(&call, Lists::read(0, chunk)).guarded(guard))?;
    stored(b, &file, &[])?;
    // RFC 2203 asks for GARBAGE_ARGS; sunrpc of Linux 7.3 makes AUTH_BADCRED of that before any
    // transport sees it (svc_process_common).
    let right = [GARBAGE, Status::AuthError(1)].map(Some);
    check(right.contains(&seen.status), || seen.describe())?;
    Ok(seen)
}

/// What is RPCSEC_GSS's own is not to be in chunks.
fn material() -> Vec<Case> {
    vec![
        full(
            "R43",
            "8166 8.2.2",
            "the token of an INIT call in a Read chunk",
            OK | EC | RPCERR,
            |b| {
                let service = b.world.gss.clone().ok_or("no --gss")?;
                let call = b.number(first_call(&service)?);
                let (stream, token) = call.reduced(0);
                let chunk = b.source(&token, &[token.len()])?;
                let header = Header::new(call.xid, MSG, Lists::read(call.item(0).0 as u32, chunk));
                let seen = b.ask(&Message::new(header, &stream, call.kind))?;
                if seen.outcome == Outcome::Ok {
                    let major = Step::decode(call.xid, &seen.stream)?.major;
                    check(major > 1, || "the token was taken".into())?;
                }
                refused(&seen)?;
                Ok(seen)
            },
        ),
        full(
            "R43.verifier",
            "8166 8.2.2",
            "krb5: the checksum of a call in a Read chunk",
            EC | RPCERR,
            |b| {
                let root = b.world.files.root.clone();
                let (mut call, guard) = protect(b, nfs3::getattr(&root), NoService)?;
                let len = checksum_len(&call)?;
                call.args = [call.auth.split_off(call.auth.len() - len), call.args].concat();
                call.items = vec![(0, len)];
                let (stream, checksum) = call.reduced(0);
                let chunk = b.source(&checksum, &[len])?;
                let header = Header::new(call.xid, MSG, Lists::read(call.item(0).0 as u32, chunk));
                let seen = b.ask(&Message::new(header, &stream, call.kind).guarded(guard))?;
                refused(&seen)?;
                Ok(seen)
            },
        ),
    ]
}

/// Bytes of the checksum in the verifier of a call: those behind the credential, a flavor and a length.
fn checksum_len(call: &Call) -> Result<usize, String> {
    let mut words = Words::new(&call.auth);
    words.word()?;
    words.opaque()?;
    words.word()?;
    let len = words.opaque()?.len();
    check(len % 4 == 0, || format!("a checksum of {len} bytes"))?;
    Ok(len)
}
