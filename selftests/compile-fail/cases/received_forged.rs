// SPDX-License-Identifier: GPL-2.0

//! sunrpc is told of a call that nobody installed.

use crate::svc::rqst::Received;

fn misuse() -> Received {
    //~ E0423 cannot initialize a tuple struct which contains private fields
    //= Received::NOTHING
    Received(100)
}
