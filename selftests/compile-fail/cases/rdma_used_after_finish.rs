// SPDX-License-Identifier: GPL-2.0

//! Work requests are added when the memory is back in the hands of the CPU.

use crate::kern::context::Sleepable;
use crate::transport::read::Reads;

fn misuse(mut reads: Reads, context: &Sleepable) {
    let _ = reads.transfer((1, 0), 0, 100, context);
    let (_pages, _room) = reads.finish();
    //~ E0382 borrow of moved value: `reads`
    //=
    let _ = reads.transfer((1, 0), 0, 100, context);
}
