// SPDX-License-Identifier: GPL-2.0

//! Random messages and replies, checked against the second decoder.
//!
//! Three kinds of message: well-formed ones whose positions and lengths are near each other, so that
//! each boundary is met; such ones with a few words or bytes changed; and random words.

use crate::{
    check_call::check_call,
    check_reply::ReplyCase,
    frame::{
        rpc_call,
        words,
        Frame,
        Seg,
        X, //
    },
    proto::{
        cm_private,
        encode_cm_private,
        CmPrivate,
        Ingress,
        Limits,
        ReplyLists, //
    },
};

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{
        select,
        Index, //
    },
};

/// Many cases; one that fails is printed, not stored in the tree.
pub(super) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn limits() -> impl Strategy<Value = Limits> {
    (select(vec![0, 3, 16, 256]), select(vec![40, 64, 100, 8192])).prop_map(
        |(max_segments, max_call_bytes)| Limits {
            max_segments,
            max_call_bytes,
        },
    )
}

/// A segment; mostly short, so that streams are small.
fn seg() -> impl Strategy<Value = Seg> {
    let length = prop_oneof![
        8 => 0..20_u32,
        2 => 0..5000_u32,
        1 => select(vec![0x7fff_ffff, 0x8000_0000, 0xffff_fffc, 0xffff_ffff]),
    ];
    let offset = prop_oneof![
        8 => 0..1_u64 << 48,
        1 => (0..64_u64).prop_map(|n| u64::MAX - n),
    ];
    (0..4_u32, length, offset)
}

fn frame() -> impl Strategy<Value = Frame> {
    let position = prop_oneof![
        4 => (10..30_u32).prop_map(|n| 4 * n),
        1 => Just(0_u32),
        1 => 0..120_u32,
    ];
    (
        prop_oneof![3 => Just(0_u32), 2 => Just(1_u32)],
        vec((position, seg()), 0..6),
        vec(vec(seg(), 0..4), 0..3),
        option::of(vec(seg(), 0..4)),
        0..120_usize,
        any::<bool>(),
    )
        .prop_map(|(procedure, mut reads, writes, reply, len, call_chunk)| {
            if procedure == 1 && call_chunk {
                reads.push((0, (9, 60, 0x1000)));
            } else if procedure == 0 && call_chunk {
                reads.retain(|(position, _)| *position != 0);
            }
            Frame {
                procedure,
                reads,
                writes,
                reply,
                ..Frame::msg(if procedure == 0 {
                    rpc_call(X, len)
                } else {
                    Vec::new()
                })
            }
        })
}

/// Sorted, non-overlapping chunks of a Call that is accepted.
fn good_frame() -> impl Strategy<Value = Frame> {
    let chunk = (0..40_u32, vec((0..3000_u32, 0..1_u64 << 40), 1..4));
    (
        any::<bool>(),
        vec(chunk, 0..5),
        vec(vec(seg(), 0..4), 0..3),
        any::<u64>(),
    )
        .prop_map(|(nomsg, chunks, writes, seed)| {
            let mut reads = Vec::new();
            let mut position = 40;
            let mut base = 40;
            for (gap, segs) in chunks {
                position += 4 * gap;
                base += 4 * gap;
                let len: u32 = segs.iter().map(|seg| seg.0).sum();
                for (n, (length, offset)) in (0..).zip(segs) {
                    reads.push((position, (n, length, offset)));
                }
                position += len.next_multiple_of(4).max(4);
                base += if len == 0 { 4 } else { 0 };
            }
            if nomsg {
                let half = base / 3;
                reads.push((0, (77, half, 0x1000)));
                reads.push((0, (78, base - half + 3, 0x8000)));
            }
            // Any order that keeps each chunk's own: rotate, and merge from both ends.
            let n = reads.len().max(1);
            let at = usize::try_from(seed % 1000).unwrap() % n;
            let tail = reads.split_off(at.min(reads.len()));
            let same = tail
                .first()
                .is_some_and(|(first, _)| reads.iter().any(|(other, _)| first == other));
            let reads = if same {
                [reads, tail].concat()
            } else {
                [tail, reads].concat()
            };
            let payload = if nomsg {
                Vec::new()
            } else {
                rpc_call(X, base as usize + 8)
            };
            Frame {
                procedure: u32::from(nomsg),
                reads,
                writes: writes
                    .into_iter()
                    .map(|chunk| chunk.into_iter().filter(|seg| seg.2 < 1 << 62).collect())
                    .collect(),
                ..Frame::msg(payload)
            }
        })
}

/// A change to a message.
#[derive(Clone, Debug)]
enum Change {
    Word(Index, u32),
    Byte(Index, u8),
    Cut(Index),
    Append(Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    let word = prop_oneof![
        4 => 0..6_u32,
        2 => (0..40_u32).prop_map(|n| 4 * n),
        1 => select(vec![0x0fff_ffff, 0x1000_0000, 0x8000_0000, 0xffff_fffc, 0xffff_ffff]),
        1 => any::<u32>(),
    ];
    prop_oneof![
        6 => (any::<Index>(), word).prop_map(|(at, word)| Change::Word(at, word)),
        2 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        1 => any::<Index>().prop_map(Change::Cut),
        1 => vec(any::<u8>(), 1..9).prop_map(Change::Append),
    ]
}

fn apply(msg: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Word(at, word) if msg.len() >= 4 => {
            let at = 4 * at.index(msg.len() / 4);
            msg[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        Change::Byte(at, byte) if !msg.is_empty() => {
            let at = at.index(msg.len());
            msg[at] = *byte;
        }
        Change::Cut(at) => msg.truncate(at.index(msg.len() + 1)),
        Change::Append(bytes) => msg.extend(bytes),
        Change::Word(..) | Change::Byte(..) => {}
    }
}

/// Lists, payloads and thresholds near each other.
pub(super) fn reply_case() -> impl Strategy<Value = ReplyCase> {
    let seg = || (0..4_u32, 0..60_u32, 0..1_u64 << 40);
    let payloads = vec((0..30_u32, 0..80_u32), 0..5).prop_map(|gaps| {
        let mut at = 0;
        let mut payloads = Vec::new();
        for (gap, len) in gaps {
            at += 4 * gap;
            payloads.push((at, len));
            // Now and then one that begins inside the last.
            if gap % 7 != 3 {
                at += len.next_multiple_of(4);
            }
        }
        payloads
    });
    (
        vec(vec(seg(), 0..5), 0..4),
        option::of(vec(seg(), 0..5)),
        payloads,
        0..500_u32,
        select(vec![28, 100, 200, 300, 1024]),
    )
        .prop_map(|(writes, reply, payloads, xdr_len, inline_max)| ReplyCase {
            writes,
            reply,
            payloads,
            xdr_len,
            inline_max,
        })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn frames(frame in frame(), limits in limits()) {
        let _ = check_call(&frame.bytes(), &limits);
    }

    #[test]
    fn good_frames(frame in good_frame()) {
        let limits = Limits { max_segments: 256, max_call_bytes: 1 << 20 };
        let bytes = frame.bytes();
        let Ok(Ingress::Call(call)) = check_call(&bytes, &limits) else {
            panic!("rejected");
        };
        // The reply header fits wherever the Call's did.
        let lists = ReplyLists::from_wire(call.reply_lists_wire()).unwrap();
        let plan = crate::proto::plan_reply(&lists, &Default::default(), 0, u32::MAX).unwrap();
        prop_assert!(plan.header_len() <= call.header_len());
    }

    #[test]
    fn changed_frames(
        frame in prop_oneof![frame(), good_frame()],
        changes in vec(change(), 1..4),
        limits in limits(),
    ) {
        let mut bytes = frame.bytes();
        for change in &changes {
            apply(&mut bytes, change);
        }
        let _ = check_call(&bytes, &limits);
    }

    #[test]
    fn random_words(procedure in 0..6_u32, tail in vec(0..5_u32, 0..40), limits in limits()) {
        let msg = [vec![0, 1, 2, procedure], tail].concat();
        let _ = check_call(&words(&msg), &limits);
    }

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..100), limits in limits()) {
        let _ = check_call(&bytes, &limits);
    }

    #[test]
    fn random_lists(words_ in vec(0..4_u32, 0..40)) {
        // Bytes that did not come from a Call do no harm.
        let wire = words(&words_);
        if let Some(lists) = ReplyLists::from_wire(&wire) {
            let plan = crate::proto::plan_reply(&lists, &Default::default(), 8, u32::MAX).unwrap();
            prop_assert_eq!(plan.header_len(), 20 + wire.len());
            let mut out = vec![0; plan.header_len()];
            let xid = crate::proto::Xid([0; 4]);
            let len = plan.encode(&mut out, &lists, xid, std::num::NonZeroU32::MIN);
            prop_assert_eq!(len, Ok(out.len()));
        }
    }

    #[test]
    fn replies(case in reply_case()) {
        case.check();
    }

    #[test]
    fn private_data(
        before in vec(any::<u8>(), 0..60),
        after in vec(any::<u8>(), 0..60),
        remote_inv: bool,
        send in 1..257_u32,
        recv in 1..257_u32,
        flags: u8,
    ) {
        let own = CmPrivate { remote_inv, send: send << 10, recv: recv << 10 };
        let mut bytes = encode_cm_private(&own).unwrap();
        prop_assert_eq!(bytes[5] & 0xfe, 0);
        bytes[5] |= flags & 0xfe;
        let before: Vec<u8> = before.into_iter().filter(|byte| *byte != 0xf6).collect();
        let all = [&before[..], &bytes, &after].concat();
        prop_assert_eq!(cm_private(&all), own);
        let none = CmPrivate { remote_inv: false, send: 1024, recv: 1024 };
        prop_assert_eq!(cm_private(&all[..before.len() + 7]), none);
    }
}
