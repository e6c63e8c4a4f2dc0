// SPDX-License-Identifier: GPL-2.0

//! All small messages over a small alphabet, and all small arrangements of chunks.

use crate::{
    check_call::check_call,
    check_reply::ReplyCase,
    frame::{
        rpc_call,
        words,
        Frame,
        X, //
    },
    proto::{
        Ingress,
        Limits, //
    },
};

const LIMITS: Limits = Limits {
    max_segments: 3,
    max_call_bytes: 64,
};

/// Checks all messages of up to 15 words that begin with `head` and go on in `alphabet`.
///
/// Returns how many Calls were among them.
fn all_messages(head: &[u32], alphabet: &[u32], limits: &Limits) -> usize {
    let mut calls = 0;
    for len in head.len()..=15 {
        let tail = len - head.len();
        let mut digits = vec![0; tail];
        let mut msg = words(head);
        msg.resize(4 * len, 0);
        loop {
            for (digit, word) in digits.iter().zip(msg[4 * head.len()..].chunks_exact_mut(4)) {
                word.copy_from_slice(&u32::to_be_bytes(alphabet[*digit]));
            }
            if matches!(check_call(&msg, limits), Ok(Ingress::Call(_))) {
                calls += 1;
            }
            let Some(at) = digits.iter().rposition(|digit| *digit + 1 < alphabet.len()) else {
                break;
            };
            digits[at] += 1;
            digits[at + 1..].fill(0);
        }
    }
    calls
}

#[test]
fn every_short_rdma_msg() {
    assert!(all_messages(&[1, 1, 1, 0], &[0, 1, 2, u32::MAX], &LIMITS) > 100);
    assert!(all_messages(&[1, 1, 1, 0], &[0, 1, 40], &LIMITS) > 100);
}

#[test]
fn every_short_rdma_nomsg() {
    assert!(all_messages(&[1, 1, 1, 1], &[0, 1, 2, u32::MAX], &LIMITS) > 100);
    assert!(all_messages(&[1, 1, 1, 1], &[0, 1, 40], &LIMITS) > 100);
}

#[test]
fn every_fixed_header() {
    let fixed = [0, 1, 2, 3, 4, 5, u32::MAX];
    for vers in fixed {
        for procedure in fixed {
            // Short tails only: what follows matters for none of these but two.
            for rest in 0..5 {
                let msg = [vec![7, vers, 9, procedure], vec![0; rest]].concat();
                let whole = words(&msg);
                for cut in 0..4 {
                    let _ = check_call(&whole[..whole.len() - cut], &LIMITS);
                }
            }
        }
    }
}

#[test]
fn every_call_chunk_with_extreme_words() {
    // One Read segment: handle, length and address from the edges.
    let edges = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, u32::MAX];
    for length in edges {
        for high in edges {
            for low in edges {
                for tail in [
                    &[0, 0, 0][..],
                    &[0, 1, 0],
                    &[0, 0, 1, 0],
                    &[1, 0, 1, 1, high, low],
                ] {
                    let head = [1, 1, 1, 1, 1, 0, 5, length, high, low];
                    let msg = [&head[..], tail].concat();
                    let _ = check_call(&words(&msg), &LIMITS);
                }
            }
        }
    }
}

#[test]
fn every_arrangement_of_two_chunks() {
    let limits = Limits {
        max_segments: 8,
        max_call_bytes: 80,
    };
    let mut calls = 0;
    for inline in [40, 44, 48, 52, 53] {
        for first in (36..64).step_by(4) {
            for second in (36..80).step_by(4) {
                for len in 0..10 {
                    for other in [0, 1, 4, 5, 7, 8] {
                        for nomsg in [false, true] {
                            let frame = if nomsg {
                                Frame::nomsg().read(0, (1, inline, 0x100))
                            } else {
                                Frame::msg(rpc_call(X, inline as usize))
                            };
                            let msg = frame
                                .read(second, (2, other, 0x200))
                                .read(first, (3, len, 0x300))
                                .bytes();
                            if matches!(check_call(&msg, &limits), Ok(Ingress::Call(_))) {
                                calls += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(calls > 1000);
}

#[test]
fn every_small_reply() {
    let mut planned = 0;
    for first in 0..7 {
        for second in 0..7 {
            for off in (0..12).step_by(4) {
                for len in 0..9 {
                    for xdr_len in 0..25 {
                        for room in [None, Some(0), Some(7), Some(30)] {
                            for inline_max in [80, 90, 100] {
                                let case = ReplyCase {
                                    writes: vec![vec![(1, first, 0x100), (2, second, 0x200)]],
                                    reply: room.map(|room| vec![(3, room, 0x300)]),
                                    payloads: vec![(off, len)],
                                    xdr_len,
                                    inline_max,
                                };
                                if case.check().plan.is_ok() {
                                    planned += 1;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(planned > 10_000);
}
