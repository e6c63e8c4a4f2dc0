// SPDX-License-Identifier: GPL-2.0

//! Completion queue with a typed context.
//!
//! Polled by the RDMA core's workqueue: completion handlers run in process context, one at a time
//! per queue.

use crate::{
    ffi,
    ib::client::DeviceGuard,
    kern::{
        context::Sleepable,
        place::Place, //
    }, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::from_err_ptr,
    prelude::*, //
};

/// A completion queue whose handlers are given a `&C`.
///
/// # Invariants
///
/// The queue is valid, and its context points to a `C` that outlives it.
pub(crate) struct Cq<C: Sync> {
    ptr: NonNull<ffi::ib_cq>,
    _context: PhantomData<*const C>,
    _device: DeviceGuard,
}

// SAFETY: The queue is a handle that the RDMA core synchronizes; the context is shared as `&C`.
unsafe impl<C: Sync> Send for Cq<C> {}
// SAFETY: As above.
unsafe impl<C: Sync> Sync for Cq<C> {}

impl<C: Sync> Cq<C> {
    /// Allocates a queue for `entries` completions on any completion vector.
    ///
    /// # Errors
    ///
    /// What the device's driver returns.
    pub(crate) fn alloc(
        device: &DeviceGuard,
        place: Place<C>,
        entries: u32,
        _sleepable: &Sleepable,
    ) -> Result<Self> {
        // SAFETY: The device is registered while guarded; the name is static.
        let cq = from_err_ptr(unsafe {
            ffi::__ib_alloc_cq_any(
                device.as_ptr(),
                place.as_ptr().cast_mut().cast(),
                i32::try_from(entries)?,
                ffi::ib_poll_context_IB_POLL_WORKQUEUE,
                crate::NAME.as_char_ptr(),
            )
        })?;
        // INVARIANT: Just allocated; the rest is the invariant of `Place`.
        Ok(Self {
            ptr: NonNull::new(cq).ok_or(ENOMEM)?,
            _context: PhantomData,
            _device: device.again(),
        })
    }

    /// The C object.
    pub(crate) fn as_ptr(&self) -> *mut ffi::ib_cq {
        self.ptr.as_ptr()
    }
}

impl<C: Sync> Drop for Cq<C> {
    fn drop(&mut self) {
        // SAFETY: Valid by the type invariant; `Endpoint` drops the queue pair first. Waits for a
        // handler that runs.
        unsafe { ffi::ib_free_cq(self.as_ptr()) };
    }
}
