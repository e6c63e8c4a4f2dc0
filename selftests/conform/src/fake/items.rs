// SPDX-License-Identifier: GPL-2.0
//! Where eligible data are in calls and replies (RFC 8267, sections 4 and 6.1).

use std::ops::Range;

use crate::{
    frame::Words,
    rpc::{self, Status, NFS},
};

const GSS: u32 = 6;

/// What a call asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Procedure {
    program: u32,
    version: u32,
    number: u32,
    /// krb5i or krb5p.
    wrapped: bool,
}

impl Procedure {
    pub const GETATTR: Self = Self::nfs(3, 1);
    pub const COMPOUND: Self = Self::nfs(4, 1);

    const fn nfs(version: u32, number: u32) -> Self {
        Self {
            program: NFS,
            version,
            number,
            wrapped: false,
        }
    }

    pub fn of(call: &[u8]) -> Self {
        let read = || -> Result<Self, String> {
            let mut words = Words::new(call);
            words.take(12)?;
            let mut this = Self {
                program: words.word()?,
                version: words.word()?,
                number: words.word()?,
                wrapped: false,
            };
            let flavor = words.word()?;
            let mut body = Words::new(words.opaque()?);
            if flavor == GSS {
                body.take(12)?;
                this.wrapped = body.word()? > 1;
            }
            Ok(this)
        };
        read().unwrap_or(Self {
            wrapped: true,
            ..Self::nfs(0, 0)
        })
    }
}

fn arguments(call: &[u8]) -> Result<Words<'_>, String> {
    let mut words = Words::new(call);
    words.take(24)?;
    for _ in 0..2 {
        words.word()?;
        words.opaque()?;
    }
    Ok(words)
}

/// Where the data of a call are, or were before they went into a Read chunk, and their length.
pub fn of_call(call: &[u8]) -> Option<(usize, usize)> {
    let find = || -> Result<Option<(usize, usize)>, String> {
        let procedure = Procedure::of(call);
        let mut words = arguments(call)?;
        match (procedure.version, procedure.number) {
            _ if procedure.wrapped || procedure.program != NFS => return Ok(None),
            (3, 7) => {
                words.opaque()?;
                words.take(16)?;
            }
            // Without attributes.
            (3, 10) => {
                words.opaque()?;
                words.opaque()?;
                words.take(24)?;
            }
            (4, 1) => {
                if !operations(&mut words)? {
                    return Ok(None);
                }
            }
            _ => return Ok(None),
        }
        let len = words.word()? as usize;
        Ok(Some((call.len() - words.rest.len(), len)))
    };
    find().ok().flatten()
}

/// Up to the length of an operation's data; false if there is no such operation.
fn operations(words: &mut Words<'_>) -> Result<bool, String> {
    words.opaque()?;
    words.word()?;
    for _ in 0..words.word()? {
        match words.word()? {
            24 => {}
            9 => bitmap(words)?,
            22 => drop(words.opaque()?),
            53 => drop(words.take(32)?),
            38 => return words.take(28).map(|_| true),
            6 => return Ok(words.word()? == 5),
            _ => break,
        }
    }
    Ok(false)
}

fn bitmap(words: &mut Words<'_>) -> Result<(), String> {
    let count = words.word()? as usize;
    words.take(count * 4).map(drop)
}

/// The operation with which a COMPOUND begins a session: EXCHANGE_ID or CREATE_SESSION.
pub fn begins_session(call: &[u8]) -> Option<u32> {
    first_operation(call).filter(|n| matches!(n, 42 | 43))
}

/// The first operation of a COMPOUND.
pub fn first_operation(call: &[u8]) -> Option<u32> {
    let first = || -> Result<u32, String> {
        let mut words = arguments(call)?;
        words.opaque()?;
        words.take(8)?;
        words.word()
    };
    let number = first().ok();
    number.filter(|_| Procedure::of(call) == Procedure::COMPOUND)
}

/// Where the results of a reply of success begin.
pub fn results(reply: &[u8]) -> Option<usize> {
    let mut words = Words::new(reply);
    let xid = words.clone().word().ok()?;
    let status = rpc::verified_reply(&mut words, xid, |_, _| Ok(())).ok()?;
    (status == Status::Success).then(|| reply.len() - words.rest.len())
}

/// The data in a reply, in order.
pub fn of_reply(procedure: Procedure, reply: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if let Some(at) = results(reply).filter(|_| !procedure.wrapped && procedure.program == NFS) {
        // What cannot be read any more has no data.
        let _ = find(procedure, Words::new(&reply[at..]), reply.len(), &mut found);
    }
    found
}

fn find(
    procedure: Procedure,
    mut words: Words<'_>,
    end: usize,
    found: &mut Vec<Range<usize>>,
) -> Result<(), String> {
    let mut item = |words: &mut Words<'_>| -> Result<(), String> {
        let len = words.word()? as usize;
        let at = end - words.rest.len();
        words.take(len.next_multiple_of(4))?;
        found.push(at..at + len);
        Ok(())
    };
    let status = words.word()?;
    match (procedure.version, procedure.number) {
        (3, 5 | 6) if status == 0 => {
            if words.boolean()? {
                words.take(84)?;
            }
            if procedure.number == 6 {
                words.take(8)?;
            }
            item(&mut words)
        }
        (4, 1) => {
            words.opaque()?;
            for _ in 0..words.word()? {
                match (words.word()?, words.word()?) {
                    (22 | 24, 0) => {}
                    (9, 0) => {
                        bitmap(&mut words)?;
                        words.opaque()?;
                    }
                    (38, 0) => drop(words.take(16)?),
                    (53, 0) => drop(words.take(36)?),
                    (25, 0) => {
                        words.word()?;
                        item(&mut words)?;
                    }
                    (27, 0) => item(&mut words)?,
                    _ => break,
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
