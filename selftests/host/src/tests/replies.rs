// SPDX-License-Identifier: GPL-2.0

//! How payloads are bound to Write chunks, and what becomes of payloads that were given up.

use crate::{
    check_reply::{
        wire_len,
        ReplyCase, //
    },
    frame::Seg,
    proto::{
        plan::ReplyError,
        plan_reply,
        writes::WriteOp,
        Payloads,
        ReplyLists, //
    },
};

fn chunk(n: u32, len: u32) -> Vec<Seg> {
    vec![(n, len, u64::from(n) << 32)]
}

fn case(writes: Vec<Vec<Seg>>, payloads: &[(u32, u32)], xdr_len: u32) -> ReplyCase {
    ReplyCase {
        writes,
        reply: None,
        payloads: payloads.to_vec(),
        xdr_len,
        inline_max: 4096,
    }
}

/// Handle, offset in the stream, and length of each Write.
fn writes(case: &ReplyCase) -> Vec<(u32, u32, u32)> {
    let plan = case.check().plan.unwrap();
    let wire = case.wire();
    let lists = ReplyLists::from_wire(&wire).unwrap();
    plan.writes(&lists)
        .map(|op| (op.handle, op.src_off, op.len))
        .collect()
}

/// Offset and length of what goes inline.
fn inline(case: &ReplyCase) -> Vec<(u32, u32)> {
    let plan = case.check().plan.unwrap();
    plan.inline_ranges()
        .map(|range| (range.off, range.len))
        .collect()
}

#[test]
fn in_order() {
    // R25, U5: READ, READLINK, READ with chunks A, B, C.
    let abc = case(
        vec![chunk(1, 100), chunk(2, 100), chunk(3, 100)],
        &[(40, 10), (60, 5), (80, 100)],
        180,
    );
    assert_eq!(writes(&abc), [(1, 40, 10), (2, 60, 5), (3, 80, 100)]);
    // R8: each roundup goes with its item.
    assert_eq!(inline(&abc), [(0, 40), (52, 8), (68, 12)]);
    // U9: more payloads than chunks.
    let one = case(vec![chunk(1, 100)], &[(40, 10), (60, 5)], 180);
    assert_eq!(writes(&one), [(1, 40, 10)]);
    assert_eq!(inline(&one), [(0, 40), (52, 128)]);
    // U7, R27: an empty chunk in the middle uses up its payload.
    let empty = case(
        vec![chunk(1, 100), Vec::new(), chunk(3, 100)],
        &[(40, 10), (60, 5), (80, 100)],
        180,
    );
    assert_eq!(writes(&empty), [(1, 40, 10), (3, 80, 100)]);
    assert_eq!(inline(&empty), [(0, 40), (52, 28)]);
    // No bytes, no chunk.
    let nothing = case(vec![chunk(1, 100)], &[(40, 0), (60, 5)], 180);
    assert_eq!(writes(&nothing), [(1, 60, 5)]);
}

#[test]
fn too_small_a_chunk_has_had_its_turn() {
    let case = case(vec![chunk(1, 9), chunk(2, 100)], &[(40, 10), (60, 10)], 180);
    let pushes = case.check().pushes;
    assert_eq!(pushes, [Err(ReplyError::WriteChunkTooSmall), Ok(())]);
    assert_eq!(writes(&case), [(2, 60, 10)]);
}

#[test]
fn given_up() {
    // The COMPOUND was cut in front of the READ after its data had been reported.
    for xdr_len in [36, 40, 44, 49] {
        let cut = case(vec![chunk(1, 100)], &[(40, 10)], xdr_len);
        assert_eq!(writes(&cut), []);
        assert_eq!(inline(&cut), [(0, xdr_len)]);
    }
    // All of it is there, with or without its roundup.
    for xdr_len in 50..=52 {
        let whole = case(vec![chunk(1, 100)], &[(40, 10)], xdr_len);
        assert_eq!(writes(&whole), [(1, 40, 10)]);
        assert_eq!(inline(&whole), [(0, 40)]);
    }
    // Something else was encoded in its place.
    let replaced = case(
        vec![chunk(1, 100), chunk(2, 100)],
        &[(40, 10), (48, 20)],
        180,
    );
    assert_eq!(writes(&replaced), [(2, 48, 20)]);
    let kept = case(
        vec![chunk(1, 100), chunk(2, 100)],
        &[(40, 10), (52, 20)],
        180,
    );
    assert_eq!(writes(&kept), [(1, 40, 10), (2, 52, 20)]);
}

#[test]
fn not_an_xdr_item() {
    let bad = [Err(ReplyError::BadPayload)];
    for (off, len) in [
        (41, 4),
        (42, 4),
        (43, 4),
        (0xffff_fffc, 4),
        (8, 0xffff_fffc),
    ] {
        let case = case(vec![chunk(1, 0xffff_ffff)], &[(off, len)], 180);
        assert_eq!(case.check().pushes, bad);
    }
}

#[test]
fn reply_chunk_in_runs() {
    // The reduced stream has three runs, and the segments of the Reply chunk cut across them.
    let case = ReplyCase {
        writes: vec![chunk(1, 100), chunk(2, 100)],
        reply: Some(vec![(7, 50, 0x7000), (8, 0, 0x8000), (9, 500, 0x9000)]),
        payloads: vec![(40, 10), (60, 5)],
        xdr_len: 180,
        inline_max: 140,
    };
    let plan = case.check().plan.unwrap();
    let wire = case.wire();
    let lists = ReplyLists::from_wire(&wire).unwrap();
    let op = |handle: u32, offset: u64, src_off: u32, len: u32| WriteOp {
        handle,
        offset,
        src_off,
        len,
    };
    assert!(plan.writes(&lists).eq([
        op(1, 1 << 32, 40, 10),
        op(2, 2 << 32, 60, 5),
        op(7, 0x7000, 0, 40),
        op(7, 0x7000 + 40, 52, 8),
        op(7, 0x7000 + 48, 68, 2),
        op(9, 0x9000, 70, 110),
    ]));
}

#[test]
fn numbers_near_the_end() {
    // Nothing overflows, whatever the upper layer says.
    let wire = case(vec![vec![(1, u32::MAX, 0), (1, u32::MAX, 0)]], &[], 0).wire();
    let lists = ReplyLists::from_wire(&wire).unwrap();
    let edges = [
        0,
        1,
        3,
        4,
        0x7fff_fffc,
        0xffff_fff0,
        0xffff_fffc,
        0xffff_ffff,
    ];
    for off in edges {
        for len in edges {
            for xdr_len in edges {
                for inline_max in edges {
                    let mut payloads = Payloads::default();
                    let _ = payloads.push(&lists, off, len);
                    let Ok(plan) = plan_reply(&lists, &payloads, xdr_len, inline_max) else {
                        continue;
                    };
                    assert!(wire_len(&plan) <= inline_max as usize);
                    let inline: u64 = plan.inline_ranges().map(|range| u64::from(range.len)).sum();
                    let written: u64 = plan.writes(&lists).map(|op| u64::from(op.len)).sum();
                    assert!(inline + written <= u64::from(xdr_len));
                    assert!(inline + written + 3 >= u64::from(xdr_len));
                }
            }
        }
    }
}

#[test]
fn payloads_reported_at_their_count_are_moved() {
    // A reply of ten words: word 4 is the count 8 of an item in words 5 and 6; word 8 is the count 4
    // of an item in word 9. The first is reported at its count, as nfsd does for READLINK4.
    let words = [0, 0, 0, 0, 8, 0x6162_6364, 0x6566_6768, 0, 4, 0x696a_6b6c];
    let wire = case(vec![chunk(1, 64), chunk(2, 64)], &[], 40).wire();
    let lists = ReplyLists::from_wire(&wire).unwrap();
    let mut payloads = Payloads::default();
    payloads.push(&lists, 16, 8).unwrap();
    payloads.push(&lists, 36, 4).unwrap();
    payloads.skip_counts(|off| words.get(off as usize / 4).copied());
    let plan = plan_reply(&lists, &payloads, 40, 4096).unwrap();
    let places: Vec<_> = plan.writes(&lists).map(|op| (op.src_off, op.len)).collect();
    assert_eq!(places, [(20, 8), (36, 4)]);
}

#[test]
fn payloads_behind_their_count_stay() {
    // Data that looks like its own count; a payload at the very front; one that was given up.
    for (off, len, words, moved) in [
        (12, 8, [0, 0, 8, 8, 1, 2], 12),
        (0, 8, [8, 1, 2, 3, 4, 5], 4),
        (0, 8, [7, 8, 2, 3, 4, 5], 0),
        (8, 8, [0, 7, 8, 1, 2, 3], 12),
        (8, 8, [0, 8, 7, 1, 2, 3], 8),
        (8, 1, [0, 7, 1, 1, 2, 3], 12),
    ] {
        let wire = case(vec![chunk(1, 64)], &[], 24).wire();
        let lists = ReplyLists::from_wire(&wire).unwrap();
        let mut payloads = Payloads::default();
        payloads.push(&lists, off, len).unwrap();
        // Twice makes no difference.
        for _ in 0..2 {
            payloads.skip_counts(|off| words.get(off as usize / 4).copied());
        }
        let plan = plan_reply(&lists, &payloads, 24, 4096).unwrap();
        let places: Vec<_> = plan.writes(&lists).map(|op| (op.src_off, op.len)).collect();
        assert_eq!(places, [(moved, len)], "{words:?}");
    }

    // Chunks without a payload, and payloads behind the end, are left alone.
    let wire = case(vec![chunk(1, 64), chunk(2, 64)], &[], 24).wire();
    let lists = ReplyLists::from_wire(&wire).unwrap();
    let mut payloads = Payloads::default();
    payloads.push(&lists, 400, 8).unwrap();
    payloads.skip_counts(|off| (off < 24).then_some(0));
    let plan = plan_reply(&lists, &payloads, 24, 4096).unwrap();
    assert_eq!(plan.write_count(&lists), 0);
    assert!(plan.inline_ranges().map(|range| range.len).eq([24]));
}
