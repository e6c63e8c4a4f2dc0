// SPDX-License-Identifier: GPL-2.0
//! What a right peer makes of a message (RFC 8166, sections 3.5, 4.2 and 4.5).

use super::{items, mutants::Mutant, word};
use crate::{
    frame::{Lists, Segment, ERROR, MSG, NOMSG},
    mutate::{parse, parse_by},
};

/// The longest chunk of data, and what a call may have beside it.
const MOST: u64 = 1 << 20;
const MORE: u64 = 1024;
/// XID, direction, version, program, its version, procedure, and two flavors with their lengths.
const SHORTEST: usize = 40;

/// What lists may lack at their end, to a peer that does not mind.
const MISSING: usize = 64;

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

/// The Payload stream of a call, or why there is none.
pub enum Assembled {
    Call(Vec<u8>),
    /// It is too short for a call, or a reply.
    Nothing,
    /// A chunk has no place in it.
    Misplaced,
    /// It has this XID, not the header's.
    Differs(u32),
}

pub fn understand(bytes: &[u8], mutant: &Mutant) -> Heard {
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
    // Zeros where the message has ended.
    let longer = [bytes, &[0; MISSING]].concat();
    let parsed = match mutant.name() {
        "nonzero" => parse_by(bytes, |words| words.word().ok().map(|word| word != 0)),
        "unended" => parse(&longer).map(|(lists, rest)| {
            let there = rest.len().saturating_sub(MISSING);
            (lists, &rest[..there])
        }),
        _ => parse(bytes),
    };
    let Some((lists, payload)) = parsed.filter(|(lists, _)| possible(lists)) else {
        return Heard::Malformed;
    };
    let whole = payload.len() as u64 + read(&lists, |_| true);
    if whole > MOST + MORE && !mutant.is("boundless") {
        return Heard::Malformed;
    }
    if mutant.is("fickle") && payload.len() == 48 {
        return Heard::Versions;
    }
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
    let empty = zero && read(&lists, |position| position == 0) == 0;
    if zero != (proc == NOMSG) || payload.is_empty() != zero || empty {
        return Heard::Malformed;
    }
    Heard::Call(Request {
        xid,
        lists,
        inline: payload.to_vec(),
    })
}

/// Chunks that are where memory can be, and none of data that is too long.
fn possible(lists: &Lists) -> bool {
    let fits = |s: &Segment| s.offset.checked_add(s.length.into()).is_some();
    let mut positions = lists.reads.iter().map(|(p, _)| *p).filter(|p| *p != 0);
    lists.reads.iter().all(|(_, s)| fits(s))
        && lists.echoed().flatten().all(fits)
        && positions.all(|position| read(lists, |p| p == position) <= MOST)
}

/// How many bytes there are to be read at these Positions.
fn read(lists: &Lists, at: impl Fn(u32) -> bool) -> u64 {
    let chunk = lists.reads.iter().filter(|(p, _)| at(*p));
    chunk.map(|(_, s)| u64::from(s.length)).sum()
}

impl Request {
    /// Reads chunks and puts them in their place.
    pub fn assemble<E>(
        &self,
        options: Assembly,
        mut read: impl FnMut(&[Segment]) -> Result<Vec<u8>, E>,
    ) -> Result<Assembled, E> {
        let at = |position: u32| -> Vec<Segment> {
            let own = self.lists.reads.iter().filter(|(p, _)| *p == position);
            own.map(|(_, s)| *s).collect()
        };
        let mut stream = match self.inline.is_empty() {
            true => read(&at(0))?,
            false => self.inline.clone(),
        };
        if stream.len() < SHORTEST || word(&stream, 4) != 0 {
            return Ok(Assembled::Nothing);
        }
        if word(&stream, 0) != self.xid {
            return Ok(Assembled::Differs(word(&stream, 0)));
        }
        let positions = self.lists.reads.iter().map(|(p, _)| *p);
        let Some(position) = positions.clone().find(|p| *p != 0) else {
            return Ok(Assembled::Call(stream));
        };
        let place = position as usize;
        let item = items::of_call(&stream);
        let right = item.is_some_and(|(right, _)| right == place)
            && positions.clone().all(|p| p == 0 || p == position);
        if !right && !options.anywhere || place > stream.len() {
            return Ok(Assembled::Misplaced);
        }
        let mut data = read(&at(position))?;
        if let Some((_, len)) = item.filter(|_| options.stale) {
            data.resize(len.clamp(data.len(), MOST as usize), 0x5a);
        }
        if !options.unpadded {
            data.resize(data.len().next_multiple_of(4), 0);
        }
        stream.splice(place..place, data);
        Ok(Assembled::Call(stream))
    }
}

/// What is done wrong meanwhile.
#[derive(Clone, Copy)]
pub struct Assembly {
    pub unpadded: bool,
    pub anywhere: bool,
    pub stale: bool,
}
