// SPDX-License-Identifier: GPL-2.0

//! Room on a Send Queue.
//!
//! A [`SqCredit`] is room reserved before anything is posted. Posting consumes it, the completion
//! gives it back, and dropping it unused does too: no path can forget it. Who asks while there is
//! not enough waits in order, and not for ever: a peer that serves nothing must not hold threads.
//!
//! Locks: `Sq::state` only.

use crate::{
    kern::context::Sleepable,
    stats, //
};
use kernel::{
    new_condvar,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        CondVar,
        CondVarTimeoutResult,
        SpinLock, //
    },
    time::{
        msecs_to_jiffies,
        Delta,
        Instant,
        Monotonic, //
    }, //
};

/// How often a waiter looks whether the connection is still alive.
const TICK_MS: u32 = 1000;
/// Ticks without any completion after which a waiter gives up.
const PATIENCE: u32 = 60;
/// Ticks after which it gives up in any case: a peer must not hold a thread by serving a little now
/// and then.
const LAST_PATIENCE: u32 = 2 * PATIENCE;

/// The Send Queue's slots.
#[pin_data]
pub(crate) struct Sq {
    depth: u32,
    #[pin]
    state: SpinLock<State>,
    #[pin]
    changed: CondVar,
    /// Threads that wait, for those who cannot take the lock.
    waiters: Atomic<i32>,
}

struct State {
    available: u32,
    next_ticket: u64,
    now_serving: u64,
    /// How often slots came back.
    returned: u64,
    closed: bool,
}

/// Reserved slots.
#[must_use]
pub(crate) struct SqCredit<'a> {
    sq: &'a Sq,
    slots: u32,
    waited: bool,
}

impl Sq {
    /// A queue with `depth` slots, all free.
    pub(crate) fn new(depth: u32) -> impl PinInit<Self> {
        let state = State {
            available: depth,
            next_ticket: 0,
            now_serving: 0,
            returned: 0,
            closed: false,
        };
        pin_init!(Self {
            depth,
            state <- new_spinlock!(state, "svcrdma_rs::sq"),
            changed <- new_condvar!("svcrdma_rs::sq_changed"),
            waiters: Atomic::new(0),
        })
    }

    /// Slots in all.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether threads wait for slots: no use in sending more.
    ///
    /// # Context
    ///
    /// Any.
    pub(crate) fn has_waiters(&self) -> bool {
        self.waiters.load(Relaxed) > 0
    }

    /// Reserves `slots`, waiting for them if need be. `alive` says whether it is worth it.
    ///
    /// # Errors
    ///
    /// `E2BIG` if the queue can never hold as many; `ENOTCONN` once closed or no longer alive;
    /// `ETIMEDOUT` if nothing completed for a minute, or too little in two.
    pub(crate) fn reserve(
        &self,
        slots: u32,
        alive: impl Fn() -> bool,
        _context: &Sleepable,
    ) -> Result<SqCredit<'_>> {
        if slots > self.depth {
            return Err(E2BIG);
        }
        let mut state = self.state.lock();
        if state.closed {
            return Err(ENOTCONN);
        }
        if state.next_ticket == state.now_serving {
            if let Some(available) = state.available.checked_sub(slots) {
                state.available = available;
                drop(state);
                return Ok(self.credit(slots, false));
            }
        }
        stats::stats().sq_waits.inc();
        self.waiters.add(1, Relaxed);
        let ticket = state.next_ticket;
        state.next_ticket = ticket.wrapping_add(1);
        let mut seen = state.returned;
        let mut ticks = 0u32;
        let start = Instant::<Monotonic>::now();
        let limit = Delta::from_millis(i64::from(LAST_PATIENCE).saturating_mul(TICK_MS.into()));
        let mut result = Ok(());
        while result.is_ok() && (state.now_serving != ticket || state.available < slots) {
            let tick = msecs_to_jiffies(TICK_MS);
            let woken = self.changed.wait_interruptible_timeout(&mut state, tick);
            if state.returned != seen {
                seen = state.returned;
                ticks = 0;
            } else if matches!(woken, CondVarTimeoutResult::Timeout) {
                ticks = ticks.saturating_add(1);
            }
            if state.closed || !alive() {
                // Those behind give up too, in whatever order.
                state.closed = true;
                result = Err(ENOTCONN);
            } else if ticks > PATIENCE || start.elapsed() > limit {
                state.closed = true;
                result = Err(ETIMEDOUT);
            }
        }
        // Those behind may go on, whether this one got its slots or not.
        state.now_serving = state.now_serving.wrapping_add(1);
        if result.is_ok() {
            state.available = state.available.saturating_sub(slots);
        }
        drop(state);
        self.waiters.fetch_sub(1, Relaxed);
        self.changed.notify_all();
        result?;
        Ok(self.credit(slots, true))
    }

    /// Reserves `slots` if they are free and nobody waits.
    pub(crate) fn try_reserve(&self, slots: u32) -> Option<SqCredit<'_>> {
        let mut state = self.state.lock();
        if state.closed || state.next_ticket != state.now_serving {
            return None;
        }
        state.available = state.available.checked_sub(slots)?;
        drop(state);
        Some(self.credit(slots, false))
    }

    /// The value for slots just taken.
    fn credit(&self, slots: u32, waited: bool) -> SqCredit<'_> {
        stats::objects().sq_slots.add(slots.into());
        SqCredit {
            sq: self,
            slots,
            waited,
        }
    }

    /// Returns slots that a posted chain held.
    pub(super) fn give_back(&self, slots: u32) {
        let mut state = self.state.lock();
        state.available = state.available.saturating_add(slots).min(self.depth);
        state.returned = state.returned.wrapping_add(1);
        let waiters = state.next_ticket != state.now_serving;
        drop(state);
        stats::objects().sq_slots.sub(slots.into());
        if waiters {
            self.changed.notify_all();
        }
    }

    /// Ends all waiting: nothing will be posted any more.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }
}

impl SqCredit<'_> {
    /// Whether the slots were not there at once.
    pub(crate) fn has_waited(&self) -> bool {
        self.waited
    }

    /// Whether the slots are those of `sq`.
    pub(super) fn is_of(&self, sq: &Sq) -> bool {
        core::ptr::eq(self.sq, sq)
    }

    /// Slots reserved.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Hands the slots to a posted chain; [`Sq::give_back`] returns them.
    pub(super) fn into_slots(self) -> u32 {
        let slots = self.slots;
        core::mem::forget(self);
        slots
    }
}

impl Drop for SqCredit<'_> {
    fn drop(&mut self) {
        self.sq.give_back(self.slots);
    }
}
