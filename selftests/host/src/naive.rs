// SPDX-License-Identifier: GPL-2.0

//! A second decoder, written for the tests alone, and as plainly as the RFC reads.
//!
//! It shares no idea with the module: it turns the message into words, decodes lists into vectors,
//! and reassembles a Call byte by byte, by inserting each chunk into the stream at its position.

use crate::frame::Seg;

/// What a message is.
#[derive(Debug)]
pub(crate) enum Verdict {
    Silent,
    ErrVers,
    ErrChunk,
    PeerError,
    ReverseReply,
    Call(Box<Call>),
}

/// Where one byte of a Call comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Src {
    Inline(usize),
    Remote(u32, u64),
    Zero,
}

/// A decoded Call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) nomsg: bool,
    pub(crate) header_len: usize,
    pub(crate) reads: Vec<(u32, Seg)>,
    pub(crate) writes: Vec<Vec<Seg>>,
    pub(crate) reply: Option<Vec<Seg>>,
    /// Position and length of each chunk at a non-zero position, sorted.
    pub(crate) chunks: Vec<(u32, usize)>,
    /// The whole stream.
    pub(crate) stream: Vec<Src>,
}

impl Call {
    /// All segments of the message.
    pub(crate) fn segments(&self) -> Vec<Seg> {
        let mut all: Vec<Seg> = self.reads.iter().map(|(_, seg)| *seg).collect();
        all.extend(self.writes.iter().flatten());
        all.extend(self.reply.iter().flatten());
        all
    }
}

/// Decodes `msg`.
pub(crate) fn decode(msg: &[u8], max_segments: usize, max_call: usize) -> Verdict {
    if msg.len() < 20 {
        return Verdict::Silent;
    }
    let words: Vec<u32> = msg
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    if words[3] == 4 {
        return Verdict::PeerError;
    }
    if msg.len() < 28 {
        return Verdict::Silent;
    }
    match (words[1], words[3]) {
        (1, 0 | 1) => {}
        (1, 3) => return Verdict::Silent,
        (1, _) => return Verdict::ErrChunk,
        _ => return Verdict::ErrVers,
    }
    let Some(call) = decode_call(msg, &words, max_segments, max_call) else {
        return Verdict::ErrChunk;
    };
    if call.nomsg {
        return Verdict::Call(Box::new(call));
    }

    let rpc = &msg[call.header_len..];
    if rpc.len() < 8 {
        return Verdict::Silent;
    }
    let same = rpc[..4] == msg[..4];
    let lists = !call.reads.is_empty() || !call.writes.is_empty() || call.reply.is_some();
    match &rpc[4..8] {
        [0, 0, 0, 0] if same => Verdict::Call(Box::new(call)),
        [0, 0, 0, 0] => Verdict::ErrChunk,
        [0, 0, 0, 1] if same && !lists => Verdict::ReverseReply,
        _ => Verdict::Silent,
    }
}

fn decode_call(msg: &[u8], words: &[u32], max_segments: usize, max_call: usize) -> Option<Call> {
    let mut at = 4;
    let reads = decode_reads(words, &mut at)?;
    let writes = decode_writes(words, &mut at)?;
    let reply = match next(words, &mut at)? {
        0 => None,
        1 => Some(decode_array(words, &mut at)?),
        _ => return None,
    };
    let mut call = Call {
        nomsg: words[3] == 1,
        header_len: at * 4,
        reads,
        writes,
        reply,
        chunks: Vec::new(),
        stream: Vec::new(),
    };

    let segments = call.segments();
    if segments.len() > max_segments || call.writes.len() > 8 {
        return None;
    }
    if segments
        .iter()
        .any(|(_, length, offset)| u128::from(*offset) + u128::from(*length) > u128::from(u64::MAX))
    {
        return None;
    }
    if call.reads.iter().any(|(position, _)| position % 4 != 0) {
        return None;
    }

    let mut positions: Vec<u32> = call.reads.iter().map(|(position, _)| *position).collect();
    positions.sort_unstable();
    positions.dedup();
    let has_call_chunk = positions.first() == Some(&0);
    if has_call_chunk {
        positions.remove(0);
    }
    let trailing = msg.len() - call.header_len;
    if call.nomsg && (!has_call_chunk || trailing != 0 || chunk_len(&call.reads, 0) == 0) {
        return None;
    }
    if !call.nomsg && has_call_chunk {
        return None;
    }
    if positions.len() > 8 || positions.iter().any(|position| *position < 40) {
        return None;
    }

    // Before anything that large is made.
    let mut total = if call.nomsg {
        chunk_len(&call.reads, 0)
    } else {
        trailing as u128
    };
    for position in &positions {
        total += chunk_len(&call.reads, *position).div_ceil(4) * 4;
    }
    if total > max_call as u128 {
        return None;
    }

    let mut stream: Vec<Src> = if call.nomsg {
        chunk_bytes(&call.reads, 0)
    } else {
        (0..trailing).map(Src::Inline).collect()
    };
    let mut inserted_up_to = 0;
    for position in positions {
        let at = position as usize;
        let mut bytes = chunk_bytes(&call.reads, position);
        call.chunks.push((position, bytes.len()));
        while bytes.len() % 4 != 0 {
            bytes.push(Src::Zero);
        }
        if at > stream.len() || at < inserted_up_to {
            return None;
        }
        inserted_up_to = at + bytes.len();
        stream.splice(at..at, bytes);
    }
    call.stream = stream;
    Some(call)
}

fn chunk_len(reads: &[(u32, Seg)], position: u32) -> u128 {
    reads
        .iter()
        .filter(|(at, _)| *at == position)
        .map(|(_, (_, length, _))| u128::from(*length))
        .sum()
}

fn chunk_bytes(reads: &[(u32, Seg)], position: u32) -> Vec<Src> {
    let mut bytes = Vec::new();
    for (at, (handle, length, offset)) in reads {
        if *at == position {
            bytes.extend((0..u64::from(*length)).map(|n| Src::Remote(*handle, offset + n)));
        }
    }
    bytes
}

fn next(words: &[u32], at: &mut usize) -> Option<u32> {
    *at += 1;
    words.get(*at - 1).copied()
}

fn decode_seg(words: &[u32], at: &mut usize) -> Option<Seg> {
    let handle = next(words, at)?;
    let length = next(words, at)?;
    let high = next(words, at)?;
    let low = next(words, at)?;
    Some((handle, length, u64::from(high) << 32 | u64::from(low)))
}

fn decode_array(words: &[u32], at: &mut usize) -> Option<Vec<Seg>> {
    let count = next(words, at)?;
    let mut segs = Vec::new();
    for _ in 0..count {
        segs.push(decode_seg(words, at)?);
    }
    Some(segs)
}

fn decode_reads(words: &[u32], at: &mut usize) -> Option<Vec<(u32, Seg)>> {
    let mut reads = Vec::new();
    loop {
        match next(words, at)? {
            0 => return Some(reads),
            1 => {}
            _ => return None,
        }
        let position = next(words, at)?;
        reads.push((position, decode_seg(words, at)?));
    }
}

fn decode_writes(words: &[u32], at: &mut usize) -> Option<Vec<Vec<Seg>>> {
    let mut writes = Vec::new();
    loop {
        match next(words, at)? {
            0 => return Some(writes),
            1 => {}
            _ => return None,
        }
        writes.push(decode_array(words, at)?);
    }
}

/// A reply header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) xid: u32,
    pub(crate) vers: u32,
    pub(crate) grant: u32,
    pub(crate) procedure: u32,
    pub(crate) writes: Vec<Vec<Seg>>,
    pub(crate) reply: Option<Vec<Seg>>,
}

/// Decodes a reply header that must fill `bytes`.
pub(crate) fn decode_reply(bytes: &[u8]) -> Option<Reply> {
    let words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    let mut at = 0;
    let xid = next(&words, &mut at)?;
    let vers = next(&words, &mut at)?;
    let grant = next(&words, &mut at)?;
    let procedure = next(&words, &mut at)?;
    let reads = decode_reads(&words, &mut at)?;
    let writes = decode_writes(&words, &mut at)?;
    let reply = match next(&words, &mut at)? {
        0 => None,
        1 => Some(decode_array(&words, &mut at)?),
        _ => return None,
    };
    (reads.is_empty() && at * 4 == bytes.len()).then_some(Reply {
        xid,
        vers,
        grant,
        procedure,
        writes,
        reply,
    })
}
