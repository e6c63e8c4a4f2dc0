// SPDX-License-Identifier: GPL-2.0

//! `/sys/kernel/debug/svcrdma_rs`: `stats`, `objects`, `connections`.
//!
//! `name value` lines, and one line for each connection; `Documentation/counters.md` describes them.

use crate::{
    stats,
    transport::shared, //
};
use kernel::{
    debugfs::{
        Dir,
        File, //
    },
    fmt,
    prelude::*, //
};

/// The files, removed with this value.
#[pin_data]
pub(crate) struct Files {
    #[pin]
    stats: File<()>,
    #[pin]
    objects: File<()>,
    #[pin]
    connections: File<()>,
    _dir: Dir,
}

fn show_stats(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    stats::stats().for_each(|name, value| writeln!(f, "{name} {value}"))
}

fn show_objects(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    stats::objects().for_each(|name, value| writeln!(f, "{name} {value}"))
}

fn show_connections(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(shared) = shared::get() else {
        return Ok(());
    };
    shared.connections.for_each(|conn| {
        f.write_fmt(fmt!(
            "peer {} inline {} send_depth {} max_sge {} reader {}\n",
            conn.peer_name(),
            conn.inline_max(),
            conn.endpoint().geometry().send_depth,
            conn.endpoint().geometry().max_sge,
            if conn.registered_reads().is_some() {
                "frmr"
            } else {
                "local"
            },
        ))
    })
}

impl Files {
    /// Makes the directory and the files.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        let dir = Dir::new(crate::NAME);
        try_pin_init!(Self {
            stats <- dir.read_callback_file(c"stats", (), &show_stats),
            objects <- dir.read_callback_file(c"objects", (), &show_objects),
            connections <- dir.read_callback_file(c"connections", (), &show_connections),
            _dir: dir.clone(),
        }? Error)
    }
}
