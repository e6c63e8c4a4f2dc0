// SPDX-License-Identifier: GPL-2.0

//! The module's own workqueue.
//!
//! Work on a system queue would hold module text at unload; destroying our own waits for it. It is
//! unbound and concurrent: one item that sleeps for long does not keep the others from running.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use crate::ffi;
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    str::CStr,
    workqueue::Queue, //
};

/// An unbound workqueue, destroyed with this value.
///
/// # Invariants
///
/// The queue is valid.
pub(crate) struct WorkQueue(NonNull<ffi::workqueue_struct>);

// SAFETY: A workqueue may be used and destroyed from any thread that may sleep.
unsafe impl Send for WorkQueue {}
// SAFETY: Enqueueing is synchronized by the workqueue itself.
unsafe impl Sync for WorkQueue {}

impl WorkQueue {
    /// Creates the queue.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Context
    ///
    /// May sleep.
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        // SAFETY: The name is a valid C string, copied by the callee.
        let queue = unsafe { ffi::svcrs_alloc_unbound_wq(name.as_char_ptr()) };
        // INVARIANT: Just created.
        Ok(Self(NonNull::new(queue).ok_or(ENOMEM)?))
    }

    /// The queue, to enqueue work on.
    pub(crate) fn queue(&self) -> &Queue {
        // SAFETY: Valid by the type invariant for as long as `self` is borrowed.
        unsafe { Queue::from_raw(self.0.as_ptr()) }
    }
}

impl Drop for WorkQueue {
    fn drop(&mut self) {
        // SAFETY: Valid by the type invariant; items still on the queue run before this returns.
        unsafe { ffi::destroy_workqueue(self.0.as_ptr()) };
    }
}
