// SPDX-License-Identifier: GPL-2.0
//! What the server's machine, or the way to it, does meanwhile: the link, nfsd, the
//! device, memory, upcalls (R37, M136, M142, M146, M148). Each needs hooks.

use std::time::{Duration, Instant};

use super::{
    flow::{all_ok, granted},
    length::null,
    read_list::long,
    write_list::{good_read, read_call},
};
use crate::{
    answers::Next,
    bench::Bench,
    case::{check, full, skip, Case},
    connection::Options,
    explain::Seen,
    frame::{Header, Lists, Segment, MSG},
    message::Message,
    nfs3,
    outcome::{Outcome, CLOSE, OK},
    rpc::Call,
    world::{pattern, BIG},
};

/// WRITEs under way at once, if as many are granted.
const DEPTH: usize = 32;

/// WRITEs of 1 MiB, all from one region: for each answer another one is sent.
struct Busy {
    call: Call,
    segment: Segment,
    waiting: Vec<Message>,
    answered: usize,
}

impl Busy {
    fn new(b: &mut Bench<'_>, options: &Options) -> Result<Self, String> {
        b.reconnect(options)?;
        let grant = granted(b)?;
        let file = b.world.fresh_file()?;
        let data = pattern(0, BIG);
        let region = b.region(BIG)?;
        b.fill(region, 0, &data);
        let mut busy = Self {
            call: nfs3::write(&file, 0, &data),
            segment: b.segment(region, 0, BIG),
            waiting: Vec::new(),
            answered: 0,
        };
        for _ in 0..DEPTH.min(grant) {
            busy.post(b)?;
        }
        Ok(busy)
    }

    fn post(&mut self, b: &mut Bench<'_>) -> Result<(), String> {
        self.call.xid = b.xid();
        let lists = Lists::read(self.call.item(0).0 as u32, vec![self.segment]);
        let header = Header::new(self.call.xid, MSG, lists);
        let message = Message::new(header, &self.call.reduced(0).0, self.call.kind);
        let posted = b.post(&message);
        self.waiting.push(message);
        posted
    }

    /// One answer, or how the connection ended; Hang if nothing came until then.
    fn step(&mut self, b: &mut Bench<'_>, until: Instant) -> Result<Option<Outcome>, String> {
        let bytes = match b.next_message(until)? {
            Next::Message(bytes) => bytes,
            Next::Silence => return Ok(Some(Outcome::Hang)),
            Next::Closed => return Ok(Some(Outcome::Close)),
            Next::Broken(_) => return Ok(Some(Outcome::Broken)),
        };
        let index = self
            .waiting
            .iter()
            .position(|m| bytes.starts_with(&m.xid.to_be_bytes()))
            .ok_or("an answer to no call")?;
        let message = self.waiting.swap_remove(index);
        let seen = b.understand(&bytes, &message)?;
        check(seen.outcome == Outcome::Ok, || seen.describe())?;
        self.answered += 1;
        Ok(None)
    }

    /// Run a hook. How the connection ended meanwhile, if it did.
    fn during(&mut self, b: &mut Bench<'_>, hook: &str) -> Result<Option<Outcome>, String> {
        let mut running = b.world.start_hook(hook)?;
        let mut end = None;
        while !running.done()? {
            if end.is_some() {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            match self.step(b, Instant::now() + Duration::from_millis(10))? {
                // The connection may be about to end: the next step shows it.
                None => drop(self.post(b)),
                Some(Outcome::Hang) => {}
                over => end = over,
            }
            b.evidence.clear();
        }
        b.note("answered", self.answered.to_string());
        check(!self.waiting.is_empty(), || "nothing was under way".into())?;
        Ok(end)
    }

    /// Wait for the answers that are missing, or the end of the connection.
    fn rest(&mut self, b: &mut Bench<'_>) -> Result<Option<Outcome>, String> {
        while !self.waiting.is_empty() {
            let until = Instant::now() + b.world.limit();
            match self.step(b, until)? {
                None => {}
                Some(Outcome::Hang) => {
                    let missing = self.waiting.len();
                    b.hung = true;
                    return Err(format!(
                        "HANG: {missing} calls were not answered, and the connection is open"
                    ));
                }
                end => return Ok(end),
            }
        }
        Ok(None)
    }
}

/// How work under way ended by itself: all answered (None), or the connection did.
fn end(b: &mut Bench<'_>, sent: &[Message], wanted: usize) -> Result<Option<Outcome>, String> {
    let end = b.answers(sent, wanted)?.end;
    check(end != Some(Outcome::Hang), || {
        "HANG: not all calls were answered, and the connection is open".into()
    })?;
    Ok(end)
}

/// The server is as before: a call and a READ on a new connection.
fn works(b: &mut Bench<'_>) -> Result<Seen, String> {
    b.reconnect(&Options::default())?;
    let call = read_call(b, 0, 1000);
    let seen = b.ask(&Message::inline(&call, Lists::default()))?;
    good_read(&seen, 0, 1000, false)?;
    Ok(seen)
}

fn with_end(seen: Seen, end: Option<Outcome>) -> Seen {
    let note = end.map_or("the connection lived on", |_| "the connection ended");
    Seen {
        note: note.into(),
        ..seen
    }
}

/// Take the link away from under WRITEs.
fn link_down(b: &mut Bench<'_>, retry: u8, outage: Duration) -> Result<Seen, String> {
    let options = Options {
        retry,
        ..Options::default()
    };
    let mut busy = Busy::new(b, &options)?;
    let early = busy.during(b, "link-down");
    std::thread::sleep(outage);
    b.world.hook("link-up")?;
    let mut end = early?;
    // rdma_cm of either side may have given up other connections, too, as their neighbour was gone.
    b.world.reopen()?;
    if end.is_none() {
        // Whichever side gave up, the other learns of it by this at the latest.
        let last = null(b);
        b.post(&last)?;
        busy.waiting.push(last);
        end = busy.rest(b)?;
    }
    Ok(with_end(works(b)?, end))
}

/// Calls that nfsd has to put aside, as rpc.mountd does not say what they may.
fn deferred(b: &mut Bench<'_>, leave: bool) -> Result<Seen, String> {
    b.reconnect(&Options::default())?;
    let count = granted(b)?.min(24);
    let root = b.world.files.root.clone();
    let mut sent = Vec::new();
    for i in 0..count {
        let call = b.number(nfs3::getattr(&root));
        sent.push(match i % 4 {
            0 => Message::inline(&call, Lists::default()),
            1 => Message::inline(&call, Lists::write(b.chunk(&[64])?)),
            2 => Message::inline(&call, Lists::reply(b.chunk(&[40, 1000])?)),
            _ => long(b, &call, &[40, call.encode().len() - 40])?,
        });
    }
    b.world.hook("upcalls-stop")?;
    let waited = wait_deferred(b, &sent, leave);
    b.world.hook("upcalls-start")?;
    waited?;
    if !leave {
        all_ok(&b.answers(&sent, sent.len())?)?;
    }
    works(b)
}

fn wait_deferred(b: &mut Bench<'_>, sent: &[Message], leave: bool) -> Result<(), String> {
    sent.iter().try_for_each(|m| b.post(m))?;
    // A thread waits for 5 seconds before it puts a call aside.
    std::thread::sleep(Duration::from_secs(7));
    let answered = b.arrived(sent)?;
    check(answered == 0, || format!("{answered} calls did not wait"))?;
    if leave {
        b.connection()?.disconnect();
    }
    Ok(())
}

/// A hook that ends all connections, with WRITEs under way; another undoes it.
fn stopped(b: &mut Bench<'_>, stop: &str, start: &str) -> Result<Seen, String> {
    let mut busy = Busy::new(b, &Options::default())?;
    let end = busy.during(b, stop);
    let end = match end {
        Ok(None) => busy.rest(b),
        other => other,
    };
    b.close()?;
    b.world.hook(start)?;
    b.world.reopen()?;
    check(end?.is_some(), || "the connection is still there".into())?;
    works(b)
}

/// Memory for the server's threads is short while calls come.
fn no_memory(b: &mut Bench<'_>) -> Result<Seen, String> {
    let mut closed = 0;
    for _ in 0..10 {
        b.reconnect(&Options::default())?;
        let count = granted(b)?.min(24);
        let root = b.world.files.root.clone();
        let mut sent = Vec::new();
        while sent.len() < count {
            sent.push(null(b));
            let call = b.number(nfs3::getattr(&root));
            sent.push(Message::inline(&call, Lists::default()));
            let chunk = b.chunk(&[4096])?;
            let call = read_call(b, 0, 4096);
            sent.push(Message::inline(&call, Lists::write(chunk)));
        }
        sent.truncate(count);
        b.world.hook("memory-short")?;
        let posted = sent.iter().try_for_each(|m| b.post(m));
        let end = end(b, &sent, sent.len());
        b.world.hook("memory-ample")?;
        posted?;
        closed += u32::from(end?.is_some());
        b.evidence.clear();
    }
    let mut seen = works(b)?;
    if closed == 0 {
        return Ok(skip("memory was never so short that a call failed"));
    }
    seen.note = format!("{closed} of 10 connections were closed");
    Ok(seen)
}

fn idle(b: &mut Bench<'_>) -> Result<Seen, String> {
    b.reconnect(&Options::default())?;
    b.must(nfs3::getattr(&b.world.files.root.clone()))?;
    let until = Instant::now() + b.world.idle;
    let closed = match b.next_message(until)? {
        Next::Silence => false,
        Next::Closed => true,
        Next::Broken(text) => return Err(text),
        Next::Message(_) => return Err("a message that nobody asked for".into()),
    };
    // The others were idle, too.
    b.world.reopen()?;
    if !closed {
        return b.succeed(Call::null());
    }
    works(b)?;
    Ok(Seen::only(Outcome::Close))
}

pub fn cases() -> Vec<Case> {
    vec![
        full(
            "R37",
            "8166 4.5.4",
            "calls while the server's threads get no memory: each is answered or the connection closed",
            OK,
            no_memory,
        )
        .needs(&["memory-short", "memory-ample"]),
        full(
            "M136",
            "8166 3.1",
            "link down with WRITEs of 1 MiB under way, for longer than the server repeats",
            OK,
            |b| link_down(b, 0, Duration::from_secs(8)),
        )
        .needs(&["link-down", "link-up"]),
        full(
            "M136b",
            "8166 3.1",
            "link down with WRITEs of 1 MiB under way, for a moment",
            OK,
            |b| link_down(b, 7, Duration::from_millis(500)),
        )
        .needs(&["link-down", "link-up"]),
        full(
            "M142",
            "8166 3.1",
            "disconnect with 24 calls that wait for an upcall of nfsd",
            OK,
            |b| deferred(b, true),
        )
        .needs(&["upcalls-stop", "upcalls-start"]),
        full(
            "M142b",
            "8166 4.3",
            "24 calls that wait for an upcall of nfsd, with chunks and without",
            OK,
            |b| deferred(b, false),
        )
        .needs(&["upcalls-stop", "upcalls-start"]),
        full(
            "M146",
            "8166 3.1",
            "nfsd stopped and its transport unloaded with WRITEs of 1 MiB under way",
            OK,
            |b| stopped(b, "nfsd-stop", "nfsd-start"),
        )
        .needs(&["nfsd-stop", "nfsd-start"]),
        full(
            "M146b",
            "8166 3.1",
            "the server's device removed with WRITEs of 1 MiB under way",
            OK,
            |b| stopped(b, "device-remove", "device-add"),
        )
        .needs(&["device-remove", "device-add"]),
        full(
            "M148",
            "8166 3.1",
            "a connection idle for as long as --idle says",
            OK | CLOSE,
            idle,
        )
        .needs(&["--idle"]),
    ]
}
