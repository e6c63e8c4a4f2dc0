// SPDX-License-Identifier: GPL-2.0

//! Nothing of the catalogue is forgotten: each case is named in a test, or here with the reason why
//! bytes alone do not decide it.

const SOURCES: &[&str] = &[
    include_str!("catalogue.rs"),
    include_str!("catalogue_reads.rs"),
    include_str!("catalogue_writes.rs"),
    include_str!("cm_private.rs"),
    include_str!("frames.rs"),
    include_str!("matrix.rs"),
    include_str!("rpc_layer.rs"),
];

/// Cases that a test on a connection decides.
const ELSEWHERE: &[(&str, &str)] = &[
    ("M165", "the second of two equal Replies: XIDs in flight"),
    ("M166", "a Reply longer than the buffer of the callback"),
    ("M172", "a peer that never answers"),
    ("M173", "the window of the reverse direction"),
    ("M181", "a field of the connection request"),
    ("M182", "kind of queue pair"),
];

fn named(id: &str) -> bool {
    SOURCES.iter().any(|source| source.contains(id))
}

#[test]
fn every_case() {
    let cases = (1..=115).chain(162..=187).map(|n| format!("M{n:03}"));
    let cells = (1..=30).map(|n| format!("P{n:02}"));
    let missing: Vec<String> = cases
        .chain(cells)
        .filter(|id| !named(id) && ELSEWHERE.iter().all(|(other, _)| other != id))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    for (id, _) in ELSEWHERE {
        assert!(!named(id), "{id}");
    }
}
