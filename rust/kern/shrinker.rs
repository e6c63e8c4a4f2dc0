// SPDX-License-Identifier: GPL-2.0

//! The module's memory shrinker.
//!
//! C header: [`include/linux/shrinker.h`](srctree/include/linux/shrinker.h)

use crate::ffi;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    ffi::c_ulong,
    prelude::*, //
};

/// What can be given back under memory pressure.
///
/// # Context
///
/// Called from memory reclaim: no allocation, no sleeping lock that is held around an allocation.
pub(crate) trait Shrink: 'static {
    /// Objects that could be freed.
    fn count() -> usize;
    /// Frees at most `n` objects; how many were.
    fn scan(n: usize) -> usize;
}

/// # Safety
///
/// None; memory reclaim calls it.
unsafe extern "C" fn count<T: Shrink>() -> c_ulong {
    T::count()
}

/// # Safety
///
/// None; memory reclaim calls it.
unsafe extern "C" fn scan<T: Shrink>(n: c_ulong) -> c_ulong {
    T::scan(n)
}

/// A registered shrinker; the module has one.
///
/// # Invariants
///
/// The shrinker is registered.
pub(crate) struct Shrinker<T: Shrink>(NonNull<ffi::shrinker>, PhantomData<fn() -> T>);

// SAFETY: Unregistering may happen on any thread that may sleep.
unsafe impl<T: Shrink> Send for Shrinker<T> {}
// SAFETY: Nothing is reachable through a shared reference.
unsafe impl<T: Shrink> Sync for Shrinker<T> {}

impl<T: Shrink> Shrinker<T> {
    /// Registers `T`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Context
    ///
    /// Module initialization; may sleep.
    pub(crate) fn register() -> Result<Self> {
        // SAFETY: Both functions live as long as the module, and `Drop` ends their use.
        let ptr = unsafe { ffi::svcrs_shrinker_register(Some(count::<T>), Some(scan::<T>)) };
        // INVARIANT: Registered by the call.
        Ok(Self(NonNull::new(ptr).ok_or(ENOMEM)?, PhantomData))
    }
}

impl<T: Shrink> Drop for Shrinker<T> {
    fn drop(&mut self) {
        // SAFETY: Registered by the type invariant; waits for callbacks that run.
        unsafe { ffi::shrinker_free(self.0.as_ptr()) };
    }
}
