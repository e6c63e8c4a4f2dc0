// SPDX-License-Identifier: GPL-2.0
//! Generate the bindings from the headers that are installed.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo:rustc-link-lib=rdmacm");
    println!("cargo:rustc-link-lib=ibverbs");
    println!("cargo:rerun-if-changed=wrapper.h");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    bindgen::Builder::default()
        .header("wrapper.h")
        .allowlist_item("(ibv|IBV|rdma|RDMA)_.*")
        .prepend_enum_name(false)
        .layout_tests(true)
        .derive_default(true)
        .generate_comments(false)
        .generate()
        .expect("rdma-core's headers (libibverbs-dev, librdmacm-dev)")
        .write_to_file(out.join("bindings.rs"))
        .expect("OUT_DIR is writable");
}
