// SPDX-License-Identifier: GPL-2.0

//! Malformed input, section E of the catalogue: Write list and Reply chunk.

use super::{
    call,
    expect,
    expect_within,
    Is,
    LIMITS, //
};
use crate::{
    check_reply::{
        wire_len,
        ReplyCase, //
    },
    frame::{
        null_call,
        words,
        Frame,
        Seg,
        K,
        X, //
    },
    proto::{
        plan::ReplyError,
        reject::Reason,
        Limits,
        ReplyForm,
        ReplyLists, //
    },
};

const BASE: u64 = 0x7f00_0000_2000;

fn seg(len: u32) -> Seg {
    (0x2345, len, BASE)
}

/// Segments of the given lengths, each with memory of its own.
fn segs(lens: &[u32]) -> Vec<Seg> {
    (0x100..)
        .zip(lens)
        .map(|(n, len)| (n, *len, u64::from(n) << 32))
        .collect()
}

fn null() -> Frame {
    Frame::msg(null_call())
}

/// A READ of `len` bytes behind 128 bytes of header and attributes.
fn read_reply(chunks: &[&[u32]], len: u32) -> ReplyCase {
    ReplyCase {
        writes: chunks.iter().map(|lens| segs(lens)).collect(),
        reply: None,
        payloads: vec![(128, len)],
        xdr_len: 128 + len.next_multiple_of(4),
        inline_max: 4096,
    }
}

/// A reply of `xdr_len` bytes without a payload, with a Reply chunk.
fn other_reply(lens: &[u32], xdr_len: u32) -> ReplyCase {
    ReplyCase {
        writes: Vec::new(),
        reply: Some(segs(lens)),
        payloads: Vec::new(),
        xdr_len,
        inline_max: 4096,
    }
}

/// The lengths in the encoded lists, by chunk.
fn lengths(case: &ReplyCase) -> (ReplyForm, Vec<Vec<u32>>) {
    let plan = case.check().plan.unwrap();
    let wire = case.wire();
    let lists = ReplyLists::from_wire(&wire).unwrap();
    let mut out = vec![0; plan.header_len()];
    plan.encode(
        &mut out,
        &lists,
        crate::proto::Xid([0; 4]),
        std::num::NonZeroU32::MIN,
    )
    .unwrap();
    let reply = crate::naive::decode_reply(&out).unwrap();
    let lengths = reply
        .writes
        .iter()
        .chain(&reply.reply)
        .map(|chunk| chunk.iter().map(|seg| seg.1).collect())
        .collect();
    (plan.form(), lengths)
}

#[test]
fn e_counts() {
    let empty = null().write(&[]).bytes();
    expect("M089", &empty, Is::Call);
    assert_eq!(call(&empty).reply_lists_wire(), words(&[1, 0, 0, 0]));

    let with_count = |count: u32, segs: usize| {
        let mut lists = vec![X, 1, K, 0, 0, 1, count];
        for _ in 0..segs {
            lists.extend([0x2345, 64, 0x7f00, 0x2000]);
        }
        lists.extend([0, 0]);
        [words(&lists), null_call()].concat()
    };
    let truncated = Is::Ec(Reason::WriteTruncated);
    expect("M090", &with_count(0xffff_ffff, 1), truncated);
    expect("M091", &with_count(0x1000_0000, 1), truncated);
    for count in [0x0fff_ffff, 0x8000_0000, 0x7fff_ffff] {
        expect("M092", &with_count(count, 1), truncated);
    }
    // 16 + 8 + 40 bytes are left behind the count.
    expect("M093", &with_count(4 + 1, 1), truncated);
    // The terminators and the payload are taken for segments: nothing remains.
    expect("M094", &with_count(4, 1), Is::Ec(Reason::NoTerminator));
    expect("M094", &with_count(1, 1), Is::Call);

    let many = null().write(&[seg(16); 250]).bytes();
    expect("M095", &many, Is::Call);
    let chunks = |count: usize| {
        let mut frame = null();
        for _ in 0..count {
            frame = frame.write(&[seg(64)]);
        }
        frame.bytes()
    };
    expect("M096", &chunks(8), Is::Call);
    expect("M096", &chunks(9), Is::Ec(Reason::TooManyWriteChunks));
    expect("M096", &chunks(100), Is::Ec(Reason::TooManyWriteChunks));
    assert!(ReplyLists::from_wire(&chunks(9)[20..20 + 9 * 24 + 8]).is_none());

    let one = Limits {
        max_segments: 1,
        ..LIMITS
    };
    let two = null().write(&[seg(1), seg(1)]).bytes();
    expect_within("two of one", &two, &one, Is::Ec(Reason::TooManySegments));
    let two = null().reply(&[seg(1), seg(1)]).bytes();
    expect_within("two of one", &two, &one, Is::Ec(Reason::TooManySegments));
}

#[test]
fn e_inline_call_with_any_lists() {
    // Whatever lists there are, the RPC message begins where they end.
    for lists in 0..8 {
        let mut frame = Frame::msg(crate::frame::rpc_call(X, 80));
        if lists & 1 != 0 {
            frame = frame.read(44, seg(8));
        }
        if lists & 2 != 0 {
            frame = frame.write(&[]).write(&[seg(8)]).write(&[]);
        }
        if lists & 4 != 0 {
            frame = frame.reply(&[seg(8), seg(8)]);
        }
        let msg = frame.bytes();
        assert_eq!(call(&msg).payload(), frame.payload);
        assert_eq!(call(&msg).header_len(), msg.len() - 80);
    }
}

#[test]
fn e_empty_chunks_anywhere() {
    // One result for each chunk; those of the empty ones stay inline.
    for empty in 0..3 {
        let mut writes = vec![segs(&[40]), segs(&[41]), segs(&[42])];
        writes[empty].clear();
        let case = ReplyCase {
            writes,
            payloads: vec![(128, 40), (176, 40), (224, 40)],
            xdr_len: 264,
            ..read_reply(&[], 0)
        };
        assert_eq!(case.check().pushes, [Ok(()); 3]);
        let lens: Vec<u32> = lengths(&case)
            .1
            .iter()
            .map(|chunk| chunk.iter().sum())
            .collect();
        let expected: Vec<u32> = (0..3).map(|n| if n == empty { 0 } else { 40 }).collect();
        assert_eq!(lens, expected);
        assert_eq!(
            wire_len(&case.check().plan.unwrap()),
            28 + 3 * 8 + 2 * 16 + 264 - 80
        );
    }
}

#[test]
fn e_write_chunks() {
    // M089: the chunk is used up, the item is inline.
    let case = read_reply(&[&[]], 100);
    assert_eq!(case.check().pushes, [Ok(())]);
    assert_eq!(wire_len(&case.check().plan.unwrap()), 36 + 228);
    // M095.
    let case = read_reply(&[&[16; 250]], 4000);
    assert_eq!(
        lengths(&ReplyCase {
            inline_max: 8192,
            ..case
        })
        .1[0],
        [16; 250]
    );

    // M097: the chunk takes nothing, so the payload does not fit.
    let none = read_reply(&[&[0, 0, 0]], 100);
    assert_eq!(none.check().pushes, [Err(ReplyError::WriteChunkTooSmall)]);
    // M098.
    assert_eq!(lengths(&read_reply(&[&[50, 0, 50]], 100)).1, [[50, 0, 50]]);
    // M100.
    let small = read_reply(&[&[50, 49]], 100);
    assert_eq!(small.check().pushes, [Err(ReplyError::WriteChunkTooSmall)]);
    assert_eq!(read_reply(&[&[50, 50]], 100).check().pushes, [Ok(())]);
    // M101 and M103: nothing was reported.
    let mut unused = read_reply(&[&[100, 50]], 100);
    unused.payloads.clear();
    assert_eq!(lengths(&unused).1, [[0, 0]]);
    // M102.
    assert_eq!(
        lengths(&read_reply(&[&[60, 60], &[100]], 100)).1,
        [vec![60, 40], vec![0]]
    );
    // R13.
    assert_eq!(
        lengths(&read_reply(&[&[100, 100, 100, 100]], 250)).1,
        [[100, 100, 50, 0]]
    );
    // R15: five bytes, no pad.
    assert_eq!(lengths(&read_reply(&[&[8]], 5)).1, [[5]]);
}

#[test]
fn e_lengths_that_wrap() {
    // M099: the capacity is 4 GiB and one byte.
    let far: Seg = (1, 0xffff_ffff, 0);
    let msg = null().write(&[far, (2, 2, BASE)]).bytes();
    expect("M099", &msg, Is::Call);
    let case = ReplyCase {
        writes: vec![vec![far, (2, 2, BASE)]],
        ..read_reply(&[], 100)
    };
    assert_eq!(lengths(&case).1, [[100, 0]]);
    let lists = case.wire();
    let lists = ReplyLists::from_wire(&lists).unwrap();
    let mut payloads = crate::proto::payloads::Payloads::default();
    assert_eq!(payloads.push(&lists, 0, 0xffff_ff00), Ok(()));

    let wrap = Is::Ec(Reason::SegmentWrap);
    let top: Seg = (1, 16, u64::MAX - 15);
    expect("M113", &null().write(&[seg(4), top]).bytes(), wrap);
    expect("M113", &null().reply(&[seg(4), top]).bytes(), wrap);
    let below: Seg = (1, 15, u64::MAX - 15);
    expect(
        "M113",
        &null().write(&[below]).reply(&[below]).bytes(),
        Is::Call,
    );
}

#[test]
fn e_reply_chunk() {
    let empty = null().reply(&[]).bytes();
    expect("M104", &empty, Is::Call);
    // Inline if it fits, else nothing helps.
    assert_eq!(
        lengths(&other_reply(&[], 100)),
        (ReplyForm::Inline, vec![vec![]])
    );
    let large = other_reply(&[], 5000).check().plan;
    assert_eq!(large.err(), Some(ReplyError::NoReplyChunk), "M104");

    let huge = [words(&[X, 1, K, 0, 0, 0, 1, 0xffff_ffff]), null_call()].concat();
    expect("M105", &huge, Is::Ec(Reason::ReplyTruncated));

    let small = other_reply(&[4000, 999], 5000).check().plan;
    assert_eq!(small.err(), Some(ReplyError::ReplyChunkTooSmall), "M106");
    let exact = other_reply(&[4000, 1000], 5000);
    assert_eq!(
        lengths(&exact),
        (ReplyForm::ReplyChunk, vec![vec![4000, 1000]])
    );
    let tiny = other_reply(&[8], 8192).check().plan;
    assert_eq!(tiny.err(), Some(ReplyError::ReplyChunkTooSmall), "M107");
    let gap = other_reply(&[2000, 0, 8000], 8192);
    assert_eq!(lengths(&gap).1, [[2000, 0, 6192]], "M108");
    // M109: the header has 4024 bytes, so the reply cannot go inline, and the chunk holds 2000.
    let many = other_reply(&[8; 250], 1900);
    let (form, lens) = lengths(&many);
    assert_eq!(form, ReplyForm::ReplyChunk);
    assert_eq!(lens[0].iter().sum::<u32>(), 1900);
    assert_eq!(lens[0][237..239], [4, 0]);
}

#[test]
fn e_write_list_and_reply_chunk() {
    let both = |write: &[u32], reply: &[u32], inline_max: u32| ReplyCase {
        reply: Some(segs(reply)),
        inline_max,
        ..read_reply(&[write], 6001)
    };
    // M110: room for what remains. The roundup goes with the data.
    let case = both(&[6001], &[128], 100);
    assert_eq!(
        lengths(&case),
        (ReplyForm::ReplyChunk, vec![vec![6001], vec![128]])
    );
    let case = both(&[6001], &[127], 100);
    assert_eq!(
        case.check().plan.err(),
        Some(ReplyError::ReplyChunkTooSmall)
    );
    // M111.
    let case = both(&[9000], &[9000], 100);
    assert_eq!(
        lengths(&case),
        (ReplyForm::ReplyChunk, vec![vec![6001], vec![128]])
    );
    // With a usual threshold what remains goes inline.
    let case = both(&[9000], &[9000], 1024);
    assert_eq!(
        lengths(&case),
        (ReplyForm::Inline, vec![vec![6001], vec![0]])
    );
    // M112: aliases are the peer's own affair.
    let alias: Seg = (1, 64, BASE);
    let msg = null().read(40, alias).write(&[alias]).reply(&[alias]);
    expect("M112", &msg.bytes(), Is::Call);
}

#[test]
fn e_thresholds() {
    // M114.
    let mut large = other_reply(&[], 4096 - 28 + 1);
    large.reply = None;
    assert_eq!(large.check().plan.err(), Some(ReplyError::NoReplyChunk));
    large.xdr_len -= 1;
    assert_eq!(wire_len(&large.check().plan.unwrap()), 4096);
    // R5.
    large.inline_max = 1024;
    assert_eq!(large.check().plan.err(), Some(ReplyError::NoReplyChunk));
    // M115: 250 segments to echo in 1024 bytes.
    let header = ReplyCase {
        inline_max: 1024,
        ..read_reply(&[&[16; 250]], 100)
    };
    assert_eq!(header.check().plan.err(), Some(ReplyError::HeaderTooLarge));
    let header = ReplyCase {
        inline_max: 1024,
        ..other_reply(&[16; 250], 100)
    };
    assert_eq!(header.check().plan.err(), Some(ReplyError::HeaderTooLarge));
}
