// SPDX-License-Identifier: GPL-2.0
//! What a fake peer posts: Reads and Writes of the client's memory, replies, callbacks.

use std::{
    io,
    time::{Duration, Instant},
};

use super::{
    super::{mutants::Mutant, word},
    Peer,
};
use crate::{
    connection::Event,
    frame::{words, Lists, Segment},
    memory::{Access, Region},
    send::Send,
};

/// The longest time that Reads of a call may take.
const LIMIT: Duration = Duration::from_secs(10);

impl Peer {
    /// What a chunk holds.
    pub(super) fn read(&mut self, chunk: &[Segment]) -> io::Result<Vec<u8>> {
        let len: usize = chunk.iter().map(|s| s.length as usize).sum();
        let region = Region::new(&self.connection.domain, len.max(1), Access::Local, 0)?;
        let mut at = 0;
        for segment in chunk.iter().filter(|s| s.length > 0) {
            self.make_room()?;
            self.connection.fetch(&region, at, segment)?;
            at += segment.length as usize;
        }
        self.settle(0)?;
        Ok(region.bytes(0, len))
    }

    fn make_room(&mut self) -> io::Result<()> {
        if self.connection.outstanding() > 256 {
            self.settle(128)?;
        }
        Ok(())
    }

    /// Wait until no more than that are outstanding; keep what else happens.
    fn settle(&mut self, most: usize) -> io::Result<()> {
        let until = Instant::now() + LIMIT;
        while self.connection.outstanding() > most {
            match self.connection.next(until) {
                None => return Err(io::ErrorKind::TimedOut.into()),
                Some(Event::Sent) => {}
                Some(event) => {
                    self.backlog.push_back(event);
                    if self.connection.dead {
                        break;
                    }
                }
            }
        }
        match self.connection.dead {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    pub(super) fn write(&mut self, segment: &Segment, data: &[u8]) -> io::Result<()> {
        self.make_room()?;
        let kind = Send::Write {
            key: segment.handle,
            address: segment.offset,
        };
        self.connection.send_as(data, kind, 1)
    }

    /// Send a reply, with invalidation if the call has one key and both sides support it.
    pub(super) fn say(&mut self, mutant: &Mutant, sent: &Lists, message: &[u8]) -> io::Result<()> {
        let reads = sent.reads.iter().map(|(_, s)| s);
        let mut keys: Vec<_> = reads
            .chain(sent.echoed().flatten())
            .map(|s| s.handle)
            .collect();
        keys.dedup();
        let first = keys.first().copied();
        let only = first.filter(|_| keys.len() == 1);
        let before = std::mem::replace(&mut self.last_key, first);
        let key = match mutant.name() {
            "loose-key" => before.filter(|_| self.invalidates && first.is_some()),
            "unasked-key" => first,
            "proxy-invalidate" => only.filter(|_| self.invalidates),
            _ => None,
        };
        let kind = key.map_or(Send::Plain, Send::Invalidate);
        self.connection.send_as(message, kind, 1)
    }

    pub(super) fn call_back(&mut self, mutant: &Mutant, call: &[u8]) -> io::Result<()> {
        let mut header = vec![word(call, 0), 1, 2, 0, 0, 0, 0];
        let mut more = Vec::new();
        match mutant.name() {
            "callback-lost" => return Ok(()),
            "callback-chunks" => header
                .splice(5..6, [1, 1, 0x77, 64, 0, 0x1000, 0])
                .for_each(drop),
            "callback-long" => more = vec![0; 1100],
            // nfsd has no more than two at once over TCP.
            "callback-flood" => header[2] = 1,
            // The first is for the one that a callback overtakes.
            "callback-late" => self.dawdles = 2,
            "callback-xid" => header[0] ^= 1,
            _ => {}
        }
        self.called = true;
        self.callbacks.push(word(call, 0));
        let message = [words(&header), call.to_vec(), more].concat();
        self.connection.send(&message)
    }
}
