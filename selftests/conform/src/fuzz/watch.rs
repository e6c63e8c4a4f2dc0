// SPDX-License-Identifier: GPL-2.0
//! What a server writes, and where it may: in memory, and in the fuzzer's own files.

use super::{Fuzzer, Sent, Watched};
use crate::{
    explain::{Memory, Seen},
    frame::{Lists, Segment},
    handle::Handle,
    memory::GUARD,
    nfs3,
    outcome::Outcome,
    rpc::{arguments, Kind},
};

/// What a WRITE has to store.
#[derive(Clone)]
pub struct Written {
    file: Vec<u8>,
    offset: u64,
    data: Vec<u8>,
}

impl Written {
    /// By a call's stream and its data in a Read chunk; None if a server may see more than one way
    /// to put them together.
    pub fn by(stream: &[u8], lists: &Lists, memory: &Memory<'_>) -> Option<Self> {
        let mut words = arguments(stream)?;
        let file = words.opaque().ok()?.to_vec();
        let offset = words.long().ok()?;
        // The count, and how stable it has to be.
        words.take(8).ok()?;
        let len = words.word().ok()? as usize;
        let position = (stream.len() - words.rest.len()) as u32;
        let chunk: Vec<_> = lists.reads.iter().filter(|(p, _)| *p != 0).collect();
        let data = if chunk.is_empty() {
            words.take(len).ok()?.to_vec()
        } else {
            let parts: Option<Vec<_>> = chunk.iter().map(|(_, s)| memory(s)).collect();
            let placed = chunk.iter().all(|(p, _)| *p == position);
            let mut data = parts.filter(|_| placed)?.concat();
            if !(len..=len.next_multiple_of(4)).contains(&data.len()) {
                return None;
            }
            data.truncate(len);
            data
        };
        Some(Self { file, offset, data })
    }

    pub fn is_of(&self, file: &Handle) -> bool {
        file.is(&self.file)
    }
}

impl Fuzzer<'_> {
    /// The server may write what this message names, until it answers.
    pub fn open(&mut self, sent: &Sent) {
        let named = sent.message.lists.echoed().flatten().copied().collect();
        self.writable.insert(sent.message.xid, named);
    }

    /// An answer has come: the server may have written what it reports, and now no more.
    pub fn narrow(&mut self, xid: u32, seen: &Seen) {
        let Some(sent) = self.recent.get(&xid) else {
            return;
        };
        let xid = sent.message.xid;
        if matches!(seen.outcome, Outcome::Ok | Outcome::RpcError) {
            let reported = seen.lists.echoed().flatten().copied().collect();
            self.writable.insert(xid, reported);
        }
        self.over.push(xid);
        let stored = matches!(sent.message.kind, Kind::Write | Kind::OddWrite)
            && seen.outcome == Outcome::Ok
            && seen.results.status == 0;
        if let Some(written) = sent.written.clone().filter(|_| stored) {
            self.stored.push((written, seen.results.count));
        }
    }

    /// Nothing has changed where the server may not write.
    pub fn canaries(&mut self) -> Result<(), String> {
        let writable: Vec<Segment> = self.writable.values().flatten().copied().collect();
        for watched in self.regions.values_mut().chain(&mut self.kept) {
            let now = watched.region.snapshot();
            if let Some(at) = watched.region.differs(&now, &watched.before, &writable) {
                return Err(format!(
                    "memory outside all advertised or reported ranges was written: offset {at} of {}",
                    watched.region.len()
                ));
            }
            watched.before = now;
        }
        for xid in self.over.drain(..) {
            self.writable.remove(&xid);
        }
        Ok(())
    }

    /// Each file has, over TCP, what a WRITE of this round says that it has stored.
    pub fn files(&mut self) -> Result<(), String> {
        for (written, count) in std::mem::take(&mut self.stored) {
            let call = nfs3::read(&written.file, written.offset, count);
            let has = self.world.must(call)?.items.remove(0).data;
            if written.data.get(..count as usize) != Some(&has[..]) {
                return Err(format!(
                    "the file has other data at {} than the {count} bytes of a WRITE",
                    written.offset
                ));
            }
        }
        Ok(())
    }

    /// A call or data in memory of the fuzzer's own, which the server has not written.
    pub fn put(watched: &mut Watched, data: &[u8]) {
        watched.region.fill(0, data);
        watched.before[GUARD..GUARD + data.len()].copy_from_slice(data);
    }
}
