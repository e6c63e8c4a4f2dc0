// SPDX-License-Identifier: GPL-2.0

//! A device is used when nothing keeps it from being removed any more.

use crate::ib::client::DeviceGuard;
use crate::ib::device::Device;

fn misuse(guard: DeviceGuard) -> bool {
    let device: &Device = &guard;
    //~ E0505 cannot move out of `guard` because it is borrowed
    //=
    drop(guard);
    device.caps(1).iwarp
}
