// SPDX-License-Identifier: GPL-2.0

//! How payloads are bound to Write chunks, and what becomes of payloads that were given up.

use crate::{
    check_reply::{
        wire_len,
        ReplyCase, //
    },
    frame::Seg,
    proto::{
        payloads::Payloads,
        plan::ReplyError,
        plan_reply,
        writes::WriteOp,
        ReplyLists,
        Reports, //
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
    // No bytes: the chunk has had its turn.
    let nothing = case(vec![chunk(1, 100), chunk(2, 100)], &[(40, 0), (60, 5)], 180);
    assert_eq!(writes(&nothing), [(2, 60, 5)]);
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

/// Where the results of a complete reply are written from, with chunks of 64 bytes.
fn settled(words: &[u32], reports: &[(u32, u32)], chunks: usize) -> Vec<(u32, u32, u32)> {
    let writes = (0..chunks).map(|n| chunk(n as u32, 64)).collect();
    let wire = case(writes, &[], 0).wire();
    let lists = ReplyLists::from_wire(&wire).unwrap();
    let mut all = Reports::default();
    for (off, len) in reports {
        all.add(*off, *len);
    }
    let all = all.settled(|off| words.get(off as usize / 4).copied());
    let payloads = all.bind(&lists).unwrap();
    let plan = plan_reply(&lists, &payloads, words.len() as u32 * 4, 4096).unwrap();
    plan.writes(&lists)
        .map(|op| (op.handle, op.src_off, op.len))
        .collect()
}

#[test]
fn results_reported_at_their_count_are_moved() {
    // A reply of ten words: word 4 is the count 8 of an item in words 5 and 6; word 8 is the count 4
    // of an item in word 9. The first is reported at its count, as nfsd does for READLINK4.
    let words = [0, 0, 0, 0, 8, 0x6162_6364, 0x6566_6768, 0, 4, 0x696a_6b6c];
    assert_eq!(
        settled(&words, &[(16, 8), (36, 4)], 2),
        [(0, 20, 8), (1, 36, 4)]
    );
}

#[test]
fn results_behind_their_count_stay() {
    // Data that looks like its own count; a result at the very front; one that was given up.
    for (off, len, words, moved) in [
        (12, 8, [0, 0, 8, 8, 1, 2], 12),
        (0, 8, [8, 1, 2, 3, 4, 5], 4),
        (0, 8, [7, 8, 2, 3, 4, 5], 0),
        (8, 8, [0, 7, 8, 1, 2, 3], 12),
        (8, 8, [0, 8, 7, 1, 2, 3], 8),
        (8, 1, [0, 7, 1, 1, 2, 3], 12),
    ] {
        assert_eq!(
            settled(&words, &[(off, len)], 1),
            [(0, moved, len)],
            "{words:?}"
        );
    }
    // Chunks without a result, and results behind the end, are left alone.
    assert_eq!(settled(&[0; 6], &[(400, 8)], 2), []);
}

/// A COMPOUND's reply up to its results, READ_PLUS of `data` words, READ of one word.
fn read_plus_and_read(data: u32) -> Vec<u32> {
    let mut words = vec![9; 12];
    // Operation, status, eof, contents, data, offset, count.
    words.extend([68, 0, 0, 1, 0, 0, 77, 4 * data]);
    words.extend((0..data).map(|n| 0x100 + n));
    // Operation, status, eof, count.
    words.extend([25, 0, 1, 4, 0x6162_6364]);
    words
}

#[test]
fn r40_read_plus_is_not_reduced() {
    let words = read_plus_and_read(3);
    let (plus, read) = ((80, 12), (108, 4));
    assert_eq!(settled(&words, &[plus, read], 1), [(0, 108, 4)]);
    assert_eq!(settled(&words, &[plus, read], 2), [(0, 108, 4)]);
    assert_eq!(settled(&words, &[plus], 1), []);
    // Many of them, and a READ behind: no turn is lost.
    let mut many = vec![9; 12];
    let mut reports = Vec::new();
    for _ in 0..9 {
        many.extend([68, 0, 0, 1, 0, 0, 77, 4, 5]);
        reports.push((many.len() as u32 * 4 - 4, 4));
    }
    many.extend([25, 0, 1, 4, 0x6162_6364]);
    reports.push((many.len() as u32 * 4 - 4, 4));
    assert_eq!(
        settled(&many, &reports, 1),
        [(0, many.len() as u32 * 4 - 4, 4)]
    );
    // Each of these words differs from READ_PLUS: another result, which is reduced.
    for at in [12, 13, 15, 16] {
        let mut other = words.clone();
        other[at] ^= 0x40;
        assert_eq!(
            settled(&other, &[plus, read], 2),
            [(0, 80, 12), (1, 108, 4)],
            "word {at}"
        );
    }
}

#[test]
fn results_without_bytes_have_their_turn() {
    // READs at the end of a file and before it: the second has the second chunk.
    let words = [25, 0, 1, 0, 25, 0, 0, 4, 7];
    assert_eq!(settled(&words, &[(16, 0), (32, 4)], 2), [(1, 32, 4)]);
    assert_eq!(settled(&words, &[(16, 0), (32, 4)], 1), []);
}

#[test]
fn results_given_up_lose_their_turn() {
    // Reported again further in front: what was there is gone.
    let words = [25, 0, 0, 4, 7, 8, 9, 10, 11];
    assert_eq!(settled(&words, &[(16, 20), (16, 4)], 2), [(0, 16, 4)]);
    assert_eq!(settled(&words, &[(16, 0), (16, 4)], 2), [(0, 16, 4)]);
    assert_eq!(
        settled(&words, &[(16, 4), (20, 4), (16, 8)], 2),
        [(0, 16, 8)]
    );
    // More than are remembered: those stay inline.
    let words = [4; 100];
    let reports: Vec<_> = (0..40).map(|n| (4 + 8 * n, 4)).collect();
    let written = settled(&words, &reports, 8);
    assert_eq!(written.len(), 8);
    assert!(written.iter().map(|op| op.1).eq((0..8).map(|n| 4 + 8 * n)));
}
