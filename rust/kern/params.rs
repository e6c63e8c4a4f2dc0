// SPDX-License-Identifier: GPL-2.0

//! Module parameters whose storage is in C (`rust/helpers/params.c`).

use crate::ffi;
use kernel::prelude::*;

/// The parameter `reader`.
pub(crate) fn reader() -> &'static [u8] {
    // SAFETY: The kernel sets the pointer before the module's initialization and never after.
    let ptr = unsafe { ffi::svcrs_reader };
    // SAFETY: It is a C string that lives as long as the module.
    unsafe { CStr::from_char_ptr(ptr) }.to_bytes()
}

/// The parameter `drop_in`.
pub(crate) fn drop_in() -> bool {
    // SAFETY: The kernel sets it before the module's initialization and never after.
    unsafe { ffi::svcrs_drop_in }
}
