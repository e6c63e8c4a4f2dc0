// SPDX-License-Identifier: GPL-2.0

//! What all listeners and connections of the loaded module share.

use crate::{
    ib::{
        client::{
            ClientOps,
            Devices, //
        },
        device::Device, //
    },
    kern::{
        context::Sleepable,
        module_cell::{
            Installed,
            ModuleCell, //
        },
        params,
        shrinker::Shrink,
        work_queue::WorkQueue, //
    },
    svc::{
        class::Class,
        registry::Registry, //
    },
    transport::{
        connection::Connection,
        depot::Depot,
        geometry::ReaderChoice, //
    }, //
};
use kernel::prelude::*;

static SHARED: ModuleCell<Shared> = ModuleCell::new();
static CLASS: Class = Class::new();

/// The shared state.
#[pin_data]
pub(crate) struct Shared {
    // Dropped first: teardown that is still queued uses the rest.
    /// Where teardown runs.
    pub(crate) queue: WorkQueue,
    /// The devices present.
    #[pin]
    pub(crate) devices: Devices,
    /// All connections.
    #[pin]
    pub(crate) connections: Registry<Connection>,
    /// The pools.
    #[pin]
    pub(crate) depot: Depot,
    /// What the administrator wants of the reader.
    pub(crate) reader: ReaderChoice,
}

impl Shared {
    /// Makes the shared state and publishes it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` for a parameter that makes no sense.
    pub(crate) fn install() -> Result<Installed<Self>> {
        let reader = ReaderChoice::parse(params::reader()).inspect_err(|_| {
            pr_err!("reader must be auto, local or frmr\n");
        })?;
        let queue = WorkQueue::new(crate::NAME)?;
        let shared = KBox::pin_init(
            try_pin_init!(Self {
                queue,
                devices <- Devices::new(),
                connections <- Registry::new(),
                depot <- Depot::new(),
                reader,
            }? Error),
            GFP_KERNEL,
        )?;
        Ok(SHARED.install(shared))
    }
}

/// The shared state, while the module is loaded.
pub(crate) fn get() -> Option<&'static Shared> {
    SHARED.get()
}

/// The transport class.
pub(crate) fn class() -> &'static Class {
    &CLASS
}

/// The module as a client of the RDMA core.
pub(crate) struct RdmaClient;

impl ClientOps for RdmaClient {
    const NAME: &'static CStr = crate::NAME;

    fn devices() -> Option<&'static Devices> {
        get().map(|shared| &shared.devices)
    }

    fn removing(device: &Device, context: &Sleepable) {
        let Some(shared) = get() else {
            return;
        };
        // Each is closed outside the registry's lock: closing may drop the last reference.
        while let Some(conn) = shared
            .connections
            .find(|conn| !conn.is_dead() && core::ptr::eq(&**conn.endpoint().device(), device))
        {
            conn.close(context);
        }
    }
}

/// The module's pools, for memory reclaim.
pub(crate) struct PoolShrinker;

impl Shrink for PoolShrinker {
    fn count() -> usize {
        get().map_or(0, |shared| shared.depot.pooled())
    }

    fn scan(n: usize) -> usize {
        get().map_or(0, |shared| shared.depot.shrink(n))
    }
}
