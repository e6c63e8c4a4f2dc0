// SPDX-License-Identifier: GPL-2.0

//! The tests, by what they come from.

mod catalogue;
mod catalogue_reads;
mod catalogue_writes;
mod cm_private;
mod corpus;
mod coverage;
mod exhaustive;
mod frames;
mod matrix;
mod memory;
mod property;
mod replies;
mod rpc_layer;

use crate::{
    check_call::check_call,
    proto::{
        reject::Reason,
        Answer,
        Call,
        Ingress,
        Limits, //
    },
};

/// What the transport will use at 1 MiB payload.
pub(crate) const LIMITS: Limits = Limits {
    max_segments: 256,
    max_call_bytes: 258 * 4096,
};

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Is {
    Call,
    Drop(Reason),
    Ev,
    Ec(Reason),
    PeerError,
    ReverseReply,
}

/// Checks one message against the second decoder, and that it is what `is` says.
pub(crate) fn expect(id: &str, msg: &[u8], is: Is) {
    expect_within(id, msg, &LIMITS, is);
}

pub(crate) fn expect_within(id: &str, msg: &[u8], limits: &Limits, is: Is) {
    let what = match check_call(msg, limits) {
        Ok(Ingress::Call(_)) => Is::Call,
        Ok(Ingress::ReverseReply { .. }) => Is::ReverseReply,
        Ok(Ingress::PeerError { .. }) => Is::PeerError,
        Err(reject) => match reject.answer() {
            Answer::Silent => Is::Drop(reject.reason()),
            Answer::ErrVers(_) => {
                assert_eq!(reject.reason(), Reason::BadVersion);
                Is::Ev
            }
            Answer::ErrChunk(_) => Is::Ec(reject.reason()),
        },
    };
    assert_eq!(what, is, "{id}");
}

/// The Call in `msg`, which must be a good one.
pub(crate) fn call(msg: &[u8]) -> Call<'_> {
    match check_call(msg, &LIMITS) {
        Ok(Ingress::Call(call)) => call,
        Ok(_) => panic!("not a Call"),
        Err(reject) => panic!("{reject:?}"),
    }
}
