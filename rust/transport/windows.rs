// SPDX-License-Identifier: GPL-2.0

//! A connection's windows for RDMA Reads into registered memory.
//!
//! Locks: `Windows::pool`.

use crate::{
    cm::endpoint::{
        ConnHandler,
        Endpoint, //
    },
    ib::mr::Window,
    kern::context::Sleepable,
    transport::geometry::MAX_CALLS, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

/// The windows.
#[pin_data]
pub(crate) struct Windows {
    /// Pages of each.
    pages: usize,
    #[pin]
    pool: SpinLock<Pool>,
}

struct Pool {
    idle: KVec<KBox<Window>>,
    /// Windows whose state is unknown; kept until they can be freed.
    spent: KVec<KBox<Window>>,
}

impl Windows {
    /// An empty pool of windows of `pages` pages.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(pages: usize) -> Result<impl PinInit<Self>> {
        // CAST: A small constant.
        let room = MAX_CALLS as usize;
        let pool = Pool {
            idle: KVec::with_capacity(room, GFP_KERNEL)?,
            spent: KVec::with_capacity(room, GFP_KERNEL)?,
        };
        Ok(pin_init!(Self {
            pages,
            pool <- new_spinlock!(pool, "svcrdma_rs::windows"),
        }))
    }

    /// An idle window.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and what the device's driver returns.
    pub(crate) fn take<C: ConnHandler>(
        &self,
        endpoint: &Endpoint<C>,
        context: &Sleepable,
    ) -> Result<KBox<Window>> {
        let pooled = self.pool.lock().idle.pop();
        match pooled {
            Some(window) => Ok(window),
            None => Window::alloc(endpoint.device(), endpoint.pd(), self.pages, context),
        }
    }

    /// Takes a window back. `good` says that its whole chain completed without an error; else it is
    /// never used again.
    pub(crate) fn put(&self, window: KBox<Window>, good: bool) {
        let mut pool = self.pool.lock();
        let list = if good {
            &mut pool.idle
        } else {
            &mut pool.spent
        };
        let refused = list.push_within_capacity(window);
        drop(pool);
        drop(refused);
    }
}
