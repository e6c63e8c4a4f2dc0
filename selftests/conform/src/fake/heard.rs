// SPDX-License-Identifier: GPL-2.0
//! What a right peer makes of a message (RFC 8166, sections 3.5, 4.2 and 4.5).

use super::{items, word};
use crate::{
    frame::{Lists, Segment, ERROR, MSG, NOMSG},
    mutate::parse,
};

/// The longest chunk of data, and what a call has beside it.
const MOST: u64 = 1 << 20;
const MORE: u64 = 2048;

pub enum Heard {
    Nothing,
    Versions,
    Malformed,
    /// The Payload stream of a reply in the reverse direction.
    Reply(Vec<u8>),
    /// RDMA_ERROR.
    Failed,
    Call(Request),
}

/// A call whose chunks are not read yet.
pub struct Request {
    pub xid: u32,
    pub lists: Lists,
    inline: Vec<u8>,
}

pub fn understand(bytes: &[u8]) -> Heard {
    let (xid, proc) = (word(bytes, 0), word(bytes, 12));
    if bytes.len() < 28 {
        return Heard::Nothing;
    }
    if proc == ERROR {
        return Heard::Failed;
    }
    if word(bytes, 4) != 1 {
        return Heard::Versions;
    }
    match proc {
        3 => return Heard::Nothing,
        MSG | NOMSG => {}
        _ => return Heard::Malformed,
    }
    let Some((lists, payload)) = parse(bytes).filter(|(lists, _)| possible(lists)) else {
        return Heard::Malformed;
    };
    // It may be no call at all.
    if proc == MSG && payload.len() < 8 {
        return Heard::Nothing;
    }
    if proc == MSG && word(payload, 4) != 0 {
        return match (word(payload, 4), word(payload, 0) == xid) {
            (1, true) if lists == Lists::default() => Heard::Reply(payload.to_vec()),
            _ => Heard::Nothing,
        };
    }
    let zero = lists.reads.iter().any(|(position, _)| *position == 0);
    if zero != (proc == NOMSG) || payload.is_empty() != zero {
        return Heard::Malformed;
    }
    Heard::Call(Request {
        xid,
        lists,
        inline: payload.to_vec(),
    })
}

/// Chunks that are where memory can be, and of a length that a call can have.
fn possible(lists: &Lists) -> bool {
    let fits = |s: &Segment| s.offset.checked_add(s.length.into()).is_some();
    let read = |zero: bool| -> u64 {
        let chunk = lists.reads.iter().filter(|(p, _)| (*p == 0) == zero);
        chunk.map(|(_, s)| u64::from(s.length)).sum()
    };
    lists.reads.iter().all(|(_, s)| fits(s))
        && lists.echoed().flatten().all(fits)
        && read(false) <= MOST
        && read(true) <= MOST + MORE
}

impl Request {
    /// Reads chunks and puts them in their place; None if one has no place there.
    pub fn assemble<E>(
        &self,
        options: Assembly,
        mut read: impl FnMut(&[Segment]) -> Result<Vec<u8>, E>,
    ) -> Result<Option<Vec<u8>>, E> {
        let at = |position: u32| -> Vec<Segment> {
            let own = self.lists.reads.iter().filter(|(p, _)| *p == position);
            own.map(|(_, s)| *s).collect()
        };
        let mut stream = match self.inline.is_empty() {
            true => read(&at(0))?,
            false => self.inline.clone(),
        };
        if word(&stream, 0) != self.xid || stream.len() < 40 || word(&stream, 4) != 0 {
            return Ok(None);
        }
        let positions = self.lists.reads.iter().map(|(p, _)| *p);
        let Some(position) = positions.clone().find(|p| *p != 0) else {
            return Ok(Some(stream));
        };
        let place = position as usize;
        let item = items::of_call(&stream);
        let right = item.is_some_and(|(right, _)| right == place)
            && positions.clone().all(|p| p == 0 || p == position);
        if !right && !options.anywhere || place > stream.len() {
            return Ok(None);
        }
        let mut data = read(&at(position))?;
        if let Some((_, len)) = item.filter(|_| options.stale) {
            data.resize(len.clamp(data.len(), MOST as usize), 0x5a);
        }
        if !options.unpadded {
            data.resize(data.len().next_multiple_of(4), 0);
        }
        stream.splice(place..place, data);
        Ok(Some(stream))
    }
}

/// What is done wrong meanwhile.
#[derive(Clone, Copy)]
pub struct Assembly {
    pub unpadded: bool,
    pub anywhere: bool,
    pub stale: bool,
}
