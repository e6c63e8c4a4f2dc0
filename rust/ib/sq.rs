// SPDX-License-Identifier: GPL-2.0

//! Room on a Send Queue.
//!
//! A [`SqCredit`] is room reserved before anything is posted. Posting consumes it, the completion
//! gives it back, and dropping it unused does too: no path can forget it. Who asks while there is
//! not enough waits in order.
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
        CondVar,
        SpinLock, //
    }, //
};

/// The Send Queue's slots.
#[pin_data]
pub(crate) struct Sq {
    depth: u32,
    #[pin]
    state: SpinLock<State>,
    #[pin]
    changed: CondVar,
}

struct State {
    available: u32,
    next_ticket: u64,
    now_serving: u64,
    closed: bool,
}

/// Reserved slots.
#[must_use]
pub(crate) struct SqCredit<'a> {
    sq: &'a Sq,
    slots: u32,
}

impl Sq {
    /// A queue with `depth` slots, all free.
    pub(crate) fn new(depth: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            depth,
            state <- new_spinlock!(
                State { available: *depth, next_ticket: 0, now_serving: 0, closed: false },
                "svcrdma_rs::sq"
            ),
            changed <- new_condvar!("svcrdma_rs::sq_changed"),
        })
    }

    /// Slots in all.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Reserves `slots`, waiting for them if need be.
    ///
    /// # Errors
    ///
    /// `E2BIG` if the queue can never hold as many; `ENOTCONN` once closed.
    pub(crate) fn reserve(&self, slots: u32, _context: &Sleepable) -> Result<SqCredit<'_>> {
        if slots > self.depth {
            return Err(E2BIG);
        }
        let mut state = self.state.lock();
        if state.closed {
            return Err(ENOTCONN);
        }
        if state.next_ticket != state.now_serving || state.available < slots {
            stats::stats().sq_waits.inc();
            let ticket = state.next_ticket;
            state.next_ticket = ticket.wrapping_add(1);
            while !state.closed && (state.now_serving != ticket || state.available < slots) {
                self.changed.wait(&mut state);
            }
            // Those behind may go on, whether this one got its slots or not.
            state.now_serving = state.now_serving.wrapping_add(1);
            self.changed.notify_all();
            if state.closed {
                return Err(ENOTCONN);
            }
        }
        state.available = state.available.saturating_sub(slots);
        drop(state);
        stats::objects().sq_slots.add(slots.into());
        Ok(SqCredit { sq: self, slots })
    }

    /// Reserves `slots` if they are free and nobody waits.
    pub(crate) fn try_reserve(&self, slots: u32) -> Option<SqCredit<'_>> {
        let mut state = self.state.lock();
        if state.closed || state.next_ticket != state.now_serving {
            return None;
        }
        state.available = state.available.checked_sub(slots)?;
        drop(state);
        stats::objects().sq_slots.add(slots.into());
        Some(SqCredit { sq: self, slots })
    }

    /// Returns slots that a posted chain held.
    pub(super) fn give_back(&self, slots: u32) {
        let mut state = self.state.lock();
        state.available = state.available.saturating_add(slots).min(self.depth);
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
