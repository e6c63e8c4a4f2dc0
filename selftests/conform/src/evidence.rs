// SPDX-License-Identifier: GPL-2.0
//! What RDMA Reads and Writes moved, for the evidence.

use serde_json::{json, Value};

use crate::{
    explain::Memory,
    frame::{hex, Lists, Segment},
};

/// Bytes of each chunk that are written out; the rest is a hash.
const SHOWN: usize = 256;

/// An empty file: evidence of an earlier run is none of this one.
pub fn create(path: &str) -> Result<(), String> {
    std::fs::write(path, "").map_err(|e| format!("--json {path}: {e}"))
}

/// The whole report.
pub fn write(path: &str, report: &Value) -> Result<(), String> {
    std::fs::write(path, format!("{report:#}\n")).map_err(|e| format!("{path}: {e}"))
}

/// What a client offers in Read chunks.
pub fn offered(lists: &Lists, memory: &Memory<'_>) -> Vec<Value> {
    let mut positions: Vec<_> = lists.reads.iter().map(|(position, _)| *position).collect();
    positions.sort_unstable();
    positions.dedup();
    let chunk = |position| {
        let segments = lists.reads.iter().filter(|(p, _)| *p == position);
        let segments: Vec<_> = segments.map(|(_, segment)| *segment).collect();
        chunk(&format!("read {position}"), &segments, memory)
    };
    positions.into_iter().map(chunk).collect()
}

/// What a server says it has put into Write chunks and the Reply chunk.
pub fn placed(lists: &Lists, memory: &Memory<'_>) -> Vec<Value> {
    let numbered = lists.writes.iter().enumerate();
    let writes = numbered.map(|(i, segments)| chunk(&format!("write {i}"), segments, memory));
    let reply = lists.reply.iter();
    writes
        .chain(reply.map(|segments| chunk("reply", segments, memory)))
        .collect()
}

fn chunk(name: &str, segments: &[Segment], memory: &Memory<'_>) -> Value {
    let mut data = Vec::new();
    for segment in segments.iter().filter(|s| s.length > 0) {
        match memory(segment) {
            Some(bytes) => data.extend(bytes),
            None => return json!({ "chunk": name, "segments": segments, "bytes": null }),
        }
    }
    let shown = data.len().min(SHOWN);
    let mut value = json!({ "chunk": name, "length": data.len(), "bytes": hex(&data[..shown]) });
    if shown < data.len() {
        value["fnv1a_of_rest"] = json!(format!("{:016x}", fnv1a(&data[shown..])));
    }
    value
}

/// The hash of Fowler, Noll and Vo with 64 bits.
fn fnv1a(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
