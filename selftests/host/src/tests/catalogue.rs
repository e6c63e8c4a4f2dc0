// SPDX-License-Identifier: GPL-2.0

//! Malformed input, sections A to C of the catalogue: lengths, fixed header, discriminators.

use super::{
    expect,
    expect_within,
    Is, //
};
use crate::{
    frame::{
        null_call,
        rpc_call,
        words,
        Frame,
        K,
        X, //
    },
    proto::{
        reject::Reason,
        Limits, //
    },
};

const SEG: (u32, u32, u64) = (0x1234, 40, 0x7f00_0000_1000);

/// The fixed header with version `vers` and type `procedure`, then `rest`.
fn header(vers: u32, procedure: u32, rest: &[u32]) -> Vec<u8> {
    let mut out = words(&[X, vers, K, procedure]);
    out.extend(words(rest));
    out
}

#[test]
fn a_length() {
    let whole = Frame::msg(null_call()).bytes();
    let short = |id: &str, len: usize| expect(id, &whole[..len], Is::Drop(Reason::TooShort));
    short("M001", 0);
    short("M002", 1);
    short("M003", 4);
    short("M004", 8);
    short("M005", 12);
    short("M006", 16);
    expect("M007", &header(2, 0, &[]), Is::Drop(Reason::TooShort));
    short("M008", 20);
    short("M008", 24);
    short("M009", 27);
    expect("M010", &whole[..28], Is::Drop(Reason::NoRpc));
    for len in 29..32 {
        expect("M011", &whole[..len], Is::Drop(Reason::NoRpc));
    }
    expect("M012", &whole[..32], Is::Drop(Reason::NoRpc));
    for len in 33..36 {
        expect("M012", &whole[..len], Is::Drop(Reason::NoRpc));
    }
    // From here on sunrpc decides.
    for len in 36..=68 {
        expect("M013 M014", &whole[..len], Is::Call);
    }
}

#[test]
fn a_truncated_lists() {
    // One whole Read segment, and a second one that is cut.
    let two = Frame::msg(Vec::new()).read(44, SEG).read(44, SEG).header();
    for (id, len) in [
        ("M015a", 11),
        ("M015b", 12),
        ("M015c", 13),
        ("M015d", 14),
        ("M015e", 15),
    ] {
        expect(id, &words(&two[..len]), Is::Ec(Reason::ReadTruncated));
        expect(
            id,
            &words(&two)[..4 * len + 3],
            Is::Ec(Reason::ReadTruncated),
        );
    }
    expect("M016", &words(&two[..10]), Is::Ec(Reason::NoTerminator));

    let none = |rest: &[u32]| header(1, 0, rest);
    // Long enough to be looked at, because of a Read segment in front.
    let read = [1, 44, 1, 4, 0, 0, 0];
    let after_read = |rest: &[u32]| none(&[&read[..], rest].concat());
    expect("M017", &after_read(&[1]), Is::Ec(Reason::WriteTruncated));
    for (id, rest) in [
        ("M018a", &[1, 1][..]),
        ("M018b", &[1, 1, 7][..]),
        ("M018c", &[1, 1, 7, 8][..]),
        ("M018c", &[1, 1, 7, 8, 0][..]),
    ] {
        expect(id, &after_read(rest), Is::Ec(Reason::WriteTruncated));
    }
    expect(
        "M019",
        &after_read(&[1, 1, 7, 8, 0, 0]),
        Is::Ec(Reason::NoTerminator),
    );
    expect("M020", &after_read(&[0]), Is::Ec(Reason::NoTerminator));
    expect("M021", &after_read(&[0, 1]), Is::Ec(Reason::ReplyTruncated));
    expect(
        "M022",
        &after_read(&[0, 1, 2, 7, 8, 0, 0]),
        Is::Ec(Reason::ReplyTruncated),
    );
    expect(
        "M022",
        &none(&[0, 0, 1, 2, 7, 8, 0, 0]),
        Is::Ec(Reason::ReplyTruncated),
    );
}

#[test]
fn a_write_call_cut_anywhere() {
    let whole = Frame::msg(rpc_call(X, 96))
        .read(92, (0x4567, 5, 0x7f00_0000_5000))
        .bytes();
    for len in 0..=whole.len() {
        let is = match len {
            0..28 => Is::Drop(Reason::TooShort),
            28..40 => Is::Ec(Reason::ReadTruncated),
            40..52 => Is::Ec(Reason::NoTerminator),
            // The chunk is not where the payload ends any more.
            52..144 => Is::Ec(Reason::PositionBeyondPayload),
            _ => Is::Call,
        };
        expect(&format!("M023 at {len}"), &whole[..len], is);
    }
    for extra in 1..4 {
        let mut longer = whole.clone();
        longer.extend(vec![0xee; extra]);
        expect("M024", &longer, Is::Call);
    }
}

#[test]
fn b_fixed_header() {
    let null = null_call();
    let with = |vers: u32, procedure: u32| {
        let mut frame = Frame::msg(null.clone());
        frame.vers = vers;
        frame.procedure = procedure;
        frame.bytes()
    };
    expect("M025", &with(0, 0), Is::Ev);
    expect("M026", &with(2, 0), Is::Ev);
    expect("M027", &with(0xffff_ffff, 0), Is::Ev);
    expect("M028", &with(0x0100_0000, 0), Is::Ev);
    expect("M029", &with(2, 4), Is::PeerError);
    expect("M030", &with(2, 3), Is::Ev);
    let msgp = [header(1, 2, &[4, 0x400, 0, 0, 0]), null.clone()].concat();
    expect("M031", &msgp, Is::Ec(Reason::Msgp));
    expect("M032", &header(1, 3, &[]), Is::Drop(Reason::TooShort));
    expect("M033", &with(1, 3), Is::Drop(Reason::Done));
    expect("M034", &header(1, 4, &[2]), Is::PeerError);
    expect("M035", &header(1, 4, &[1, 1, 1]), Is::PeerError);
    expect("M036", &header(1, 4, &[99]), Is::PeerError);
    // Too short to be an RDMA_ERROR of either kind.
    expect("M034", &header(1, 4, &[]), Is::Drop(Reason::TooShort));
    expect(
        "M034",
        &header(1, 4, &[2])[..19],
        Is::Drop(Reason::TooShort),
    );
    expect("M037", &with(1, 5), Is::Ec(Reason::BadProc));
    expect("M038", &with(1, 0xffff_ffff), Is::Ec(Reason::BadProc));
    for (id, credits) in [("M039", 0), ("M040", 0xffff_ffff)] {
        let mut frame = Frame::msg(null.clone());
        frame.credits = credits;
        expect(id, &frame.bytes(), Is::Call);
        assert_eq!(super::call(&frame.bytes()).fixed().credits, credits);
    }
    for xid in [0, 0xffff_ffff] {
        let mut frame = Frame::msg(rpc_call(xid, 40));
        frame.xid = xid;
        expect("M041", &frame.bytes(), Is::Call);
    }
    for bit in 0..32 {
        let mut frame = Frame::msg(null.clone());
        frame.xid ^= 1 << bit;
        expect("M042", &frame.bytes(), Is::Ec(Reason::XidMismatch));
    }
}

#[test]
fn b_wrong_in_two_ways() {
    // The order of the checks decides.
    let with = |vers: u32, procedure: u32, rest: &[u32]| header(vers, procedure, rest);
    expect("version, lists", &with(2, 0, &[7, 7, 7]), Is::Ev);
    expect("version, type", &with(2, 9, &[0, 0, 0]), Is::Ev);
    expect(
        "type, lists",
        &with(1, 9, &[7, 7, 7]),
        Is::Ec(Reason::BadProc),
    );
    expect(
        "done, lists",
        &with(1, 3, &[7, 7, 7]),
        Is::Drop(Reason::Done),
    );
    expect(
        "error, version, lists",
        &with(9, 4, &[7, 7, 7]),
        Is::PeerError,
    );
    expect(
        "lists, no RPC",
        &with(1, 0, &[0, 0, 7]),
        Is::Ec(Reason::BadBool),
    );
    let mut frame = Frame::msg(null_call()).read(45, SEG);
    frame.xid = 1;
    expect(
        "position, XID",
        &frame.bytes(),
        Is::Ec(Reason::MisalignedPosition),
    );
}

#[test]
fn c_discriminators() {
    let none = |rest: &[u32]| [header(1, 0, rest), null_call()].concat();
    expect("M043", &none(&[2, 0, 0]), Is::Ec(Reason::BadBool));
    expect("M044", &none(&[0xffff_ffff, 0, 0]), Is::Ec(Reason::BadBool));
    let second = [1, 40, 7, 8, 0, 0, 0x0001_0000, 40, 7, 8, 0, 0, 0, 0, 0];
    expect("M045", &none(&second), Is::Ec(Reason::BadBool));
    expect("M046", &none(&[0, 2, 0]), Is::Ec(Reason::BadBool));
    expect("M047", &none(&[0, 0, 0x0100_0000]), Is::Ec(Reason::BadBool));
    // A Write chunk where the Read list is: the position is the segment count.
    let swapped = [1, 1, 0x1234, 40, 0x7f00, 0x1000, 0, 0, 0];
    expect("M048", &none(&swapped), Is::Ec(Reason::MisalignedPosition));
    let swapped = [0, 1, 40, 0x1234, 40, 0x7f00, 0x1000, 0, 0];
    expect("M048", &none(&swapped), Is::Ec(Reason::WriteTruncated));
}

#[test]
fn inline_call_at_the_limit() {
    let limits = Limits {
        max_segments: 0,
        max_call_bytes: 40,
    };
    let fits = Frame::msg(rpc_call(X, 40)).bytes();
    expect_within("40 of 40", &fits, &limits, Is::Call);
    let larger = Frame::msg(rpc_call(X, 41)).bytes();
    expect_within("41 of 40", &larger, &limits, Is::Ec(Reason::CallTooLarge));
}

#[test]
fn i_reverse_direction() {
    let reply = |xid: u32, direction: u32| words(&[xid, direction, 0, 0, 0, 0]);
    expect("M163", &Frame::msg(reply(X, 1)).bytes(), Is::ReverseReply);
    expect("M162", &Frame::msg(reply(X, 0)).bytes(), Is::Call);
    let other = Frame::msg(reply(X + 1, 1)).bytes();
    expect("M164", &other, Is::Drop(Reason::ReverseReplyXid));
    let eight = Frame::msg(words(&[X, 1])).bytes();
    expect("M167", &eight, Is::ReverseReply);
    let seven = &eight[..eight.len() - 1];
    expect("M170", seven, Is::Drop(Reason::NoRpc));

    let long = Frame::msg([reply(X, 1), vec![0; 24]].concat());
    let chunks = Is::Drop(Reason::ReverseReplyWithChunks);
    expect("M168", &long.clone().read(40, SEG).bytes(), chunks);
    expect("M168", &long.clone().write(&[SEG]).bytes(), chunks);
    expect("M168", &long.clone().write(&[]).bytes(), chunks);
    expect("M168", &long.clone().reply(&[SEG]).bytes(), chunks);
    expect("M168", &long.reply(&[]).bytes(), chunks);
    for direction in [2, 7, 0x0100_0000, 0xffff_ffff] {
        let msg = Frame::msg(reply(X, direction)).bytes();
        expect("M169", &msg, Is::Drop(Reason::BadDirection));
    }
    expect("M171", &header(1, 4, &[2]), Is::PeerError);
}
