// SPDX-License-Identifier: GPL-2.0

//! Copying that cannot panic.

/// Copies as many bytes as both have.
///
/// `copy_from_slice` panics when the lengths differ, and a panic in the kernel is a crash.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}
