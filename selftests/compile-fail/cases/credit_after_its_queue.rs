// SPDX-License-Identifier: GPL-2.0

//! Slots are given back to a Send Queue that is gone.

use crate::ib::qp::Queues;
use kernel::prelude::*;

fn misuse(queues: Pin<KBox<Queues>>) {
    let credit = queues.sq.try_reserve(1);
    //~ E0505 cannot move out of `queues` because it is borrowed
    //=
    drop(queues);
    drop(credit);
}
