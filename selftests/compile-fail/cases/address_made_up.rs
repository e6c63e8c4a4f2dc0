// SPDX-License-Identifier: GPL-2.0

//! A device is given an address that no mapping stands for.

use crate::ib::mapping::DmaAddr;

fn misuse(mapped: DmaAddr) -> DmaAddr {
    //~ E0423 cannot initialize a tuple struct which contains private fields
    //= mapped
    DmaAddr(0x1000)
}
