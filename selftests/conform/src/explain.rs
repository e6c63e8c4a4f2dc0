// SPDX-License-Identifier: GPL-2.0
//! The oracle for replies: every byte has to follow from what was sent.

use crate::{
    frame::{self, total, Lists, Reply, Segment, Words},
    message::Message,
    outcome::Outcome,
    results::{self, Placed, Results},
    rpc::{self, Kind, Status},
};

/// A reply that is understood.
#[derive(Clone, Debug)]
pub struct Seen {
    pub outcome: Outcome,
    pub grant: u32,
    /// The lists with their updated lengths.
    pub lists: Lists,
    /// RDMA_MSG, not RDMA_NOMSG.
    pub inline: bool,
    pub status: Option<Status>,
    pub results: Results,
    /// The Payload stream of the reply.
    pub stream: Vec<u8>,
    pub note: String,
}

impl Seen {
    pub fn only(outcome: Outcome) -> Self {
        Self {
            outcome,
            grant: 0,
            lists: Lists::default(),
            inline: false,
            status: None,
            results: Results::default(),
            stream: Vec::new(),
            note: String::new(),
        }
    }

    pub fn describe(&self) -> String {
        let mut text = self.outcome.name().to_string();
        match &self.status {
            Some(Status::Success) if self.results.status != 0 => {
                text.push_str(&format!(" (NFS status {})", self.results.status));
            }
            Some(Status::Success) | None => {}
            Some(other) => text.push_str(&format!(" ({other:?})")),
        }
        if !self.note.is_empty() {
            text.push_str(&format!(" ({})", self.note));
        }
        text
    }
}

/// Looks up remote memory: the bytes a segment names.
pub type Memory<'a> = dyn Fn(&Segment) -> Option<Vec<u8>> + 'a;

/// What a text begins with that says that a message is not explained: a profile excuses it only where
/// it admits that.
pub const UNEXPLAINED: &str = "unexplained: ";

/// Mark an error so.
pub fn unexplained(text: impl std::fmt::Display) -> String {
    format!("{UNEXPLAINED}{text}")
}

/// Whether these bytes are a call of the reverse direction.
pub fn is_call(bytes: &[u8]) -> bool {
    matches!(frame::decode(bytes), Ok((_, _, Reply::Call)))
}

pub fn explain(bytes: &[u8], sent: &Message, memory: &Memory<'_>) -> Result<Seen, String> {
    account(bytes, sent, memory).map_err(unexplained)
}

/// A right answer but for its Payload stream, parts of which other Writes of the reply have hidden.
pub fn hidden(bytes: &[u8], sent: &Message) -> Option<Seen> {
    let (xid, grant, reply) = frame::decode(bytes).ok()?;
    let Reply::NoMessage { lists } = reply else {
        return None;
    };
    let right = xid == sent.xid && grant > 0 && echoes(&sent.lists, &lists).is_ok();
    (right && lists.overlap()).then(|| Seen {
        grant,
        lists,
        ..Seen::only(Outcome::Ok)
    })
}

fn account(bytes: &[u8], sent: &Message, memory: &Memory<'_>) -> Result<Seen, String> {
    let (xid, grant, reply) = frame::decode(bytes)?;
    if xid != sent.xid {
        return Err(format!("XID {xid:#x} in answer to {:#x}", sent.xid));
    }
    if grant == 0 {
        return Err("a grant of 0 credits".into());
    }
    let mut seen = Seen::only(Outcome::Ok);
    seen.grant = grant;
    match reply {
        Reply::Versions { vers, low, high } => {
            if vers != sent.vers {
                return Err(format!(
                    "ERR_VERS with version {vers}, the call's is {}",
                    sent.vers
                ));
            }
            if (low, high) != (1, 1) {
                return Err(format!("ERR_VERS names versions {low} to {high}"));
            }
            seen.outcome = Outcome::Versions;
            return Ok(seen);
        }
        Reply::Chunk { vers } => {
            if vers != sent.vers {
                return Err(format!(
                    "ERR_CHUNK with version {vers}, the call's is {}",
                    sent.vers
                ));
            }
            seen.outcome = Outcome::Chunk;
            return Ok(seen);
        }
        Reply::Call => return Err("a call where a reply belongs".into()),
        Reply::Message { lists, payload } => {
            echoes(&sent.lists, &lists)?;
            if lists.reply.as_ref().is_some_and(|c| total(c) != 0) {
                return Err("RDMA_MSG with bytes in the Reply chunk".into());
            }
            seen.lists = lists;
            seen.inline = true;
            seen.stream = payload.to_vec();
        }
        Reply::NoMessage { lists } => {
            echoes(&sent.lists, &lists)?;
            let Some(chunk) = &lists.reply else {
                return Err("RDMA_NOMSG without a Reply chunk".into());
            };
            if total(chunk) % 4 != 0 {
                return Err(format!(
                    "{} bytes in the Reply chunk, not whole XDR units",
                    total(chunk)
                ));
            }
            seen.stream = fetch(chunk, memory)?;
            seen.lists = lists;
        }
    }
    // A chunk that comes back empty has no more in it than one that comes back unused.
    let mut placed: Placed = sent
        .lists
        .writes
        .iter()
        .zip(&seen.lists.writes)
        .map(|(was, is)| {
            if was.is_empty() {
                Ok(None)
            } else {
                fetch(is, memory).map(Some)
            }
        })
        .collect::<Result<_, String>>()?;
    let stream = seen.stream.clone();
    let mut words = Words::new(&stream);
    let status = match &sent.guard {
        Some(guard) => rpc::verified_reply(&mut words, xid, |f, v| guard.verify(f, v))?,
        // With contexts that are being made, cases look at the verifier.
        None if sent.kind == Kind::Context => rpc::verified_reply(&mut words, xid, |_, _| Ok(()))?,
        None => rpc::reply(&mut words, xid)?,
    };
    if status == Status::Success {
        let body = match &sent.guard {
            Some(guard) => guard.open(words.rest)?,
            None => words.rest.to_vec(),
        };
        seen.results = results::decode(sent.kind, &mut Words::new(&body), &mut placed)?;
    } else {
        seen.outcome = Outcome::RpcError;
    }
    if let Some(chunk) = placed.iter().flatten().find(|data| !data.is_empty()) {
        return Err(format!(
            "{} bytes in a Write chunk that no result explains",
            chunk.len()
        ));
    }
    seen.status = Some(status);
    seen.note = forms(&sent.lists, &seen);
    Ok(seen)
}

/// Which of several right forms of a reply this is: how Write chunks came back that nothing was
/// put into (RFC 8166, section 4.3.2.2, or RFC 8267, section 6.4.1), and whether a reply came
/// inline although there was a Reply chunk.
fn forms(sent: &Lists, seen: &Seen) -> String {
    let offered = sent.writes.iter().zip(&seen.lists.writes);
    let mut notes: Vec<_> = offered
        .filter(|(was, is)| !was.is_empty() && total(is) == 0)
        .map(|(_, is)| match is.is_empty() {
            true => "empty Write chunk",
            false => "unused Write chunk",
        })
        .collect();
    notes.dedup();
    if sent.reply.is_some() {
        notes.push(match seen.inline {
            true => "RDMA_MSG",
            false => "RDMA_NOMSG",
        });
    }
    notes.join(", ")
}

/// The lists of a reply against the call's (RFC 8166, sections 3.4.6 and 4.3). A Write chunk may
/// come back empty if no result is in it (RFC 8267, section 6.4.1).
fn echoes(sent: &Lists, got: &Lists) -> Result<(), String> {
    if got.writes.len() != sent.writes.len() {
        return Err(format!(
            "{} Write chunks in answer to {}",
            got.writes.len(),
            sent.writes.len()
        ));
    }
    if got.reply.is_some() != sent.reply.is_some() {
        return Err("the Reply chunk is not echoed, or was not sent".into());
    }
    let empty = got.writes.iter().map(Vec::is_empty).chain([false]);
    for ((was, is), empty) in sent.echoed().zip(got.echoed()).zip(empty) {
        if empty {
            continue;
        }
        if was.len() != is.len() {
            return Err(format!(
                "a chunk of {} segments came back with {}",
                was.len(),
                is.len()
            ));
        }
        let mut full = true;
        for (i, (before, after)) in was.iter().zip(is).enumerate() {
            if (before.handle, before.offset) != (after.handle, after.offset) {
                return Err(format!(
                    "segment {i}: handle or offset changed: {before:x?} {after:x?}"
                ));
            }
            if after.length > before.length {
                return Err(format!(
                    "segment {i}: {} bytes in {}",
                    after.length, before.length
                ));
            }
            if after.length > 0 && !full {
                return Err(format!(
                    "segment {i} was used before the one in front of it was full"
                ));
            }
            full = full && after.length == before.length;
        }
    }
    Ok(())
}

fn fetch(chunk: &[Segment], memory: &Memory<'_>) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for segment in chunk.iter().filter(|s| s.length > 0) {
        out.extend(memory(segment).ok_or_else(|| format!("no such memory: {segment:x?}"))?);
    }
    Ok(out)
}
