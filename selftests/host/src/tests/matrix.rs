// SPDX-License-Identifier: GPL-2.0

//! What real clients put on the wire: P01 to P30 of the positive matrix, header by header, with
//! segments per chunk in {1, 2, 9, 16} and each length modulo four.

use super::{
    call,
    expect,
    Is, //
};
use crate::{
    check_reply::{
        wire_len,
        ReplyCase, //
    },
    frame::{
        rpc_call,
        Frame,
        Seg,
        X, //
    },
    proto::{
        Layout,
        ReplyForm, //
    },
};

const SEGMENTS: [u32; 4] = [1, 2, 9, 16];
const STARTS: [u64; 3] = [0, 1, 4095];

/// `len` bytes in `count` segments, each with its own handle.
fn chunk(len: u32, count: u32, start: u64) -> Vec<Seg> {
    let each = len / count;
    (0..count)
        .map(|n| {
            let length = if n + 1 == count { len - each * n } else { each };
            (0x100 + n, length, (u64::from(n) << 32) + start)
        })
        .collect()
}

/// All shapes of a chunk of `len` bytes.
fn chunks(len: u32) -> impl Iterator<Item = Vec<Seg>> {
    SEGMENTS.into_iter().flat_map(move |count| {
        STARTS
            .into_iter()
            .map(move |start| chunk(len, count, start))
    })
}

fn with_reads(mut frame: Frame, position: u32, segs: &[Seg]) -> Frame {
    frame.reads.extend(segs.iter().map(|seg| (position, *seg)));
    frame
}

/// Plans the reply to `frame` and returns its form and the bytes of the Send.
fn reply(
    frame: &Frame,
    payloads: &[(u32, u32)],
    xdr_len: u32,
    inline_max: u32,
) -> (ReplyForm, usize) {
    expect("matrix", &frame.bytes(), Is::Call);
    let case = ReplyCase {
        writes: frame.writes.clone(),
        reply: frame.reply.clone(),
        payloads: payloads.to_vec(),
        xdr_len,
        inline_max,
    };
    let outcome = case.check();
    assert!(outcome.pushes.iter().all(|pushed| pushed.is_ok()));
    let plan = outcome.plan.unwrap();
    (plan.form(), wire_len(&plan))
}

#[test]
fn inline_both_ways() {
    // P01, P03, P10: no list at all, up to the threshold.
    for len in [40, 64, 128, 3780, 4068] {
        let frame = Frame::msg(rpc_call(X, len));
        assert_eq!(call(&frame.bytes()).layout(), Layout::Inline);
        assert_eq!(reply(&frame, &[], 132, 4096), (ReplyForm::Inline, 160));
    }
    // P03: the data is reported, but there is no chunk for it.
    let frame = Frame::msg(rpc_call(X, 120));
    assert_eq!(reply(&frame, &[(128, 3000)], 3128, 4096).1, 28 + 3128);
    // P24 has the same lists and a longer header.
    let frame = Frame::msg(rpc_call(X, 400));
    assert_eq!(reply(&frame, &[], 200, 4096).0, ReplyForm::Inline);
}

#[test]
fn reply_chunk_offered() {
    // P02, P09, P16, P18, P19, P21, P25, P27, P28.
    for (offered, xdr_len) in [
        (5000, 800),
        (8192, 8192),
        (1_052_672, 32_768),
        (65_536, 4069),
    ] {
        for segs in chunks(offered) {
            let frame = Frame::msg(rpc_call(X, 200)).reply(&segs);
            let header = 20 + 4 + 8 + 16 * segs.len();
            let expected = if header + xdr_len as usize <= 4096 {
                (ReplyForm::Inline, header + xdr_len as usize)
            } else {
                (ReplyForm::ReplyChunk, header)
            };
            assert_eq!(reply(&frame, &[], xdr_len, 4096), expected);
        }
    }
}

#[test]
fn read() {
    // P04, P05, P06, P07, P17: a Write chunk, with the pad segment of a Linux client.
    for len in [0, 1, 13, 4096, 8192, 8193, 8194, 8195] {
        for mut segs in chunks(8196) {
            segs.push((0x999, 4, 0x9000));
            let frame = Frame::msg(rpc_call(X, 120)).write(&segs);
            let header = 20 + 12 + 16 * segs.len() + 4;
            let xdr_len = 128 + len + (4 - len % 4) % 4;
            // Operations behind the READ are aligned again.
            for after in [0, 16] {
                let send = reply(&frame, &[(128, len)], xdr_len + after, 4096);
                assert_eq!(send, (ReplyForm::Inline, header + 128 + after as usize));
            }
        }
    }
    // P06.
    let frame = Frame::msg(rpc_call(X, 120)).write(&chunk(65_536, 9, 0));
    let failed = reply(&frame, &[], 120, 4096);
    assert_eq!(failed, (ReplyForm::Inline, 20 + 12 + 16 * 9 + 4 + 120));
    // P08.
    let three = Frame::msg(rpc_call(X, 200))
        .write(&chunk(8192, 2, 1))
        .write(&chunk(4096, 1, 0))
        .write(&chunk(8192, 9, 4095));
    let payloads = [(100, 8191), (8300, 5), (8316, 8192)];
    assert_eq!(reply(&three, &payloads, 16_508, 4096).0, ReplyForm::Inline);
}

#[test]
fn write() {
    // P11, P12, P14: the data in a Read chunk, with and without operations behind it.
    for len in [4096, 4097, 4098, 4099, 65_536] {
        for segs in chunks(len) {
            for tail in [0, 16] {
                let frame = with_reads(Frame::msg(rpc_call(X, 120 + tail)), 120, &segs);
                let bytes = frame.bytes();
                let call = call(&bytes);
                let padded = len.next_multiple_of(4);
                assert_eq!(call.call_len(), 120 + padded + tail as u32);
                assert_eq!(call.sink_pages(), padded.div_ceil(4096) as usize);
                assert_eq!(
                    call.layout(),
                    Layout::Single {
                        position: 120,
                        chunk_len: len
                    }
                );
            }
        }
    }
}

#[test]
fn write_of_a_mebibyte() {
    // P13, with the nine segments of a buffer that is not page-aligned.
    let frame = with_reads(Frame::msg(rpc_call(X, 120)), 120, &chunk(1 << 20, 9, 1));
    let bytes = frame.bytes();
    assert_eq!(call(&bytes).call_len(), 120 + (1 << 20));
    assert_eq!(call(&bytes).sink_pages(), 256);
}

#[test]
fn whole_call_in_a_chunk() {
    // P15, P20, P22, P26: NOMSG, with or without a Reply chunk.
    for len in [4096, 5000, 65_536] {
        for segs in chunks(len) {
            let frame = with_reads(Frame::nomsg(), 0, &segs);
            let bytes = frame.bytes();
            assert_eq!(call(&bytes).call_len(), len);
            assert_eq!(call(&bytes).layout(), Layout::Stream);
            assert_eq!(call(&bytes).sink_pages(), len.div_ceil(4096) as usize);
            let frame = frame.reply(&chunk(4096, 1, 0));
            assert_eq!(reply(&frame, &[], 4092, 4096).0, ReplyForm::ReplyChunk);
        }
    }
    // P23, U10: and the data in a second chunk.
    for count in [1, 2, 15, 16] {
        for len in [4096, 4097, 4098, 4099] {
            let frame = with_reads(Frame::nomsg(), 0, &chunk(1000, count, 0));
            let frame = with_reads(frame, 200, &chunk(len, count, 1)).write(&chunk(64, count, 0));
            let bytes = frame.bytes();
            assert_eq!(call(&bytes).call_len(), 1000 + len.next_multiple_of(4));
        }
    }
}

#[test]
fn small_thresholds() {
    // P30: nothing above 1024 is sent.
    let frame = Frame::msg(rpc_call(X, 120)).reply(&chunk(8192, 2, 0));
    for xdr_len in [900, 960, 961, 1024, 4096, 8192] {
        let (form, sent) = reply(&frame, &[], xdr_len, 1024);
        assert!(sent <= 1024);
        assert_eq!(form == ReplyForm::Inline, xdr_len <= 1024 - 64);
    }
}
