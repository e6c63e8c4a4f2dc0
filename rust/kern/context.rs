// SPDX-License-Identifier: GPL-2.0

//! Proof that the current context may sleep.
//!
//! Operations of this module that sleep take a `&Sleepable`. Completion handlers are never given one,
//! so such a call from there does not compile. The token says nothing about locks, and functions of
//! the `kernel` crate do not take it: the debug kernel's `DEBUG_ATOMIC_SLEEP` and lockdep cover those.

use core::marker::PhantomData;

/// The running context may sleep.
///
/// Not `Send`, and never stored: it is made by an adapter whose C caller promises process context
/// and borrowed downwards from there.
pub(crate) struct Sleepable(PhantomData<*mut ()>);

impl Sleepable {
    /// Asserts that the caller runs in a context that may sleep.
    ///
    /// # Safety
    ///
    /// No spinlock is held, interrupts and preemption are enabled, and the token does not outlive
    /// the function that makes it.
    pub(crate) unsafe fn assume() -> Self {
        Self(PhantomData)
    }
}
