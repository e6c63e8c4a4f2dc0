// SPDX-License-Identifier: GPL-2.0

//! Malformed input, section D of the catalogue: the Read list.

use super::{
    call,
    expect,
    expect_within,
    Is,
    LIMITS, //
};
use crate::{
    frame::{
        null_call,
        rpc_call,
        words,
        Frame,
        Seg,
        X, //
    },
    proto::{
        reject::Reason,
        Answer,
        Layout,
        Limits,
        Piece, //
    },
};

const BASE: u64 = 0x7f00_0000_1000;

/// A segment of `len` bytes.
fn seg(len: u32) -> Seg {
    (0x1234, len, BASE)
}

/// A WRITE with 96 bytes inline.
fn write() -> Frame {
    Frame::msg(rpc_call(X, 96))
}

#[test]
fn d_positions() {
    for position in [1, 2, 3, 0x5d] {
        let msg = write().read(position, seg(5)).bytes();
        expect("M049", &msg, Is::Ec(Reason::MisalignedPosition));
    }
    let beyond = Is::Ec(Reason::PositionBeyondPayload);
    expect("M050", &write().read(100, seg(5)).bytes(), beyond);
    expect("M051", &write().read(96, seg(5)).bytes(), Is::Call);
    expect("M052", &write().read(0xffff_fffc, seg(5)).bytes(), beyond);
    for position in (4..40).step_by(4) {
        let msg = write().read(position, seg(4)).bytes();
        expect("in RPC header", &msg, Is::Ec(Reason::PositionInCallHeader));
    }
    expect(
        "first behind it",
        &write().read(40, seg(4)).bytes(),
        Is::Call,
    );
}

#[test]
fn d_order_of_the_list() {
    let descending = write()
        .read(60, (2, 8, 0x200))
        .read(44, (1, 6, 0x100))
        .bytes();
    expect("M053", &descending, Is::Call);
    let pieces = [
        Piece::Inline { off: 0, len: 44 },
        Piece::Remote {
            handle: 1,
            offset: 0x100,
            len: 6,
        },
        Piece::Pad { len: 2 },
        // 60 in the stream is 8 bytes less in the payload.
        Piece::Inline { off: 44, len: 8 },
        Piece::Remote {
            handle: 2,
            offset: 0x200,
            len: 8,
        },
        Piece::Inline { off: 52, len: 44 },
    ];
    assert!(call(&descending).assembly().eq(pieces));
    assert_eq!(call(&descending).layout(), Layout::Stream);

    let interleaved = write()
        .read(44, (1, 1, 0x100))
        .read(52, (2, 3, 0x200))
        .read(44, (3, 2, 0x300))
        .read(52, (4, 1, 0x400))
        .bytes();
    expect("M054", &interleaved, Is::Call);
    let remote: Vec<Piece> = call(&interleaved)
        .assembly()
        .filter(|piece| matches!(piece, Piece::Remote { .. }))
        .collect();
    let handles: Vec<u32> = remote
        .iter()
        .map(|piece| match piece {
            Piece::Remote { handle, .. } => *handle,
            _ => 0,
        })
        .collect();
    assert_eq!(handles, [1, 3, 2, 4]);
}

#[test]
fn d_overlap() {
    let overlap = Is::Ec(Reason::ChunkOverlap);
    let two = |first: u32, second: u32| write().read(44, seg(first)).read(second, seg(4)).bytes();
    expect("M055", &two(16, 44 + 12), overlap);
    expect("adjacent", &two(16, 44 + 16), Is::Call);
    // 44 + 5 is not a position at all; 44 + 4 is hidden by the roundup of 5 to 8.
    for position in 49..52 {
        expect(
            "M056",
            &two(5, position),
            Is::Ec(Reason::MisalignedPosition),
        );
    }
    expect("M056", &two(5, 48), overlap);
    expect("M056", &two(5, 52), Is::Call);
    expect("M056", &two(4, 48), Is::Call);
}

#[test]
fn d_empty_segments() {
    let none = write().read(96, seg(0)).bytes();
    expect("M057", &none, Is::Call);
    assert_eq!(call(&none).layout(), Layout::Inline);
    assert!(!call(&none).has_read_chunks());
    assert_eq!(call(&none).call_len(), 96);
    // Its place is checked nevertheless.
    let msg = write().read(100, seg(0)).bytes();
    expect("M057", &msg, Is::Ec(Reason::PositionBeyondPayload));
    let msg = write().read(44, seg(8)).read(48, seg(0)).bytes();
    expect("M057", &msg, Is::Ec(Reason::ChunkOverlap));

    let between = write()
        .read(44, (1, 3, 0x100))
        .read(44, (2, 0, 0x200))
        .read(44, (3, 2, 0x300))
        .bytes();
    expect("M058", &between, Is::Call);
    assert!(call(&between).assembly().eq([
        Piece::Inline { off: 0, len: 44 },
        Piece::Remote {
            handle: 1,
            offset: 0x100,
            len: 3
        },
        Piece::Remote {
            handle: 3,
            offset: 0x300,
            len: 2
        },
        Piece::Pad { len: 3 },
        Piece::Inline { off: 44, len: 52 },
    ]));
    // An empty chunk beside a full one: still one chunk with bytes.
    let beside = write().read(44, seg(0)).read(48, seg(5)).bytes();
    assert_eq!(
        call(&beside).layout(),
        Layout::Single {
            position: 48,
            chunk_len: 5
        }
    );
}

#[test]
fn d_sizes() {
    let too_large = Is::Ec(Reason::CallTooLarge);
    let far = |len: u32| (1, len, 0);
    expect(
        "M059",
        &write().read(96, far(0xffff_ffff)).bytes(),
        too_large,
    );
    expect(
        "R42",
        &write().read(96, far(0xffff_fff0)).bytes(),
        too_large,
    );
    let wrapping = write()
        .read(96, far(0x8000_0000))
        .read(96, far(0x8000_0000));
    expect("M060", &wrapping.bytes(), too_large);
    // Over several chunks, too.
    let wrapping = write()
        .read(92, far(0x8000_0000))
        .read(0x8000_0000 + 92, far(0x8000_0000));
    expect("M060", &wrapping.bytes(), too_large);
    let wrapping = write()
        .read(96, far(0x5555_5556))
        .read(96, far(0x5555_5556))
        .read(96, far(0x5555_5556));
    expect("M061", &wrapping.bytes(), too_large);

    let budget = LIMITS.max_call_bytes - 96;
    expect(
        "M062",
        &write().read(96, far(budget + 1)).bytes(),
        too_large,
    );
    expect("M063", &write().read(96, far(budget)).bytes(), Is::Call);
    // The roundup counts.
    let odd = Limits {
        max_call_bytes: 103,
        ..LIMITS
    };
    expect_within("pad", &write().read(96, far(7)).bytes(), &odd, too_large);
    expect_within("pad", &write().read(96, far(4)).bytes(), &odd, Is::Call);
    // Chunks within the budget; with the inline part they are not.
    let half = (budget / 2) & !3;
    let two = |extra: u32| {
        write()
            .read(92, far(half))
            .read(92 + half, far(half + extra))
            .bytes()
    };
    expect("M064", &two(4), too_large);
    expect("M064", &two(0), Is::Call);
    let remainder = write()
        .read(44, far(half))
        .read(48 + half, far(half + 4))
        .bytes();
    expect("M065", &remainder, too_large);
}

#[test]
fn d_many_segments() {
    let same = |count: u32| {
        let mut frame = write();
        for n in 0..count {
            frame = frame.read(96, (n, 4, BASE));
        }
        frame.bytes()
    };
    // All that fit into 4096 bytes.
    expect("M066", &same(169), Is::Call);
    expect("M066", &same(256), Is::Call);
    expect("M066", &same(257), Is::Ec(Reason::TooManySegments));

    let distinct = |count: u32| {
        let mut frame = write();
        for n in 0..count {
            frame = frame.read(44 + 8 * n, (n, 4, BASE));
        }
        frame.bytes()
    };
    expect("M067", &distinct(8), Is::Call);
    expect("M067", &distinct(9), Is::Ec(Reason::TooManyReadChunks));
    expect(
        "M067 M068",
        &distinct(169),
        Is::Ec(Reason::TooManyReadChunks),
    );
    // The last one again is no new chunk.
    let mut frame = write();
    for n in (0..8).chain(0..8) {
        frame = frame.read(44 + 12 * n, (n, 4, BASE));
    }
    expect("M067", &frame.bytes(), Is::Call);

    // All lists together count.
    let three = |max_segments: u16, is: Is| {
        let msg = write()
            .read(96, seg(4))
            .write(&[seg(4)])
            .reply(&[seg(4)])
            .bytes();
        let limits = Limits {
            max_segments,
            ..LIMITS
        };
        expect_within("three segments", &msg, &limits, is);
    };
    three(3, Is::Call);
    three(2, Is::Ec(Reason::TooManySegments));
    three(1, Is::Ec(Reason::TooManySegments));
    three(0, Is::Ec(Reason::TooManySegments));
}

#[test]
fn d_nomsg() {
    let without = Is::Ec(Reason::NomsgWithoutCallChunk);
    expect("M069", &Frame::nomsg().bytes(), without);
    expect("M070", &Frame::nomsg().reply(&[seg(64)]).bytes(), without);
    expect("M071", &Frame::nomsg().write(&[seg(64)]).bytes(), without);
    expect("M072", &Frame::nomsg().read(40, seg(64)).bytes(), without);
    let mut inline = Frame::nomsg();
    inline.payload = null_call();
    expect("M074", &inline.bytes(), without);

    let call_chunk = |len: u32| Frame::nomsg().read(0, seg(len));
    let mut trailing = call_chunk(40);
    trailing.payload = null_call();
    expect(
        "M073",
        &trailing.bytes(),
        Is::Ec(Reason::NomsgTrailingBytes),
    );
    trailing.payload = vec![0];
    expect(
        "M073",
        &trailing.bytes(),
        Is::Ec(Reason::NomsgTrailingBytes),
    );

    let mut msg = call_chunk(40);
    msg.procedure = 0;
    msg.payload = null_call();
    expect("M075", &msg.bytes(), Is::Ec(Reason::MsgWithCallChunk));
    let empty = Frame::msg(null_call()).read(0, seg(0)).bytes();
    expect("M075", &empty, Is::Ec(Reason::MsgWithCallChunk));

    expect(
        "M076",
        &call_chunk(0).bytes(),
        Is::Ec(Reason::EmptyCallChunk),
    );
    let empty = call_chunk(0).read(0, seg(0)).bytes();
    expect("M076", &empty, Is::Ec(Reason::EmptyCallChunk));
    // What it holds is seen after the Reads.
    for len in [4, 8, 20, 39] {
        expect("M077", &call_chunk(len).bytes(), Is::Call);
    }
    let odd = call_chunk(41).bytes();
    expect("M078", &odd, Is::Call);
    // The chunk is the stream: nothing is added.
    assert_eq!(call(&odd).call_len(), 41);
}

#[test]
fn d_nomsg_with_chunks() {
    let behind = Frame::nomsg()
        .read(44, (2, 5, 0x200))
        .read(0, (1, 48, 0x100))
        .bytes();
    expect("M079", &behind, Is::Call);
    assert!(call(&behind).assembly().eq([
        Piece::Remote {
            handle: 1,
            offset: 0x100,
            len: 44
        },
        Piece::Remote {
            handle: 2,
            offset: 0x200,
            len: 5
        },
        Piece::Pad { len: 3 },
        Piece::Remote {
            handle: 1,
            offset: 0x100 + 44,
            len: 4
        },
    ]));
    let beyond = Frame::nomsg().read(0, seg(48)).read(52, seg(4)).bytes();
    expect("M080", &beyond, Is::Ec(Reason::PositionBeyondPayload));
    // 60 is behind the 48 bytes of the call chunk, but not in the unreduced stream.
    let second = Frame::nomsg()
        .read(0, seg(48))
        .read(44, seg(16))
        .read(60, seg(4))
        .bytes();
    expect("M081", &second, Is::Call);
    // One more, and it is.
    let second = Frame::nomsg()
        .read(0, seg(48))
        .read(44, seg(16))
        .read(68, seg(4))
        .bytes();
    expect("M081", &second, Is::Ec(Reason::PositionBeyondPayload));

    // Sixteen segments of one to seven bytes.
    let mut many = Frame::nomsg();
    for n in 0..16 {
        many = many.read(0, (n, 1 + n % 7, BASE + 4095));
    }
    expect("M088", &many.bytes(), Is::Call);
    assert_eq!(call(&many.bytes()).assembly().count(), 16);
}

#[test]
fn d_what_the_call_chunk_held() {
    let msg = Frame::nomsg().read(0, seg(40)).bytes();
    let call = call(&msg);
    let says = |xid: u32, direction: u32| {
        call.check_assembled(&words(&[xid, direction]))
            .map_err(|reject| (reject.reason(), reject.answer()))
    };
    assert_eq!(says(X, 0), Ok(()));
    let wrong = Err((Reason::XidMismatch, Answer::ErrChunk(call.fixed())));
    assert_eq!(says(X + 1, 0), wrong, "M082");
    let reply = Err((Reason::ReverseReplyWithChunks, Answer::Silent));
    assert_eq!(says(X, 1), reply, "M083");
    assert_eq!(says(X, 7), Err((Reason::BadDirection, Answer::Silent)));
    let short = call.check_assembled(&words(&[X])).unwrap_err();
    assert_eq!(
        (short.reason(), short.answer()),
        (Reason::NoRpc, Answer::Silent)
    );
}

#[test]
fn d_wrapping_addresses() {
    let wrap = Is::Ec(Reason::SegmentWrap);
    let end = u64::MAX;
    expect("M084", &write().read(96, (1, 2, end)).bytes(), wrap);
    expect("M084", &write().read(96, (1, 16, end - 15)).bytes(), wrap);
    expect(
        "M084",
        &write().read(96, (1, 15, end - 15)).bytes(),
        Is::Call,
    );
    expect("M084", &write().read(96, (1, 0, end)).bytes(), Is::Call);
    let msg = Frame::nomsg().read(0, (1, 0xffff_ffff, end)).bytes();
    expect("M084", &msg, wrap);
}

#[test]
fn d_upper_layer_decides() {
    // A reduced LOOKUP name, a count that is not the chunk's length, a chunk for NULL: the header
    // is right. The first is refused by the program's binding (`rpc_layer`); of the others nfsd
    // sees exactly the stream.
    let name = Frame::msg(rpc_call(X, 80)).read(80, seg(7)).bytes();
    expect("M085", &name, Is::Call);
    assert_eq!(call(&name).call_len(), 88);
    for len in [99, 101, 96, 104, 4196] {
        let msg = write().read(96, seg(len)).bytes();
        expect("M086", &msg, Is::Call);
        assert_eq!(call(&msg).call_len(), 96 + len.next_multiple_of(4));
    }
    let null = Frame::msg(null_call()).read(40, seg(100)).bytes();
    expect("M087", &null, Is::Call);
}

#[test]
fn one_handle() {
    let msg = |first: u32, second: u32, third: u32| {
        write()
            .read(96, (first, 4, BASE))
            .write(&[(second, 4, BASE)])
            .reply(&[(third, 4, BASE)])
            .bytes()
    };
    assert_eq!(call(&msg(7, 7, 7)).inv_rkey(), Some(7));
    assert_eq!(call(&msg(8, 7, 7)).inv_rkey(), None);
    assert_eq!(call(&msg(7, 8, 7)).inv_rkey(), None);
    assert_eq!(call(&msg(7, 7, 8)).inv_rkey(), None);
    // M129.
    assert_eq!(call(&msg(0, 0, 0)).inv_rkey(), None);
}

#[test]
fn pages_and_work_requests() {
    use std::num::NonZeroU32;

    // 1 MiB in eight segments that do not begin at page boundaries of ours.
    let mut frame = write();
    for n in 0..8 {
        let len = if n == 0 { 131_071 } else { 131_072 };
        frame = frame.read(96, (n, len, BASE));
    }
    let msg = frame.bytes();
    let call = call(&msg);
    assert_eq!(call.sink_pages(), 256);
    let demand = call.read_demand(NonZeroU32::new(32).unwrap());
    // The first ends one byte short of a page; each other one touches 33 pages.
    assert_eq!(
        (demand.sges, demand.work_requests),
        (32 + 7 * 33, 1 + 7 * 2)
    );
}
