// SPDX-License-Identifier: GPL-2.0

//! The proof is kept for later.

use crate::kern::context::Sleepable;

struct Later<'a>(&'a Sleepable);

fn later(_: Later<'static>) {}

fn now(_: Later<'_>) {}

fn misuse(context: &Sleepable) {
    //~ E0521 borrowed data escapes outside of function
    //= now(Later(context));
    later(Later(context));
}
