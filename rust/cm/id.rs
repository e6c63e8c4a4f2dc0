// SPDX-License-Identifier: GPL-2.0

//! An owned `rdma_cm_id`.

use crate::{
    ffi,
    ib::device::Device,
    kern::sockaddr::SockAddr,
    stats, //
};
use core::ptr::NonNull;
use kernel::prelude::*;

/// An id, destroyed with this value.
///
/// Dropping it waits for a handler that runs, so it must not be dropped inside one of its own; a
/// handler that wants it gone forgets it and lets the RDMA core destroy it.
///
/// # Invariants
///
/// The id is valid and nobody else destroys it.
pub(super) struct Id(NonNull<ffi::rdma_cm_id>);

// SAFETY: The RDMA core synchronizes ids.
unsafe impl Send for Id {}
// SAFETY: As above.
unsafe impl Sync for Id {}

impl Id {
    /// Takes over an id.
    ///
    /// # Safety
    ///
    /// `id` is valid and the caller gives its destruction up.
    pub(super) unsafe fn from_raw(id: NonNull<ffi::rdma_cm_id>) -> Self {
        stats::objects().cm_ids.inc();
        // INVARIANT: By this function's contract.
        Self(id)
    }

    /// Leaves the destruction to the RDMA core, as an event handler does by its return value.
    pub(super) fn forget(self) {
        stats::objects().cm_ids.dec();
        core::mem::forget(self);
    }

    /// The C object.
    pub(super) fn as_ptr(&self) -> *mut ffi::rdma_cm_id {
        self.0.as_ptr()
    }

    /// The C object.
    pub(super) fn as_non_null(&self) -> NonNull<ffi::rdma_cm_id> {
        self.0
    }

    /// The address of this end.
    pub(super) fn local_addr(&self) -> Result<SockAddr<'_>> {
        // SAFETY: The address lives in the id and does not change once it is bound.
        unsafe { SockAddr::from_raw(ffi::svcrs_cm_local_addr(self.as_ptr())) }
    }

    /// The address of the other end.
    pub(super) fn peer_addr(&self) -> Result<SockAddr<'_>> {
        // SAFETY: As in `local_addr`.
        unsafe { SockAddr::from_raw(ffi::svcrs_cm_peer_addr(self.as_ptr())) }
    }

    /// The port of the device that the id is attached to.
    pub(super) fn port(&self) -> u32 {
        // SAFETY: Valid by the type invariant.
        unsafe { ffi::svcrs_cm_port(self.as_ptr()) }
    }

    /// The device the id is attached to.
    pub(super) fn device(&self) -> Option<&Device> {
        // SAFETY: Valid by the type invariant.
        let device = unsafe { ffi::svcrs_cm_device(self.as_ptr()) };
        if device.is_null() {
            return None;
        }
        // SAFETY: An id that is attached to a device keeps it registered.
        Some(unsafe { Device::from_raw(device) })
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        stats::objects().cm_ids.dec();
        // SAFETY: Valid by the type invariant and ours to destroy.
        unsafe { ffi::rdma_destroy_id(self.as_ptr()) };
    }
}
