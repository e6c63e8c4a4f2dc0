// SPDX-License-Identifier: GPL-2.0

//! The proof is taken along to another context.

use crate::kern::context::Sleepable;

fn elsewhere<T: Send>(_: T) {}

fn misuse(context: &Sleepable) {
    //~ E0277 cannot be shared between threads safely
    //= let _ = context;
    elsewhere(context);
}
