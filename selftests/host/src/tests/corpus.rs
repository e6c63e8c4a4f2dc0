// SPDX-License-Identifier: GPL-2.0

//! The corpus of the fuzz targets: what fuzzing found worth keeping stays found.

use crate::{
    frame::hex,
    fuzz_targets, //
};

fn run(corpus: &str, target: fn(&[u8])) {
    let lines: Vec<&str> = corpus.lines().collect();
    assert!(lines.len() >= 10);
    for line in lines {
        target(&hex(line));
    }
}

#[test]
fn parse() {
    run(
        include_str!("../../fuzz/corpus/parse.hex"),
        fuzz_targets::parse,
    );
}

#[test]
fn assembly() {
    run(
        include_str!("../../fuzz/corpus/assembly.hex"),
        fuzz_targets::assembly,
    );
}

#[test]
fn reply() {
    run(
        include_str!("../../fuzz/corpus/reply.hex"),
        fuzz_targets::reply,
    );
}

#[test]
fn private() {
    run(
        include_str!("../../fuzz/corpus/private.hex"),
        fuzz_targets::private,
    );
}
