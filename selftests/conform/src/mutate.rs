// SPDX-License-Identifier: GPL-2.0
//! Mutations of messages, and what can still be read of the result.

use crate::{
    frame::{self, Lists},
    message::Message,
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

/// How the results of a message are encoded, by what it says after the mutations.
pub fn kind(message: &Message, before: Kind) -> Kind {
    let Some((lists, payload)) = parse(&message.bytes) else {
        return before;
    };
    let word = |at: usize| {
        payload
            .get(at..at + 4)
            .map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    };
    if lists.reads.iter().any(|(position, _)| *position < 24) {
        return Kind::Unknown;
    }
    match (word(12), word(16), word(20)) {
        (NFS | NFSACL | MOUNT, _, 0) => Kind::Null,
        (NFS, 3, 1) => Kind::Getattr,
        (NFS, 3, 3) => Kind::Lookup,
        (NFS, 3, 5) => Kind::Readlink,
        (NFS, 3, 6) => Kind::Read,
        (NFS, 3, 7) => Kind::Write,
        (NFS, 3, 16) => Kind::Readdir,
        (NFS, 3, 17) => Kind::Readdirplus,
        (NFS, 4, 1) => Kind::Compound(Ops::ANY),
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

/// Lists and payload of a message, if its header can be read.
pub fn parse(bytes: &[u8]) -> Option<(Lists, &[u8])> {
    let mut words = frame::Words::new(bytes.get(16..)?);
    let mut lists = Lists::default();
    while words.boolean().ok()? {
        let position = words.word().ok()?;
        lists.reads.push((position, words.segment().ok()?));
    }
    while words.boolean().ok()? {
        lists.writes.push(words.chunk().ok()?);
    }
    if words.boolean().ok()? {
        lists.reply = Some(words.chunk().ok()?);
    }
    Some((lists, words.rest))
}
