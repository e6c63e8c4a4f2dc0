// SPDX-License-Identifier: GPL-2.0

//! Offsets and sizes as bindgen saw them against those of the kernel's own compiler.
//!
//! `CONFIG_MODVERSIONS` is off on the target, so nothing else would notice a member that the two
//! views place differently. The list is `include/svcrdma/layout.h`; Kbuild turns it into one line
//! per member with the compiler's number.

macro_rules! same_offset {
    ($ty:ident, $member:ident, $there:literal) => {
        const _: () = assert!(
            core::mem::offset_of!(super::$ty, $member) == $there,
            concat!(
                stringify!($ty),
                ".",
                stringify!($member),
                ": bindgen and the compiler disagree"
            ),
        );
    };
}

macro_rules! same_size {
    ($ty:ident, $there:literal) => {
        const _: () = assert!(
            size_of::<super::$ty>() == $there,
            concat!(
                stringify!($ty),
                ": bindgen and the compiler disagree on its size"
            ),
        );
    };
}

include!(concat!(
    env!("SVCRDMA_OBJ"),
    "/rust/ffi/layout_generated.rs"
));
