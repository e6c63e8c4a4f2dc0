// SPDX-License-Identifier: GPL-2.0

//! Protection domain.

use crate::{
    ffi,
    ib::client::DeviceGuard,
    kern::context::Sleepable, //
};
use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*, //
};

/// A local key: names local memory in a scatter/gather element.
#[derive(Clone, Copy)]
pub(crate) struct LocalKey(u32);

impl LocalKey {
    /// Any key.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn of_no_device(key: u32) -> Self {
        Self(key)
    }

    /// The value for a scatter/gather element.
    pub(super) fn raw(self) -> u32 {
        self.0
    }
}

/// A protection domain without remote access to all of memory.
///
/// # Invariants
///
/// The domain is valid; `_device` keeps its device.
pub(crate) struct Pd {
    ptr: NonNull<ffi::ib_pd>,
    _device: DeviceGuard,
}

// SAFETY: A protection domain is an immutable handle.
unsafe impl Send for Pd {}
// SAFETY: As above.
unsafe impl Sync for Pd {}

impl Pd {
    /// Allocates a domain.
    ///
    /// # Errors
    ///
    /// What the device's driver returns.
    pub(crate) fn alloc(device: &DeviceGuard, _context: &Sleepable) -> Result<Self> {
        // SAFETY: The device is registered while guarded; the name is static.
        let pd = from_err_ptr(unsafe {
            ffi::__ib_alloc_pd(device.as_ptr(), 0, crate::NAME.as_char_ptr())
        })?;
        // INVARIANT: Just allocated.
        Ok(Self {
            ptr: NonNull::new(pd).ok_or(ENOMEM)?,
            _device: device.again(),
        })
    }

    /// The C object.
    pub(crate) fn as_ptr(&self) -> *mut ffi::ib_pd {
        self.ptr.as_ptr()
    }

    /// The key for memory mapped for DMA.
    pub(crate) fn local_dma_lkey(&self) -> LocalKey {
        // SAFETY: Valid by the type invariant.
        LocalKey(unsafe { ffi::svcrs_pd_local_dma_lkey(self.as_ptr()) })
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: Valid by the type invariant; `Endpoint` drops the queue pair before its reference,
        // and each memory region holds one.
        unsafe { ffi::ib_dealloc_pd_user(self.as_ptr(), core::ptr::null_mut()) };
    }
}
