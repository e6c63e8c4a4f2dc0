// SPDX-License-Identifier: GPL-2.0

//! A chain is posted in more slots than were reserved.

use crate::ib::sq::SqCredit;

fn misuse(credit: &mut SqCredit<'_>) {
    //~ E0616 field `slots` of struct `SqCredit` is private
    //= let _ = credit;
    credit.slots = 9;
}
