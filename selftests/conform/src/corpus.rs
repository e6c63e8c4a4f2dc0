// SPDX-License-Identifier: GPL-2.0
//! What cases sent, from their evidence, as seeds for fuzzers of decoders.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::Value;

/// Each thing once: its kind and its bytes in hexadecimal.
pub fn write(path: &str, report: &[Value]) -> Result<(), String> {
    let mut seeds = BTreeSet::new();
    let steps = report.iter().filter_map(|case| case["evidence"].as_array());
    for step in steps.flatten() {
        if let Some(sent) = step["sent"].as_str() {
            seeds.insert(("message", plain(sent)));
        }
        let connect = step["cm"].as_str().unwrap_or_default();
        if let Some(private) = connect.strip_prefix("connect, private data ") {
            seeds.insert(("private", plain(private)));
        }
    }
    let text = seeds.iter().fold(String::new(), |mut text, (kind, bytes)| {
        let _ = writeln!(text, "{kind} {bytes}");
        text
    });
    std::fs::write(path, text).map_err(|e| format!("{path}: {e}"))
}

fn plain(hex: &str) -> String {
    hex.replace(' ', "")
}
