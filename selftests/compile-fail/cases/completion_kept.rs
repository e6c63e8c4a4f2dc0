// SPDX-License-Identifier: GPL-2.0

//! A completion is looked at after its handler has returned.

use crate::ib::wc::Wc;

fn keep(_wc: Wc<'static>) {}

fn look(_wc: Wc<'_>) {}

fn misuse(wc: Wc<'_>) {
    //~ E0521 borrowed data escapes outside of function
    //= look(wc);
    keep(wc);
}
