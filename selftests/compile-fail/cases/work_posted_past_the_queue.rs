// SPDX-License-Identifier: GPL-2.0

//! A context is made out of reach without a work request that would bring it back.

use crate::ib::work::Work;
use crate::transport::recv::RecvContext;

fn misuse(work: Work<RecvContext>) {
    //~ E0624 method `into_posted` is private
    //= let _kept = work;
    let _lost = work.into_posted(0);
}
