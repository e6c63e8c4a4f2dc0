// SPDX-License-Identifier: GPL-2.0

//! A limit on how often one line of code may write to the log.
//!
//! Anything a peer can trigger goes through it, or a peer could fill the log.

use crate::ffi;
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// Lines let through per window.
const BURST: u32 = 10;
/// Length of a window in nanoseconds.
const WINDOW: i64 = 5_000_000_000;

/// State of one call site.
pub(crate) struct RateLimit {
    /// Window the count belongs to.
    window: Atomic<i64>,
    /// Lines let through in it.
    count: Atomic<u32>,
}

impl RateLimit {
    /// For a `static` at the call site; see [`ratelimited`](crate::ratelimited).
    pub(crate) const fn new() -> Self {
        Self {
            window: Atomic::new(0),
            count: Atomic::new(0),
        }
    }

    /// Whether the line may be written now. Racing callers may let a few lines more through.
    pub(crate) fn allow(&self) -> bool {
        // SAFETY: Reads the clock; no preconditions.
        let now = unsafe { ffi::ktime_get() } / WINDOW;
        if self.window.load(Relaxed) != now {
            self.window.store(now, Relaxed);
            self.count.store(0, Relaxed);
        }
        self.count.fetch_add(1, Relaxed) < BURST
    }
}

/// Runs a logging statement at most ten times in five seconds.
#[macro_export]
macro_rules! ratelimited {
    ($($statement:tt)+) => {{
        static LIMIT: $crate::kern::ratelimit::RateLimit =
            $crate::kern::ratelimit::RateLimit::new();
        if LIMIT.allow() {
            $($statement)+
        }
    }};
}
