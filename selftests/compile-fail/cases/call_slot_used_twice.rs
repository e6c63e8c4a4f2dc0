// SPDX-License-Identifier: GPL-2.0

//! Two calls begin in the room for one.

use crate::kern::context::Sleepable;
use crate::transport::connection::CallSlot;

fn misuse(slot: CallSlot<'_>, context: &Sleepable) {
    let _ = slot.begin(context);
    //~ E0382 use of moved value: `slot`
    //=
    let _ = slot.begin(context);
}
