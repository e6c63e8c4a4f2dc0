// SPDX-License-Identifier: GPL-2.0
//! Bytes of RPC-over-RDMA version 1: an encoder that will write anything, and a
//! decoder that takes only what RFC 8166 allows in a reply.

use serde::Serialize;

pub const MSG: u32 = 0;
pub const NOMSG: u32 = 1;
pub const MSGP: u32 = 2;
pub const ERROR: u32 = 4;

/// Credits that a call asks for unless the case says otherwise.
pub const CREDITS: u32 = 32;

/// Memory of the requester (RFC 8166, section 3.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    pub handle: u32,
    pub length: u32,
    pub offset: u64,
}

/// The three chunk lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lists {
    pub reads: Vec<(u32, Segment)>,
    pub writes: Vec<Vec<Segment>>,
    pub reply: Option<Vec<Segment>>,
}

/// Everything before the payload.
#[derive(Clone, Debug)]
pub struct Header {
    pub xid: u32,
    pub vers: u32,
    pub credits: u32,
    pub proc: u32,
    pub lists: Lists,
}

impl Header {
    pub fn new(xid: u32, proc: u32, lists: Lists) -> Self {
        Self {
            xid,
            vers: 1,
            credits: CREDITS,
            proc,
            lists,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = words(&[self.xid, self.vers, self.credits, self.proc]);
        out.extend(self.lists.encode());
        out
    }

    /// The message with a payload after the header.
    pub fn message(&self, payload: &[u8]) -> Vec<u8> {
        let mut out = self.encode();
        out.extend_from_slice(payload);
        out
    }
}

impl Lists {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (position, segment) in &self.reads {
            out.extend(words(&[1, *position]));
            out.extend(segment.encode());
        }
        out.extend(words(&[0]));
        for chunk in &self.writes {
            out.extend(words(&[1]));
            out.extend(encode_chunk(chunk));
        }
        out.extend(words(&[0]));
        match &self.reply {
            Some(chunk) => {
                out.extend(words(&[1]));
                out.extend(encode_chunk(chunk));
            }
            None => out.extend(words(&[0])),
        }
        out
    }

    pub fn write(chunk: Vec<Segment>) -> Self {
        Self {
            writes: vec![chunk],
            ..Self::default()
        }
    }

    pub fn reply(chunk: Vec<Segment>) -> Self {
        Self {
            reply: Some(chunk),
            ..Self::default()
        }
    }

    pub fn read(position: u32, segments: Vec<Segment>) -> Self {
        Self {
            reads: segments.into_iter().map(|s| (position, s)).collect(),
            ..Self::default()
        }
    }

    /// All chunks that a reply echoes.
    pub fn echoed(&self) -> impl Iterator<Item = &Vec<Segment>> {
        self.writes.iter().chain(self.reply.iter())
    }

    /// Whether two of these that are used name the same memory: the later Write hides the earlier.
    pub fn overlap(&self) -> bool {
        let used: Vec<_> = self.echoed().flatten().filter(|s| s.length > 0).collect();
        let end = |s: &Segment| s.offset.saturating_add(s.length.into());
        used.iter().enumerate().any(|(i, a)| {
            let mut others = used[i + 1..].iter();
            others.any(|b| a.offset < end(b) && b.offset < end(a))
        })
    }
}

impl Segment {
    pub fn encode(&self) -> Vec<u8> {
        words(&[
            self.handle,
            self.length,
            (self.offset >> 32) as u32,
            self.offset as u32,
        ])
    }
}

pub fn encode_chunk(chunk: &[Segment]) -> Vec<u8> {
    let mut out = words(&[chunk.len() as u32]);
    chunk.iter().for_each(|s| out.extend(s.encode()));
    out
}

/// Bytes in a chunk.
pub fn total(chunk: &[Segment]) -> u64 {
    chunk.iter().map(|s| u64::from(s.length)).sum()
}

pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_be_bytes()).collect()
}

/// A reader of big-endian words that never goes past the end.
#[derive(Clone)]
pub struct Words<'a> {
    pub rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        if len > self.rest.len() {
            return Err(format!("{len} bytes expected, {} left", self.rest.len()));
        }
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(taken)
    }

    pub fn word(&mut self) -> Result<u32, String> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub fn long(&mut self) -> Result<u64, String> {
        Ok(u64::from(self.word()?) << 32 | u64::from(self.word()?))
    }

    pub fn boolean(&mut self) -> Result<bool, String> {
        match self.word()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("{other:#x} where an XDR boolean belongs")),
        }
    }

    /// A counted opaque with its roundup, which has to be zero.
    pub fn opaque(&mut self) -> Result<&'a [u8], String> {
        let len = self.word()? as usize;
        let data = self.take(len)?;
        self.roundup(len)?;
        Ok(data)
    }

    /// The roundup after `len` bytes.
    pub fn roundup(&mut self, len: usize) -> Result<(), String> {
        let pad = self.take(len.next_multiple_of(4) - len)?;
        if pad.iter().any(|&b| b != 0) {
            Err(format!("roundup bytes {pad:02x?} are not zero"))
        } else {
            Ok(())
        }
    }

    pub fn end(&self) -> Result<(), String> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "{} bytes that nothing explains: {}",
                self.rest.len(),
                hex(&self.rest[..self.rest.len().min(64)])
            ))
        }
    }

    pub fn segment(&mut self) -> Result<Segment, String> {
        Ok(Segment {
            handle: self.word()?,
            length: self.word()?,
            offset: self.long()?,
        })
    }

    pub fn chunk(&mut self) -> Result<Vec<Segment>, String> {
        let count = self.word()? as usize;
        if count > self.rest.len() / 16 {
            return Err(format!("{count} segments in {} bytes", self.rest.len()));
        }
        (0..count).map(|_| self.segment()).collect()
    }
}

/// What came back, taken apart.
#[derive(Clone, Debug)]
pub enum Reply<'a> {
    Versions {
        vers: u32,
        low: u32,
        high: u32,
    },
    Chunk {
        vers: u32,
    },
    Message {
        lists: Lists,
        payload: &'a [u8],
    },
    NoMessage {
        lists: Lists,
    },
    /// A call of the reverse direction (RFC 8167).
    Call,
}

/// XID, credits and content of a message from a server.
pub fn decode(message: &[u8]) -> Result<(u32, u32, Reply<'_>), String> {
    let mut words = Words::new(message);
    let (xid, vers, credits, proc) = (words.word()?, words.word()?, words.word()?, words.word()?);
    if proc == ERROR {
        let reply = match words.word()? {
            1 => Reply::Versions {
                vers,
                low: words.word()?,
                high: words.word()?,
            },
            2 => Reply::Chunk { vers },
            other => return Err(format!("rdma_err {other}")),
        };
        words.end()?;
        return Ok((xid, credits, reply));
    }
    if vers != 1 {
        return Err(format!("version {vers} in a message that is not an error"));
    }
    if words.boolean()? {
        return Err("a Read list in a message from a server".into());
    }
    let mut lists = Lists::default();
    while words.boolean()? {
        lists.writes.push(words.chunk()?);
    }
    if words.boolean()? {
        lists.reply = Some(words.chunk()?);
    }
    let reply = match proc {
        MSG if words.rest.get(4..8) == Some(&[0; 4]) && lists == Lists::default() => Reply::Call,
        MSG => Reply::Message {
            lists,
            payload: words.rest,
        },
        NOMSG => {
            words.end()?;
            Reply::NoMessage { lists }
        }
        other => return Err(format!("rdma_proc {other}")),
    };
    Ok((xid, credits, reply))
}

pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 9 / 4);
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 && i % 4 == 0 {
            out.push(' ');
        }
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

/// The bytes of what hex() wrote.
pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let pairs = digits.chunks_exact(2);
    pairs.map(|d| (d[0] << 4 | d[1]) as u8).collect()
}
