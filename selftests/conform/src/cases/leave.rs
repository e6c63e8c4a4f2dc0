// SPDX-License-Identifier: GPL-2.0
//! Clients that leave with work under way: with a word of the connection manager, with nothing but
//! a queue pair in error (the server has to find out), or as a process that is killed.

use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    net::SocketAddr,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use crate::{
    bench::Bench,
    case::check,
    connection::{Connection, Event, Options},
    explain::Seen,
    frame::{hex, unhex, Header, Lists, Segment, Words, MSG},
    memory::Region,
    message::Message,
    nfs3,
    rpc::Call,
    world::{pattern, BIG},
};

use super::write_list::{good_read, read_call};

/// What a leaving client has under way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// One WRITE of 1 MiB.
    Write,
    /// 16 WRITEs of 64 KiB.
    Writes,
    /// One READ of 1 MiB.
    Read,
    /// 32 READs of 256 KiB.
    Reads,
    /// 64 NULL calls, or as many as are granted.
    Nulls,
}

const WORK: [(&str, Work); 5] = [
    ("write", Work::Write),
    ("writes", Work::Writes),
    ("read", Work::Read),
    ("reads", Work::Reads),
    ("nulls", Work::Nulls),
];

/// How it leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    Disconnect,
    Break,
    Kill,
}

/// The XID of a client's first call.
const FIRST: u32 = 0x1b00_0000;

/// The files that the work is on.
struct Files {
    own: Vec<u8>,
    big: Vec<u8>,
}

/// A client, its memory and what it has to hold but for what the server may write.
struct Client {
    connection: Connection,
    regions: Vec<(Region, Vec<u8>)>,
    writable: Vec<Segment>,
    /// Calls that the server has.
    sent: usize,
    answered: usize,
    closed: bool,
}

/// How long the server repeats what the client does not acknowledge: twice is enough.
fn options() -> Options {
    Options {
        receives: 140,
        receive_size: 4096,
        retry: 1,
        ..Options::default()
    }
}

impl Client {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            regions: Vec::new(),
            writable: Vec::new(),
            sent: 0,
            answered: 0,
            closed: false,
        }
    }

    fn next(&mut self, until: Instant) -> Option<Event> {
        let event = self.connection.next(until)?;
        match event {
            Event::Received { .. } => self.answered += 1,
            Event::Sent => self.sent += 1,
            Event::Disconnected => self.closed = true,
            Event::Failed(_) | Event::Other(_) => {}
        }
        Some(event)
    }

    /// Wait until the server has one of the calls behind the first.
    fn begin(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        while self.sent < 2 && !self.closed && self.next(until).is_some() {}
    }

    /// Break the queue pair. Whether the server has something left to say, so that it finds out.
    fn break_queue(&mut self) -> bool {
        self.connection.break_queue();
        while self.next(Instant::now()).is_some() {}
        self.sent > self.answered
    }

    fn memory(&mut self, len: usize, data: &[u8]) -> io::Result<Segment> {
        let mut region = self.connection.region(len)?;
        region.fill(0, data);
        let segment = region.segment(0, len);
        let before = region.snapshot();
        self.regions.push((region, before));
        Ok(segment)
    }

    /// A first call, whose reply grants what may be under way.
    fn granted(&mut self, limit: Duration) -> io::Result<u32> {
        let call = Message::inline(&Call::null().xid(FIRST), Lists::default());
        self.connection.send(&call.bytes)?;
        let until = Instant::now() + limit;
        let bytes = loop {
            match self.next(until) {
                Some(Event::Received { bytes, .. }) => break bytes,
                Some(Event::Sent) => {}
                Some(other) => return Err(io::Error::other(format!("{other:?}"))),
                None => return Err(io::Error::other("HANG: no answer to the first call")),
            }
        };
        let mut words = Words::new(&bytes);
        let mut next = || words.word().map_err(io::Error::other);
        match (next()?, next()?, next()?) {
            (FIRST, 1, grant) if grant > 0 => Ok(grant),
            _ => Err(io::Error::other("no answer to the first call")),
        }
    }

    fn post(&mut self, work: Work, files: &Files, limit: Duration) -> io::Result<()> {
        let grant = self.granted(limit)?;
        let (count, len) = match work {
            Work::Write | Work::Read => (1, BIG),
            Work::Writes => (16, 65536),
            Work::Reads => (32, 262_144),
            Work::Nulls => (64, 0),
        };
        let mut messages = Vec::new();
        for i in 0..count.min(grant) {
            let xid = FIRST + 1 + i;
            messages.push(match work {
                Work::Nulls => Message::inline(&Call::null().xid(xid), Lists::default()),
                Work::Read | Work::Reads => {
                    let segment = self.memory(len, &[])?;
                    self.writable.push(segment);
                    let call = nfs3::read(&files.big, 0, len as u32).xid(xid);
                    Message::inline(&call, Lists::write(vec![segment]))
                }
                Work::Write | Work::Writes => {
                    let data = pattern(7, len);
                    let segment = self.memory(len, &data)?;
                    let call = nfs3::write(&files.own, 0, &data).xid(xid);
                    let half = Segment {
                        length: segment.length / 2,
                        ..segment
                    };
                    let rest = Segment {
                        offset: half.offset + u64::from(half.length),
                        length: segment.length - half.length,
                        ..half
                    };
                    let lists = Lists::read(call.item(0).0 as u32, vec![half, rest]);
                    Message::new(Header::new(xid, MSG, lists), &call.reduced(0).0, call.kind)
                }
            });
        }
        messages
            .iter()
            .try_for_each(|m| self.connection.send(&m.bytes))
    }

    /// Nothing but what the server was offered has changed.
    fn intact(&self) -> Result<(), String> {
        for (region, before) in &self.regions {
            let at = region.spoilt(before, &self.writable);
            check(at.is_none(), || {
                format!("memory was written at offset {at:?}")
            })?;
        }
        Ok(())
    }
}

/// Leave with work under way, at moments that differ from round to round.
pub fn leave(b: &mut Bench<'_>, work: Work, how: Leave, rounds: u32) -> Result<Seen, String> {
    b.close()?;
    let mut broken = Vec::new();
    for round in 0..rounds {
        let files = Files {
            own: b.world.fresh_file()?.to_vec(),
            big: b.world.files.big.to_vec(),
        };
        let wait = b.world.unit * round / 4;
        if how == Leave::Kill {
            killed(b.world.server, work, &files, wait)?;
        } else {
            let mut client = Client::new(b.world.connect(&options())?);
            let limit = b.world.limit();
            let posted = client.post(work, &files, limit);
            posted.map_err(|e| e.to_string())?;
            if how == Leave::Break && round > 0 {
                client.begin(limit);
            }
            std::thread::sleep(wait);
            if how == Leave::Break {
                if client.break_queue() {
                    broken.push(client);
                } else {
                    client.intact()?;
                }
            } else {
                client.connection.disconnect();
                client.intact()?;
            }
        }
        // None of the server's threads may be stuck with it.
        b.world.check_control()?;
        if matches!(work, Work::Write | Work::Writes) {
            let whole = pattern(7, if work == Work::Write { BIG } else { 65536 });
            all_or_nothing(b, &files.own, &whole)?;
        }
    }
    let all = broken.len();
    let open = broken.iter_mut().filter(|c| !c.closed);
    let open: Vec<_> = open.map(|c: &mut Client| &mut c.connection).collect();
    let closed = all - open.len() + parked(open.into_iter());
    broken.iter().try_for_each(Client::intact)?;
    drop(broken);
    check(how != Leave::Break || all > 0, || {
        "no client left anything under way".into()
    })?;
    check(closed == all, || {
        format!("the server closed {closed} of {all} connections whose clients are silent")
    })?;
    b.reconnect(&Options::default())?;
    let call = read_call(b, 0, 1000);
    let mut seen = b.ask(&Message::inline(&call, Lists::default()))?;
    good_read(&seen, 0, 1000, false)?;
    if how == Leave::Break {
        seen.note = format!("{all} of {rounds} had calls under way, and were closed by the server");
    }
    Ok(seen)
}

/// A WRITE that may still be executed stores all of its data, or has come to nothing.
fn all_or_nothing(b: &mut Bench<'_>, file: &[u8], whole: &[u8]) -> Result<(), String> {
    let mut stored = Vec::new();
    for _ in 0..40 {
        stored = b.world.content(file, BIG as u32)?;
        if stored.is_empty() || stored == whole {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let len = stored.len();
    Err(format!("{len} bytes of a WRITE were stored, or others"))
}

/// Wait until the server has closed connections that are silent: it finds out when it has something
/// to say, and has repeated it. How many it has closed.
pub fn parked<'a>(connections: impl Iterator<Item = &'a mut Connection>) -> usize {
    let mut open: Vec<_> = connections.collect();
    let all = open.len();
    let until = Instant::now() + Duration::from_secs(12);
    while !open.is_empty() && Instant::now() < until {
        open.retain_mut(|c| !c.ends(Instant::now()));
        std::thread::sleep(Duration::from_millis(10));
    }
    all - open.len()
}

const OPTION: &str = "--leaver";

/// A process of its own that is killed with that work under way.
fn killed(server: SocketAddr, work: Work, files: &Files, wait: Duration) -> Result<(), String> {
    let text = |e: io::Error| format!("a client to be killed: {e}");
    let name = WORK.iter().find(|(_, w)| *w == work).map_or("", |w| w.0);
    let mut child = Command::new(env::current_exe().map_err(text)?)
        .args([OPTION, &server.to_string(), name])
        .args([hex(&files.own), hex(&files.big)])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(text)?;
    let mut said = String::new();
    let heard = match child.stdout.take() {
        Some(stdout) => BufReader::new(stdout).read_line(&mut said).map_err(text),
        None => Ok(0),
    };
    std::thread::sleep(wait);
    // SIGKILL: the kernel closes what it had open.
    child.kill().map_err(text)?;
    child.wait().map_err(text)?;
    heard?;
    check(said.trim() == "under way", || {
        format!("a client to be killed said {said:?}")
    })
}

/// What main() has to run instead of cases, if this process is one that killed() has started.
pub fn helper() -> Option<ExitCode> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [option, server, work, own, big] = &arguments[..] else {
        return None;
    };
    if option != OPTION {
        return None;
    }
    let done = work_on(server, work, own, big);
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            println!("{text}");
            ExitCode::from(2)
        }
    })
}

fn work_on(server: &str, work: &str, own: &str, big: &str) -> Result<(), String> {
    let server = server.parse().map_err(|e| format!("{server}: {e}"))?;
    let work = WORK.iter().find(|(name, _)| *name == work);
    let (_, work) = work.ok_or("no such work")?;
    let files = Files {
        own: unhex(own),
        big: unhex(big),
    };
    let limit = Duration::from_secs(30);
    let connection = Connection::connect(server, &options(), limit).map_err(|e| e.to_string())?;
    let mut client = Client::new(connection);
    let posted = client.post(*work, &files, limit);
    posted.map_err(|e| e.to_string())?;
    println!("under way");
    io::stdout().flush().map_err(|e| e.to_string())?;
    std::thread::sleep(Duration::from_secs(60));
    Ok(())
}
