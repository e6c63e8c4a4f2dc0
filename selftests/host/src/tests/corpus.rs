// SPDX-License-Identifier: GPL-2.0

//! The corpus of the fuzz targets: what fuzzing found worth keeping stays found.

use crate::{
    frame::hex,
    fuzz_targets, //
};
use std::{
    fs,
    path::Path, //
};

fn run(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut inputs = 0;
    for file in fs::read_dir(corpus.join(name)).unwrap() {
        for line in fs::read_to_string(file.unwrap().path()).unwrap().lines() {
            target(&hex(line));
            inputs += 1;
        }
    }
    assert!(inputs >= 10);
}

#[test]
fn parse() {
    run("parse", fuzz_targets::parse);
}

#[test]
fn assembly() {
    run("assembly", fuzz_targets::assembly);
}

#[test]
fn reply() {
    run("reply", fuzz_targets::reply);
}

#[test]
fn private() {
    run("private", fuzz_targets::private);
}
