// SPDX-License-Identifier: GPL-2.0
//! What is written by the encoder, and what is not, read.

use super::*;
use crate::{
    frame::{words, Header, Lists, Segment, NOMSG},
    rpc::{auth_sys, Call, Kind},
};

const SEGMENT: Segment = Segment {
    handle: 0x1234,
    length: 1000,
    offset: 0x7f00_0000_0040,
};

fn call() -> Call {
    Call::new(NFS, 3, 7, Kind::Write, vec![0; 40]).xid(0x1a00_0001)
}

#[test]
fn a_call_with_chunks() {
    let lists = Lists {
        reads: vec![(120, SEGMENT)],
        writes: vec![vec![SEGMENT, SEGMENT], vec![]],
        reply: Some(vec![SEGMENT]),
    };
    let sent = Header::new(0x1a00_0001, MSG, lists).message(&call().encode());
    let segment = "handle 0x1234, length 1000, offset 0x7f0000000040";
    let expected = [
        "XID 0x1a000001, version 1, credits 32, RDMA_MSG".into(),
        format!("Read list: position 120, {segment}"),
        "Write chunk 0: 2 segments".into(),
        format!("  segment 0: {segment}"),
        format!("  segment 1: {segment}"),
        "Write chunk 1: 0 segments".into(),
        "Reply chunk: 1 segments".into(),
        format!("  segment 0: {segment}"),
        format!(
            "RPC XID 0x1a000001, call, NFS, version 3, procedure 7 (WRITE), credential AUTH_SYS of {} bytes, \
             verifier AUTH_NONE, 40 bytes of arguments",
            auth_sys(0).len() - 16
        ),
    ];
    assert_eq!(message(&sent), expected);
}

#[test]
fn errors() {
    let bytes = words(&[7, 1, 1, ERROR, 1, 1, 2]);
    let expected = [
        "XID 0x00000007, version 1, credits 1, RDMA_ERROR",
        "ERR_VERS, lowest version 1, highest version 2",
    ];
    assert_eq!(message(&bytes), expected);
    let lines = message(&words(&[7, 1, 1, ERROR, 2, 0xdead]));
    assert_eq!(
        lines[1..],
        ["ERR_CHUNK", "behind the header, 4 bytes: 0000dead"]
    );
    let lines = message(&words(&[7, 1, 1, ERROR, 3]));
    assert_eq!(
        lines[1..],
        ["breaks at byte 16: error: 0x3", "rest, 4 bytes: 00000003"]
    );
}

#[test]
fn replies() {
    let said = |rest: &[u32]| stream(&words(rest), 4 * rest.len()).join("; ");
    let accepted = said(&[9, 1, 0, 0, 0, 0, 0xff]);
    let expected =
        "RPC XID 0x00000009, reply, accepted, verifier AUTH_NONE, SUCCESS, 4 bytes of results";
    assert_eq!(accepted, expected);
    assert!(said(&[9, 1, 0, 0, 0, 2, 3, 4]).contains("PROG_MISMATCH, versions 3 to 4"));
    assert!(said(&[9, 1, 1, 0, 2, 2]).contains("denied, RPC_MISMATCH, versions 2 to 2"));
    assert!(said(&[9, 1, 1, 1, 5]).contains("denied, AUTH_ERROR 5"));
    assert!(
        said(&[9, 2]).ends_with("breaks at byte 4: call or reply: 0x2; rest, 4 bytes: 00000002")
    );
}

#[test]
fn a_discriminator_that_is_none() {
    let lines = message(&words(&[7, 1, 1, MSG, 0, 2, 0]));
    let expected = [
        "Read list empty",
        "breaks at byte 20: discriminator in the Write list: 0x2",
        "rest, 8 bytes: 00000002 00000000",
    ];
    assert_eq!(lines[1..], expected);
}

#[test]
fn a_count_that_the_message_has_no_room_for() {
    let mut bytes = words(&[7, 1, 1, NOMSG, 0, 0, 1, u32::MAX]);
    bytes.extend(SEGMENT.encode());
    bytes.extend([1, 2, 3]);
    let lines = message(&bytes);
    let expected = [
        "Read list empty, Write list empty",
        "Reply chunk: 4294967295 segments",
        "  segment 0: handle 0x1234, length 1000, offset 0x7f0000000040",
        "breaks at byte 48: handle: 4 bytes expected, 3 left",
        "rest, 3 bytes: 010203",
    ];
    assert_eq!(lines[1..], expected);
}

#[test]
fn a_body_that_is_longer_than_the_message() {
    for len in [5, u32::MAX - 3, u32::MAX] {
        let lines = stream(&words(&[9, 1, 0, 6, len, 1]), 24);
        assert_eq!(lines[0], "RPC XID 0x00000009, reply, accepted");
        assert!(lines[1].starts_with("breaks at byte 16: body of the verifier, RPCSEC_GSS: "));
    }
}

#[test]
fn a_stream_whose_end_is_not_here() {
    let bytes = call().encode();
    let len = bytes.len();
    assert!(stream(&bytes[..len - 20], len)[0].ends_with(", 40 bytes of arguments"));
    let lines = stream(&bytes[..12], len);
    assert_eq!(
        lines[1],
        "breaks at byte 12: program: 4 bytes expected, 0 left"
    );
    assert_eq!(lines[2], format!("{} bytes more are not here", len - 12));
}

#[test]
fn any_bytes() {
    let lists = Lists {
        reads: vec![(0, SEGMENT)],
        writes: vec![vec![SEGMENT]],
        reply: Some(vec![SEGMENT; 3]),
    };
    for procedure in 0..6 {
        let right = Header::new(1, procedure, lists.clone()).message(&call().encode());
        for len in 0..=right.len() {
            let cut = message(&right[..len]);
            assert!(len == right.len() || !cut.is_empty());
        }
        for at in (0..right.len() / 4 * 4).step_by(4) {
            for word in [0, 1, 2, 3, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
                let mut wrong = right.clone();
                wrong[at..at + 4].copy_from_slice(&word.to_be_bytes());
                assert!(!message(&wrong).is_empty());
            }
        }
    }
}
