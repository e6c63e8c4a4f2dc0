// SPDX-License-Identifier: GPL-2.0
//! What cases sent, from their evidence, as seeds for fuzzers of decoders.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::frame::unhex;

/// Each thing once, in a file of its own: messages in `parse`, private data in `private`.
pub fn write(folder: &str, report: &[Value]) -> Result<(), String> {
    let mut seeds = BTreeSet::new();
    let steps = report.iter().filter_map(|case| case["evidence"].as_array());
    for step in steps.flatten() {
        if let Some(sent) = step["sent"].as_str() {
            seeds.insert(("parse", unhex(sent)));
        }
        let connect = step["cm"].as_str().unwrap_or_default();
        if let Some(private) = connect.strip_prefix("connect, private data ") {
            seeds.insert(("private", unhex(private)));
        }
    }
    for (number, (target, bytes)) in seeds.iter().enumerate() {
        let path = format!("{folder}/{target}/{number:06}");
        fs::create_dir_all(format!("{folder}/{target}"))
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|e| format!("{path}: {e}"))?;
    }
    Ok(())
}
