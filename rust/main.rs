// SPDX-License-Identifier: GPL-2.0

//! Server side of RPC-over-RDMA version 1 for `knfsd`.
//!
//! Layers, each importing only from those left of it: `ffi`, `kern`, `ib`, `cm`, and beside the
//! last two `svc` and `rpc`; `proto` is pure; `transport` stands on all but `ffi`.

#![crate_name = "svcrdma_rs"]

mod cm;
mod debugfs;
mod ffi;
mod ib;
mod kern;
#[cfg(CONFIG_KUNIT = "y")]
mod kunit;
mod proto;
mod rpc;
mod stats;
mod svc;
mod transport;

use crate::{
    ib::{
        client::Client,
        dma_check, //
    },
    kern::{
        module_cell::Installed,
        params,
        shrinker::Shrinker, //
    },
    svc::class::{
        Class,
        Registration, //
    },
    transport::{
        connection::Connection,
        listener::Listener,
        shared::{
            PoolShrinker,
            RdmaClient,
            Shared, //
        }, //
    }, //
};
use kernel::prelude::*;

/// The module's name, as other subsystems show it.
pub(crate) const NAME: &CStr = c"svcrdma_rs";

module! {
    type: SvcRdma,
    name: "svcrdma_rs",
    authors: ["svcrdma_rs developers"],
    description: "RPC-over-RDMA server transport for knfsd",
    license: "GPL",
    alias: ["svcrdma-rs"],
}

/// The loaded module.
#[pin_data]
struct SvcRdma {
    // Dropped in this order: first what lets new work in, last what work uses.
    _class: Registration<Listener>,
    _backchannel: rpc::class::Registration<Connection>,
    #[pin]
    _debugfs: debugfs::Files,
    #[pin]
    _client: Client<RdmaClient>,
    _shrinker: Shrinker<PoolShrinker>,
    _shared: Installed<Shared>,
    _dma_check: dma_check::Installed,
}

impl kernel::InPlaceModule for SvcRdma {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        let name = if params::drop_in() {
            c"rdma"
        } else {
            c"rdma-rs"
        };
        try_pin_init!(Self {
            _dma_check: dma_check::install()?,
            _shared: Shared::install()?,
            _shrinker: Shrinker::register()?,
            _client <- Client::register(),
            _debugfs <- debugfs::Files::new(),
            _backchannel: rpc::class::Class::register::<Connection>(
                module,
                c"rdma-rs backchannel",
            )?,
            _class: Class::register::<Listener>(module, name).inspect_err(|error| {
                if *error == EEXIST {
                    pr_err!(
                        "a transport named {name:?} is loaded already (rpcrdma?): unload it, or load this module before it\n"
                    );
                }
            })?,
        })
    }
}
