// SPDX-License-Identifier: GPL-2.0
//! What cases sent, from their evidence, as seeds for fuzzers of decoders.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::frame::unhex;

const TARGETS: [&str; 2] = ["parse", "private"];

/// Make the folders, and see whether files can be made there.
pub fn create(folder: &str) -> Result<(), String> {
    TARGETS.iter().try_for_each(|target| {
        let probe = format!("{folder}/{target}/probe");
        fs::create_dir_all(format!("{folder}/{target}"))
            .and_then(|()| fs::write(&probe, ""))
            .and_then(|()| fs::remove_file(&probe))
            .map_err(|e| format!("--corpus {folder}/{target}: {e}"))
    })
}

/// Each thing once, in a file of its own: messages in `parse`, private data in `private`.
pub fn write(folder: &str, cases: &Value) -> Result<(), String> {
    let mut seeds = BTreeSet::new();
    let cases = cases.as_array().into_iter().flatten();
    let steps = cases.filter_map(|case| case["evidence"].as_array());
    for step in steps.flatten() {
        if let Some(sent) = step["sent"].as_str() {
            seeds.insert((TARGETS[0], unhex(sent)));
        }
        let connect = step["cm"].as_str().unwrap_or_default();
        if let Some(private) = connect.strip_prefix("connect, private data ") {
            seeds.insert((TARGETS[1], unhex(private)));
        }
    }
    for (number, (target, bytes)) in seeds.iter().enumerate() {
        let path = format!("{folder}/{target}/{number:06}");
        fs::write(&path, bytes).map_err(|e| format!("{path}: {e}"))?;
    }
    Ok(())
}
