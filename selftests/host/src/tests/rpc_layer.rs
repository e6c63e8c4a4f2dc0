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
        Seg,
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

const SEG: Seg = (0x4567, 8, 0x7f00_0000_5000);
const FILE: [u32; 4] = [12, 0x1111, 0x2222, 0x3333];
const ABCDE: [u32; 3] = [5, 0x6162_6364, 0x6500_0000];

/// The verdict on a Call in which what comes behind `rpc` is in a Read chunk.
fn verdict(rpc: &[u32], behind: &[u32]) -> Result<(), Reason> {
    let position = u32::try_from(4 * rpc.len()).unwrap();
    let payload = words(&[rpc, behind].concat());
    let msg = Frame::msg(payload).read(position, SEG).bytes();
    let call = call(&msg);
    let verdict = call.check_reducible(call.payload());
    verdict.map_err(|reject| reject.reason())
}

#[test]
fn r43_r44_nothing_that_gss_protects_is_reduced() {
    const WRITE3: [u32; 6] = [X, 0, 2, 100_003, 3, 7];
    const NULL3: [u32; 6] = [X, 0, 2, 100_003, 3, 0];
    let write = [&FILE[..], &[0, 0, 8, 2, 8]].concat();
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
        let header = [&call_words[..], &credential, &[0, 0]].concat();
        let arguments: &[u32] = if call_words == WRITE3 { &write } else { &[] };
        let rpc = [&header[..], arguments].concat();
        let found = verdict(&rpc, &[]);
        assert_eq!(
            found.is_ok(),
            eligible,
            "{call_words:?} {procedure} {service}"
        );
        let plain = Frame::msg(words(&rpc)).bytes();
        assert!(call(&plain).check_reducible(&words(&rpc)).is_ok());
        // A chunk in the credentials or in the verifier would hide what they say.
        for at in 10..header.len() {
            let (before, behind) = rpc.split_at(at);
            let found = verdict(before, behind);
            assert_eq!(found, Err(Reason::PositionInCallHeader), "{at}");
        }
    }
}

/// The arguments of a procedure up to the item that may be reduced.
fn arguments() -> Vec<(u32, u32, Vec<u32>)> {
    let file2 = [7; 8];
    vec![
        (2, 8, [&file2[..], &[0, 0, 0, 8]].concat()),
        (2, 13, [&file2[..], &ABCDE, &[8]].concat()),
        (3, 7, [&FILE[..], &[0, 0, 8, 2, 8]].concat()),
        // Attributes: none; all, with the client's times; some, with the server's.
        (3, 10, [&FILE[..], &ABCDE, &[0, 0, 0, 0, 0, 0, 8]].concat()),
        (
            3,
            10,
            [
                &FILE[..],
                &ABCDE,
                &[1, 0o644, 1, 1000, 1, 1000, 1, 0, 4096],
                &[2, 1, 2, 2, 3, 4, 8],
            ]
            .concat(),
        ),
        (
            3,
            10,
            [&FILE[..], &ABCDE, &[1, 0o644, 0, 0, 0, 1, 2, 3, 4, 8]].concat(),
        ),
    ]
}

#[test]
fn r40_only_the_eligible_item_is_reduced() {
    for (version, procedure, arguments) in arguments() {
        let header = [X, 0, 2, 100_003, version, procedure, 0, 0, 0, 0];
        let rpc = [&header[..], &arguments].concat();
        assert_eq!(verdict(&rpc, &[]), Ok(()), "{version} {procedure}");
        // Anywhere else it is another item, or part of one.
        for at in header.len()..rpc.len() {
            let (before, behind) = rpc.split_at(at);
            let found = verdict(before, behind);
            assert_eq!(
                found,
                Err(Reason::NotReducible),
                "{version} {procedure} {at}"
            );
        }
        // A link's target is all of it in the chunk; a file's data may go on behind it.
        let mut more = rpc.clone();
        *more.last_mut().unwrap() = 9;
        let split = match (version, procedure) {
            (2, 13) | (3, 10) => Err(Reason::NotReducible),
            _ => Ok(()),
        };
        assert_eq!(
            verdict(&more, &[0x6100_0000]),
            split,
            "{version} {procedure}"
        );
        let longer = [&rpc[..], &[0]].concat();
        assert_eq!(verdict(&longer, &[]), Err(Reason::NotReducible));
        // One chunk with bytes, and no other. Empty ones do no harm.
        let at = u32::try_from(4 * rpc.len()).unwrap();
        for (second, len, expected) in [
            (at + 8, 4, Err(Reason::NotReducible)),
            (at + 8, 0, Ok(())),
            (40, 0, Ok(())),
        ] {
            let frame = Frame::msg(words(&[&rpc[..], &[0]].concat()));
            let msg = frame
                .read(at, SEG)
                .read(second, (0x99, len, 0x1000))
                .bytes();
            let call = call(&msg);
            let found = call.check_reducible(call.payload());
            assert_eq!(found.map_err(|r| r.reason()), expected, "{second} {len}");
        }
    }
}

#[test]
fn r40_only_eligible_procedures_are_reduced() {
    for (program, version, procedure, eligible) in [
        (100_003, 3, 0, true),
        (100_003, 3, 3, false),
        (100_003, 3, 9, false),
        (100_003, 2, 7, false),
        (100_003, 4, 1, true),
        (100_227, 3, 0, true),
        (100_227, 3, 2, false),
        (300_000, 1, 9, true),
    ] {
        let header = [X, 0, 2, program, version, procedure, 0, 0, 0, 0];
        let found = verdict(&header, &[]);
        assert_eq!(found.is_ok(), eligible, "{program} {version} {procedure}");
        // Without a Read chunk nothing is reduced; a Position Zero chunk reduces nothing either.
        let rpc = words(&header);
        let plain = Frame::msg(rpc.clone()).bytes();
        assert!(call(&plain).check_reducible(&rpc).is_ok());
        let whole = Frame::nomsg().read(0, (1, 40, 0x1000)).bytes();
        assert!(call(&whole).check_reducible(&rpc).is_ok());
    }
}
