// SPDX-License-Identifier: GPL-2.0

//! A proof of sleepable context made from nothing.

use crate::kern::context::Sleepable;
use core::marker::PhantomData;

fn misuse(given: Sleepable) -> Sleepable {
    //~ E0423 cannot initialize a tuple struct which contains private fields
    //= given
    Sleepable(PhantomData)
}
