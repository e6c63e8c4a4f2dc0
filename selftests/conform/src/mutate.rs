// SPDX-License-Identifier: GPL-2.0
//! Mutations of messages, and what can still be read of the result.

use crate::{
    explain::Memory,
    frame::{self, Lists, Segment, MSG, NOMSG},
    message::Message,
    outcome::{Accept, EC, EV, OK},
    rng::Rng,
    rpc::{Kind, Ops, MOUNT, NFS, NFSACL},
};

/// Values that have broken decoders before.
const WORDS: [u32; 16] = [
    0,
    1,
    2,
    3,
    4,
    7,
    0x28,
    0x40,
    0x100,
    0xffff,
    0x1_0000,
    0x1000_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffc,
    0xffff_ffff,
];

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

/// The Payload stream of a message without what other Read chunks than the Position-Zero chunk
/// have; None if there is no such stream.
pub fn stream(message: &[u8], memory: &Memory<'_>) -> Option<Vec<u8>> {
    let (lists, payload) = parse(message)?;
    match word(message, 12) {
        MSG => Some(payload.to_vec()),
        NOMSG => {
            let zero = lists.reads.iter().filter(|(position, _)| *position == 0);
            let parts: Option<Vec<_>> = zero.map(|(_, segment)| memory(segment)).collect();
            parts.map(|p| p.concat())
        }
        _ => None,
    }
}

/// How the results of a message are encoded, by what it says after the mutations; `was` is its
/// stream before them.
pub fn kind(message: &Message, stream: &[u8], before: Kind, was: &[u8]) -> Kind {
    let Some((lists, _)) = parse(&message.bytes) else {
        return before;
    };
    let place = |position: u32| position != 0 && position < 24;
    if lists.reads.iter().any(|(position, _)| place(*position)) {
        return Kind::Unknown;
    }
    // What is in chunks may be in another place of the call now, or be cut.
    let reduced = lists.reads.iter().any(|(position, _)| *position != 0);
    if reduced && matches!(before, Kind::Compound(_)) {
        return Kind::Compound(Ops::ANY);
    }
    if stream.get(4..) == was.get(4..) {
        return before;
    }
    match (word(stream, 12), word(stream, 16), word(stream, 20)) {
        (NFS | NFSACL | MOUNT, _, 0) => Kind::Null,
        (NFS, 3, 1) => Kind::Getattr,
        (NFS, 3, 3) => Kind::Lookup,
        (NFS, 3, 4) => Kind::Access,
        (NFS, 3, 5) => Kind::Readlink,
        (NFS, 3, 6) => Kind::Read,
        (NFS, 3, 7) => Kind::OddWrite,
        (NFS, 3, 8..=10) => Kind::Create,
        (NFS, 3, 12 | 13) => Kind::Remove,
        (NFS, 3, 16) => Kind::Readdir,
        (NFS, 3, 17) => Kind::Readdirplus,
        (NFS, 3, 19) => Kind::Fsinfo,
        (NFS, 3, n @ (2 | 11 | 14 | 15 | 18 | 20 | 21)) => Kind::Other(n),
        (NFS, 4, 1) => Kind::Compound(Ops::ANY),
        (NFSACL, 3, 1) => Kind::Getacl,
        _ => Kind::Unknown,
    }
}

/// Change one word or byte, add or take one, or cut the message.
pub fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    // Mostly in what the transport reads.
    let header = 16 + parse(bytes).map_or(40, |(lists, _)| lists.encode().len());
    let span = if rng.below(4) > 0 {
        header.min(bytes.len())
    } else {
        bytes.len()
    };
    let lane = rng.below(span.div_ceil(4)) * 4;
    let whole = lane + 4 <= bytes.len();
    match rng.below(10) {
        0..=3 if whole => bytes[lane..lane + 4].copy_from_slice(&rng.pick(&WORDS).to_be_bytes()),
        4 if whole => {
            let word = u32::from_be_bytes([
                bytes[lane],
                bytes[lane + 1],
                bytes[lane + 2],
                bytes[lane + 3],
            ]);
            let word = word.wrapping_add(rng.below(17) as u32).wrapping_sub(8);
            bytes[lane..lane + 4].copy_from_slice(&word.to_be_bytes());
        }
        5 if whole => {
            bytes.drain(lane..lane + 4);
        }
        6 => {
            let word = rng.pick(&WORDS).to_be_bytes();
            bytes.splice(lane..lane, word);
        }
        7 => bytes.truncate(rng.below(bytes.len() + 1)),
        8 => {
            let at = rng.below(span);
            bytes[at] ^= 1 << rng.below(8);
        }
        _ => {
            let at = rng.below(span);
            bytes[at] = rng.next() as u8;
        }
    }
}

/// What every server has to answer, if that is certain; `right` is a message without fault that
/// this one was made from.
pub fn must_answer(bytes: &[u8], limit: usize, right: Option<&Message>) -> Option<Accept> {
    if !(28..=limit).contains(&bytes.len()) || word(bytes, 12) > NOMSG {
        return None;
    }
    // Another version (M025), a header that cannot be read (M015, M043, M090).
    if word(bytes, 4) != 1 {
        return Some(EV);
    }
    if parse(bytes).is_none() {
        return Some(EC);
    }
    // Only the credits that it asks for may be others. Of chunks RFC 8166 lets a server refuse
    // some, as too many (section 4.5.3).
    let same = |was: &Message| bytes[..8] == was.bytes[..8] && bytes[12..] == was.bytes[12..];
    right.filter(|was| same(was)).map(|_| OK | EC)
}

/// Whether no server may close the connection because of this message: all other outcomes of
/// the cases that are like it keep it. `limit` is what the server takes in one Send, `was` the
/// message before the mutations with its stream.
pub fn must_stay(
    bytes: &[u8],
    limit: usize,
    memory: &Memory<'_>,
    was: &Message,
    was_stream: &[u8],
) -> bool {
    if bytes.len() > limit {
        return false;
    }
    let (vers, proc) = (word(bytes, 4), word(bytes, 12));
    // Too short (M001), of another version (M025), of a procedure without a call (M031 to M038).
    if bytes.len() < 28 || vers != 1 || proc > NOMSG {
        return true;
    }
    // A header that cannot be read (M015 to M022, M043 to M048, M090 to M094).
    let Some((lists, payload)) = parse(bytes) else {
        return true;
    };
    let segments = lists.reads.iter().map(|(_, segment)| segment);
    let mut all = segments.chain(lists.echoed().flatten());
    // Memory of others (M116 and so on), addresses that wrap (M084).
    if all.any(|segment: &Segment| memory(segment).is_none()) {
        return false;
    }
    let zero = lists.reads.iter().any(|(position, _)| *position == 0);
    // Where the call is (M069 to M076), Positions that are none (M049).
    if zero != (proc == NOMSG) || proc == NOMSG && !payload.is_empty() {
        return true;
    }
    if lists.reads.iter().any(|(position, _)| position % 4 != 0) {
        return true;
    }
    // Data in another place than they were may leave a call that makes no sense (C02).
    let places = |lists: &Lists| {
        let mut all: Vec<_> = lists.reads.iter().map(|(position, _)| *position).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    if places(&lists) != places(&was.lists) {
        return false;
    }
    let Some(stream) = stream(bytes, memory) else {
        return false;
    };
    if stream.is_empty() {
        return true;
    }
    match (proc, stream.len(), word(&stream, 4)) {
        // Not even a direction (M010 to M012), none that is known (M169), a reply (M163, M168).
        (MSG, 0..8, _) | (MSG, _, 1..) => return true,
        // The same in a Position-Zero chunk (M077, M083).
        (NOMSG, 0..8, _) | (NOMSG, _, 1..) => return false,
        _ => {}
    }
    // A call cut short (M013, M014, M023), RPCSEC_GSS without a context (M186).
    let (flavor, credential) = (word(&stream, 24), word(&stream, 28) as usize);
    if stream.len() < was_stream.len().max(40) || matches!(flavor, 6 | 7) {
        return false;
    }
    // A credential that is too long (M185), or the verifier behind one that is not.
    let verifier = 32 + credential.next_multiple_of(4);
    credential > 400 || {
        let body = word(&stream, verifier + 4) as usize;
        stream.len() >= verifier + 8 && (body > 400 || stream.len() - verifier - 8 >= body)
    }
}

/// Lists and payload of a message, if its header can be read.
pub fn parse(bytes: &[u8]) -> Option<(Lists, &[u8])> {
    parse_by(bytes, |words| words.boolean().ok())
}

/// The same with another idea of discriminators.
pub fn parse_by<'a>(
    bytes: &'a [u8],
    follows: impl Fn(&mut frame::Words<'a>) -> Option<bool>,
) -> Option<(Lists, &'a [u8])> {
    let mut words = frame::Words::new(bytes.get(16..)?);
    let mut lists = Lists::default();
    while follows(&mut words)? {
        let position = words.word().ok()?;
        lists.reads.push((position, words.segment().ok()?));
    }
    while follows(&mut words)? {
        lists.writes.push(words.chunk().ok()?);
    }
    if follows(&mut words)? {
        lists.reply = Some(words.chunk().ok()?);
    }
    Some((lists, words.rest))
}
