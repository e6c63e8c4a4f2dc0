// SPDX-License-Identifier: GPL-2.0

//! Raw C interfaces: bindgen's output over `include/svcrdma/bindings.h`, unified with the types of
//! `kernel::bindings`.
//!
//! Only `kern`, `ib`, `cm`, `svc` and `rpc` may name anything from here. Names that bindgen does
//! not emit (see `bindgen_parameters`) resolve to the kernel crate's own types through the glob
//! import, so a `page` or a `net` here is the one the kernel crate means.

mod layout;

#[allow(
    clippy::all,
    clippy::as_ptr_cast_mut,
    clippy::as_underscore,
    clippy::borrow_as_ptr,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ptr_cast_constness,
    clippy::ref_as_ptr,
    clippy::semicolon_if_nothing_returned,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    improper_ctypes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    unused_imports,
    reason = "generated code"
)]
mod raw {
    use kernel::bindings::*;
    use kernel::ffi;
    use pin_init::{
        MaybeZeroable,
        Zeroable, //
    };

    type __kernel_size_t = usize;
    type __kernel_ssize_t = isize;
    type __kernel_ptrdiff_t = isize;

    include!(concat!(
        env!("SVCRDMA_OBJ"),
        "/rust/ffi/bindings_generated.rs"
    ));
}

pub(crate) use self::raw::*;
pub(crate) use kernel::bindings::{
    destroy_workqueue,
    dma_iova_state,
    ktime_get,
    kvec,
    module,
    net,
    page,
    scatterlist,
    seq_file,
    sg_init_table,
    shrinker,
    shrinker_free,
    sockaddr,
    workqueue_struct,
    AF_INET6,
    IPPROTO_MAX, //
};
