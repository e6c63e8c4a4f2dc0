// SPDX-License-Identifier: GPL-2.0

//! Section K of the catalogue: what is wrong above the transport is let through, and error replies
//! obey the same rules as others.

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
        words,
        Frame,
        X, //
    },
    proto::{
        reject::Reason,
        ReplyForm, //
    },
};

/// Calls that sunrpc refuses: RPC version; program, version, procedure; credential length.
fn refused() -> [(&'static str, Vec<u8>); 6] {
    let rpc = |rest: [u32; 8]| words(&[&[X, 0][..], &rest].concat());
    [
        ("M183", rpc([3, 100_003, 3, 0, 0, 0, 0, 0])),
        ("M184", rpc([2, 300_000, 3, 0, 0, 0, 0, 0])),
        ("M184", rpc([2, 100_003, 9, 0, 0, 0, 0, 0])),
        ("M184", rpc([2, 100_003, 3, 99, 0, 0, 0, 0])),
        ("M185", rpc([2, 100_003, 3, 0, 1, 404, 0, 0])),
        ("M185 M186", rpc([2, 100_003, 3, 0, 6, 0xffff_ffff, 0, 0])),
    ]
}

#[test]
fn k_let_through() {
    let seg = (0x2345, 4096, 0x7f00_0000_2000);
    for (id, rpc) in refused() {
        expect(id, &Frame::msg(rpc.clone()).bytes(), Is::Call);
        let write = Frame::msg(rpc.clone()).write(&[seg]).bytes();
        expect("M187", &write, Is::Call);
        assert_eq!(call(&write).payload(), rpc);
        let reply = Frame::msg(rpc.clone()).reply(&[seg]).bytes();
        expect("M187", &reply, Is::Call);
        assert_eq!(call(&reply).payload(), rpc);
    }
}

#[test]
fn k_error_replies() {
    // M187: an error reply has 20 to 36 bytes and no payload; both chunks come back unused.
    for xdr_len in (20..=36).step_by(4) {
        let case = ReplyCase {
            writes: vec![vec![(1, 4096, 0x1000), (2, 4, 0x2000)]],
            reply: Some(vec![(3, 4096, 0x3000)]),
            payloads: Vec::new(),
            xdr_len,
            inline_max: 1024,
        };
        let plan = case.check().plan.unwrap();
        assert_eq!(plan.form(), ReplyForm::Inline);
        assert_eq!(wire_len(&plan), plan.header_len() + xdr_len as usize);
    }
}

#[test]
fn r43_r44_nothing_that_gss_protects_is_reduced() {
    const WRITE3: [u32; 6] = [X, 0, 2, 100_003, 3, 7];
    const NULL3: [u32; 6] = [X, 0, 2, 100_003, 3, 0];
    let seg = (0x4567, 8, 0x7f00_0000_5000);
    // Procedure of RPCSEC_GSS, its service, and whether a Read chunk may carry an argument.
    for (call_words, procedure, service, eligible) in [
        (WRITE3, 0, 1, true),
        (WRITE3, 0, 2, false),
        (WRITE3, 0, 3, false),
        (WRITE3, 0, 0, false),
        (NULL3, 0, 1, true),
        (NULL3, 1, 1, false),
        (NULL3, 2, 1, false),
        (NULL3, 3, 1, false),
    ] {
        let credential = [6, 24, 1, procedure, 5, service, 4, 0x1234];
        let rpc = words(&[&call_words[..], &credential, &[0, 0]].concat());
        let msg = Frame::msg(rpc.clone())
            .read(u32::try_from(rpc.len()).unwrap(), seg)
            .bytes();
        let reduced = call(&msg);
        let verdict = reduced.check_reducible(reduced.payload());
        assert_eq!(
            verdict.is_ok(),
            eligible,
            "{call_words:?} {procedure} {service}"
        );
        assert!(call(&Frame::msg(rpc.clone()).bytes())
            .check_reducible(&rpc)
            .is_ok());
        // A chunk in the credentials or in the verifier would hide what they say.
        for position in (40..rpc.len()).step_by(4) {
            let position = u32::try_from(position).unwrap();
            let inside = Frame::msg(rpc.clone()).read(position, seg).bytes();
            let inside = call(&inside);
            let verdict = inside.check_reducible(inside.payload());
            assert_eq!(
                verdict.unwrap_err().reason(),
                Reason::PositionInCallHeader,
                "{position}"
            );
            let short = &rpc[..position as usize];
            assert!(inside.check_reducible(short).is_err());
        }
    }
}

#[test]
fn r40_only_eligible_arguments_are_reduced() {
    let seg = (0x4567, 8, 0x7f00_0000_5000);
    for (program, version, procedure, eligible) in [
        (100_003, 3, 0, true),
        (100_003, 3, 7, true),
        (100_003, 3, 10, true),
        (100_003, 3, 3, false),
        (100_003, 3, 9, false),
        (100_003, 2, 8, true),
        (100_003, 2, 13, true),
        (100_003, 2, 7, false),
        (100_003, 4, 1, true),
        (100_227, 3, 2, false),
        (300_000, 1, 9, true),
    ] {
        let rpc = words(&[X, 0, 2, program, version, procedure, 0, 0, 0, 0]);
        let msg = Frame::msg(rpc.clone()).read(40, seg).bytes();
        let reduced = call(&msg);
        let verdict = reduced.check_reducible(reduced.payload());
        assert_eq!(verdict.is_ok(), eligible, "{program} {version} {procedure}");
        // Without a Read chunk nothing is reduced; a Position Zero chunk reduces nothing either.
        let plain = Frame::msg(rpc.clone()).bytes();
        assert!(call(&plain).check_reducible(&rpc).is_ok());
        let whole = Frame::nomsg().read(0, (1, 40, 0x1000)).bytes();
        assert!(call(&whole).check_reducible(&rpc).is_ok());
    }
}
