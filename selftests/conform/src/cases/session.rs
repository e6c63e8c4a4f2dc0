// SPDX-License-Identifier: GPL-2.0
//! A v4.1 session with callbacks, for cases of the reverse direction.
//!
//! What became of a callback's answer shows in what the server does next. If it was taken, the
//! next callback has the same slot and the next number (RFC 8881, section 2.10.6.1); if not, a
//! later SEQUENCE has one of the flags of a backchannel that is out of order (section 18.46.3).

use std::time::{Duration, Instant};

use super::replay::session_of;
use crate::{
    bench::Bench,
    callback,
    case::{check, setup, skip},
    connection::Options,
    explain::{unexplained, Seen},
    frame::{words, Words},
    handle::Handle,
    message::Message,
    nfs3,
    nfs4::Compound,
    outcome::Outcome,
    rpc::{self, Call, Status},
};

/// CB_PATH_DOWN, CB_PATH_DOWN_SESSION and BACKCHANNEL_FAULT.
pub const DOWN: u32 = 0x1 | 0x200 | 0x400;

/// A reply of the reverse direction with this XID and credit word.
pub fn reply(xid: u32, credits: u32, payload: &[u32]) -> Message {
    let mut all = vec![xid, 1, credits, 0, 0, 0, 0];
    all.extend_from_slice(payload);
    Message::raw(words(&all))
}

pub fn good_reply(xid: u32) -> Message {
    reply(xid, 2, &[xid, 1, 0, 0, 0, 0])
}

/// A callback that waits for its reply.
pub struct Callback {
    pub xid: u32,
    pub call: callback::Callback,
    pub came: Instant,
}

impl Callback {
    pub fn right(&self) -> Message {
        self.granting(2)
    }

    pub fn granting(&self, credits: u32) -> Message {
        reply(self.xid, credits, &[self.xid, 1, 0, 0, 0, 0]).and(&self.call.results)
    }

    /// Slot and number.
    pub fn place(&self) -> (u32, u32) {
        (self.call.slot, self.call.number)
    }
}

/// A session with a backchannel on the bench's connection.
pub struct Session {
    id: [u8; 16],
    client: u64,
    number: u32,
    /// The longest callback.
    back: u32,
    /// How long the server waits for the answer to a callback.
    pub patience: Duration,
    /// An answer came when the server may have given its callback up: it shows nothing.
    late: bool,
}

impl Session {
    /// On a new connection of these settings; None if the server gives no backchannel.
    pub fn new(b: &mut Bench<'_>, options: &Options, back: u32) -> Result<Option<Self>, String> {
        Self::with_slots(b, options, back, 2)
    }

    /// The same with so many slots for callbacks.
    pub fn with_slots(
        b: &mut Bench<'_>,
        options: &Options,
        back: u32,
        slots: u32,
    ) -> Result<Option<Self>, String> {
        b.reconnect(options)?;
        let (id, client, seen) = session_of(b, 1, 2, (back, slots))?;
        if seen.results.flags & 2 == 0 {
            return Ok(None);
        }
        let mut session = Self {
            id,
            client,
            number: 0,
            back,
            patience: patience(b)?,
            late: false,
        };
        let start = session.begin();
        b.must(start.reclaim_complete().call())?;
        Ok(Some(session))
    }

    /// A COMPOUND with the next number of slot 0.
    fn begin(&mut self) -> Compound {
        self.number += 1;
        Compound::new(1).sequence(&self.id, self.number, 0, false)
    }

    /// A file whose delegation we have; None if the server gives none.
    pub fn delegated(&mut self, b: &mut Bench<'_>) -> Result<Option<Handle>, String> {
        let until = Instant::now() + b.world.grace;
        loop {
            let file = b.world.fresh_file()?;
            let open = self.begin().handle(&file).open(self.client, b"opener");
            let seen = b.succeed(open.call())?;
            check(seen.results.status == 0, || {
                format!("OPEN: {}", seen.describe())
            })?;
            if matches!(seen.results.number, 1 | 2) {
                return Ok(Some(file));
            }
            if Instant::now() > until {
                // Not again for each case.
                b.world.grace = Duration::ZERO;
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// The recall of a delegation; None if the server gives none.
    pub fn recall(&mut self, b: &mut Bench<'_>) -> Result<Option<Callback>, String> {
        match setup(self.delegated(b))? {
            Some(file) => self.conflict(b, &file).map(Some),
            None => Ok(None),
        }
    }

    /// A writer that the server has to keep waiting, and the callback that it then makes.
    fn conflict(&self, b: &mut Bench<'_>, file: &[u8]) -> Result<Callback, String> {
        b.world.tcp.call(nfs3::write(file, 0, b"conflict"))?;
        let until = Instant::now() + b.world.limit();
        while b.reverse.is_empty() {
            b.succeed(Call::null())?;
            check(Instant::now() < until, || {
                "a delegation is to be recalled, and no callback comes".into()
            })?;
        }
        let (came, bytes) = b.reverse.remove(0);
        self.understand(came, &bytes)
    }

    fn understand(&self, came: Instant, bytes: &[u8]) -> Result<Callback, String> {
        check(bytes.len() - 28 <= self.back as usize, || {
            let (len, most) = (bytes.len() - 28, self.back);
            format!("a callback of {len} bytes, at most {most} may come")
        })?;
        let call = callback::Callback::parse(bytes)?;
        check(call.session == self.id, || {
            "a callback without the session".into()
        })?;
        Ok(Callback {
            xid: call.xid,
            call,
            came,
        })
    }

    /// All that have come.
    pub fn callbacks(&self, b: &mut Bench<'_>) -> Result<Vec<Callback>, String> {
        let came = std::mem::take(&mut b.reverse);
        let understood = came
            .iter()
            .map(|(came, bytes)| self.understand(*came, bytes));
        understood.collect()
    }

    /// Whether the server may have given this callback up; remembered.
    pub fn gives_up(&mut self, callback: &Callback) -> bool {
        self.late |= callback.came.elapsed() > self.patience * 3 / 4;
        self.late
    }

    /// sr_status_flags of one more SEQUENCE.
    pub fn flags(&mut self, b: &mut Bench<'_>) -> Result<u32, String> {
        let seen = b.succeed(self.begin().call())?;
        check(seen.results.status == 0, || {
            format!("SEQUENCE: {}", seen.describe())
        })?;
        Ok(seen.results.flags)
    }

    /// The answer to this callback was taken: another one shows it, which is answered, too.
    pub fn done(&mut self, b: &mut Bench<'_>, first: &Callback) -> Result<(), String> {
        if self.gives_up(first) {
            return Ok(());
        }
        b.succeed(Call::null())?;
        std::thread::sleep(b.world.unit * 20);
        let file = self.delegated(b)?.ok_or("no delegation any more")?;
        let next = self.conflict(b, &file)?;
        let (was, is) = (first.place(), next.place());
        check(is == (was.0, was.1 + 1), || {
            format!("the answer was not taken: slot and number {is:?} after {was:?}")
        })?;
        b.post(&next.right())?;
        for _ in 0..20 {
            let flags = self.flags(b)?;
            check(flags & DOWN == 0, || {
                format!("the answer was right, SEQUENCE has flags {flags:#x}")
            })?;
        }
        Ok(())
    }

    /// The server says that the backchannel is out of order, within so much time; how long it took.
    pub fn down(&mut self, b: &mut Bench<'_>, limit: Duration) -> Result<Duration, String> {
        let begin = Instant::now();
        loop {
            let flags = self.flags(b)?;
            if flags & DOWN != 0 {
                return Ok(begin.elapsed());
            }
            check(begin.elapsed() < limit, || {
                format!("{limit:?} after a callback that failed, SEQUENCE has flags {flags:#x}")
            })?;
            std::thread::sleep(b.world.unit * 10);
        }
    }

    /// The session is to be let go, whatever became of its callbacks. What came meanwhile is
    /// callbacks of this session and nothing else.
    pub fn end(self, b: &mut Bench<'_>) -> Result<Seen, String> {
        let seen = b.succeed(Compound::new(1).destroy_session(&self.id).call())?;
        self.callbacks(b).map_err(unexplained)?;
        Ok(match self.late {
            true => skip("late: the server may have given a callback up"),
            false => seen,
        })
    }

    /// As end(), with a note.
    pub fn end_with(self, b: &mut Bench<'_>, note: String) -> Result<Seen, String> {
        let seen = self.end(b)?;
        Ok(match seen.outcome {
            Outcome::Skip => seen,
            _ => Seen { note, ..seen },
        })
    }
}

/// How long nfsd waits for the answer to a callback: a tenth of a lease, a second at least.
fn patience(b: &mut Bench<'_>) -> Result<Duration, String> {
    let call = Compound::new(0).root().attribute(10).call();
    let (xid, stream) = b.world.tcp.raw(call)?;
    let mut words = Words::new(&stream);
    check(rpc::reply(&mut words, xid)? == Status::Success, || {
        "GETATTR over TCP".into()
    })?;
    // Status, tag, count, PUTROOTFH and GETATTR with theirs, bitmap, length of the attributes.
    words.take(10 * 4)?;
    let lease = words.word()?;
    Ok(Duration::from_secs(u64::from(lease / 10).max(1)))
}

pub fn ungranted() -> Seen {
    skip("the server grants no backchannel, or no delegation")
}
