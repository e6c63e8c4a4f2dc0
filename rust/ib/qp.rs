// SPDX-License-Identifier: GPL-2.0

//! Queue pair: posting, and what must be true before it goes.
//!
//! One signaled work request ends each chain and owns its context. The others complete only if they
//! fail or are flushed, by an entry that is no context's: it notes the first failure in [`Queues`].
//!
//! Locks: `Queues::in_doubt`.

use crate::{
    ffi,
    ib::{
        chain::ChainRef,
        dma::{
            RecvBuffer,
            SendBuffer, //
        },
        pd::LocalKey,
        sq::{
            Sq,
            SqCredit, //
        },
        work::{
            Completion,
            InDoubt,
            QueueContext,
            Work, //
        }, //
    },
    kern::{
        context::Sleepable,
        page::PAGE_SIZE, //
    }, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    ffi::c_int,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        SpinLock, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// Contexts in doubt that a queue pair can remember; beyond it they are leaked.
const MAX_IN_DOUBT: usize = 16;

/// Work that receives a message.
pub(crate) trait RecvWork: Completion {
    /// Where the message goes.
    fn buffer(&self) -> &RecvBuffer;
}

/// The last work request of a chain.
pub(crate) enum Tail<'a> {
    /// A Send of the first `len` bytes of a buffer.
    Send {
        /// The message.
        buffer: &'a SendBuffer,
        /// Its length in bytes.
        len: u32,
        /// A key of the peer that its device invalidates on receipt.
        invalidate: Option<u32>,
    },
    /// The chain's own last request is the signaled one.
    Rdma,
}

/// Work that sends, reads or writes.
pub(crate) trait SendWork: Completion {
    /// The RDMA Reads or Writes to post first.
    fn chain(&mut self) -> Option<ChainRef<'_>>;
    /// The last work request.
    fn tail(&self) -> Tail<'_>;
}

/// Why a chain was not posted.
pub(crate) enum PostError<T: Completion> {
    /// The device took nothing; the context comes back.
    Rejected(Work<T>),
    /// The device took a part, or has not said what it took. The context is kept until the queue
    /// pair is drained.
    InDoubt,
}

/// The bookkeeping of both queues.
///
/// Dropped after the queue pair: see [`QueueContext`].
#[pin_data(PinnedDrop)]
pub(crate) struct Queues {
    /// Room on the Send Queue.
    #[pin]
    pub(crate) sq: Sq,
    /// Contexts in the hands of the device.
    posted: Atomic<i32>,
    /// Status of the first request without a context that has failed, or a success; until a chain
    /// that was flushed for it takes it.
    error: Atomic<u32>,
    #[pin]
    in_doubt: SpinLock<KVec<InDoubt>>,
}

impl Queues {
    /// Empty queues; the Send Queue has `sq_depth` slots.
    pub(crate) fn new(sq_depth: u32) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            sq <- Sq::new(sq_depth),
            posted: Atomic::new(0),
            error: Atomic::new(ffi::ib_wc_status_IB_WC_SUCCESS),
            in_doubt <- {
                let room = KVec::with_capacity(MAX_IN_DOUBT, GFP_KERNEL)?;
                new_spinlock!(room, "svcrdma_rs::in_doubt")
            },
        }? Error)
    }

    /// Returns the Send Queue slots of a chain that has completed.
    pub(super) fn give_back(&self, slots: u32) {
        if slots > 0 {
            self.sq.give_back(slots);
        }
    }

    /// A request without a context has not been carried out.
    fn note_error(&self, status: u32) {
        let known = self.error.load(Relaxed) != ffi::ib_wc_status_IB_WC_SUCCESS;
        // All completions of a queue pair are dealt with by one worker at a time.
        if !known && status != ffi::ib_wc_status_IB_WC_WR_FLUSH_ERR {
            self.error.store(status, Relaxed);
        }
    }

    /// Why a chain was flushed, if one of its requests has failed; only the first is told.
    pub(super) fn take_error(&self) -> u32 {
        self.error.xchg(ffi::ib_wc_status_IB_WC_SUCCESS, Relaxed)
    }

    /// A completion has been dealt with.
    pub(super) fn completed(&self) {
        // ORDERING: Pairs with the loads in `drain`: what the handler did comes before what is done
        // when all have returned.
        self.posted.fetch_sub(1, Release);
    }
}

#[pinned_drop]
impl PinnedDrop for Queues {
    fn drop(self: Pin<&mut Self>) {
        loop {
            // The lock is not held while freeing.
            let Some(context) = self.in_doubt.lock().pop() else {
                return;
            };
            // SAFETY: The queue pair is gone, by the contract of `QueueContext`.
            self.sq.give_back(unsafe { context.free() });
        }
    }
}

/// A queue pair whose work has contexts of completion-queue context `C`.
///
/// # Invariants
///
/// `qp` is the queue pair of `id`, both valid; its completion queue's context is a `C`. Each of its
/// queues has one slot more than is ever posted, for the marker of a drain.
pub(crate) struct Qp<C: QueueContext> {
    qp: NonNull<ffi::ib_qp>,
    id: NonNull<ffi::rdma_cm_id>,
    lkey: LocalKey,
    _context: PhantomData<fn(C)>,
}

// SAFETY: Posting is synchronized by the provider; destruction needs `&mut self`.
unsafe impl<C: QueueContext> Send for Qp<C> {}
// SAFETY: As above.
unsafe impl<C: QueueContext> Sync for Qp<C> {}

impl<C: QueueContext> Qp<C> {
    /// The completion entry of requests that have no context.
    const FAILED: &'static ffi::ib_cqe = &ffi::ib_cqe {
        done: Some(failed::<C>),
    };

    /// Takes over the queue pair that was made for `id`.
    ///
    /// # Safety
    ///
    /// `id` has a queue pair made by `rdma_create_qp`, its completion queue has a `C` as context,
    /// and both outlive the value. Its queues have the slots of the type invariant. `lkey` is of its
    /// protection domain.
    pub(crate) unsafe fn from_id(id: NonNull<ffi::rdma_cm_id>, lkey: LocalKey) -> Result<Self> {
        // SAFETY: Valid by this function's contract.
        let qp = NonNull::new(unsafe { (*id.as_ptr()).qp }).ok_or(EINVAL)?;
        // INVARIANT: By this function's contract.
        Ok(Self {
            qp,
            id,
            lkey,
            _context: PhantomData,
        })
    }

    /// Has events of the queue pair told to `context`.
    ///
    /// # Safety
    ///
    /// `context` is what the queue pair's event handler expects, and outlives the queue pair.
    pub(crate) unsafe fn set_event_context(&self, context: *const C) {
        // SAFETY: The queue pair is valid by the type invariant; its driver only reads the member.
        let member = unsafe { &raw mut (*self.qp.as_ptr()).qp_context };
        // SAFETY: As above; a pointer is written at once.
        unsafe { member.write_volatile(context.cast_mut().cast()) };
    }

    /// Posts a Receive.
    ///
    /// # Errors
    ///
    /// Gives the work back when the device refuses it or its buffer is empty.
    pub(crate) fn post_recv<T>(&self, queues: &Queues, work: Work<T>) -> Result<(), Work<T>>
    where
        T: RecvWork + Completion<Context = C>,
    {
        let Some(addr) = work.buffer().addr() else {
            return Err(work);
        };
        let mut sge = ffi::ib_sge {
            addr: addr.raw(),
            // CAST: The size of a page.
            length: PAGE_SIZE as u32,
            lkey: self.lkey.raw(),
        };
        let posted = work.into_posted(0);
        // SAFETY: All zeros is a valid value of the C struct.
        let mut wr: ffi::ib_recv_wr = unsafe { core::mem::zeroed() };
        wr.__bindgen_anon_1.wr_cqe = posted.cqe();
        wr.sg_list = &mut sge;
        wr.num_sge = 1;
        queues.posted.fetch_add(1, Relaxed);
        // SAFETY: The queue pair is valid by the type invariant; the request and its element live
        // until the call returns, the buffer is owned by the context now out of reach.
        if unsafe { ffi::svcrs_post_recv(self.qp.as_ptr(), &wr) } != 0 {
            queues.posted.fetch_sub(1, Relaxed);
            // SAFETY: The one request that names the context was not accepted.
            return Err(unsafe { posted.reclaim() });
        }
        Ok(())
    }

    /// Posts a chain, in one call.
    ///
    /// # Errors
    ///
    /// See [`PostError`]. Either way the connection is of no use any more. A chain longer than its
    /// credit, or with the credit of another queue, is rejected.
    pub(crate) fn post_send<T>(
        &self,
        queues: &Queues,
        mut work: Work<T>,
        credit: SqCredit<'_>,
    ) -> Result<(), PostError<T>>
    where
        T: SendWork + Completion<Context = C>,
    {
        let sends = usize::from(matches!(work.tail(), Tail::Send { .. }));
        let length = T::chain(&mut work).map_or(0, |chain| chain.len());
        // CAST: `u32` to `usize` is lossless on 64-bit.
        let room = credit.slots() as usize;
        if length.saturating_add(sends) > room || !credit.is_of(&queues.sq) {
            return Err(PostError::Rejected(work));
        }
        let mut posted = work.into_posted(credit.slots());
        let cqe = posted.cqe();
        let mut sge = ffi::ib_sge {
            addr: 0,
            length: 0,
            lkey: self.lkey.raw(),
        };
        // SAFETY: All zeros is a valid value of the C struct.
        let mut last: ffi::ib_send_wr = unsafe { core::mem::zeroed() };
        last.__bindgen_anon_1.wr_cqe = cqe;
        last.sg_list = &mut sge;
        last.num_sge = 1;
        last.opcode = ffi::ib_wr_opcode_IB_WR_SEND;
        last.send_flags = ffi::ib_send_flags_IB_SEND_SIGNALED;
        let has_send = match posted.value_mut().tail() {
            Tail::Send {
                buffer,
                len,
                invalidate,
            } => {
                if let Some(addr) = buffer.addr() {
                    sge.addr = addr.raw();
                    // CAST: The size of a page.
                    sge.length = len.min(PAGE_SIZE as u32);
                }
                if let Some(rkey) = invalidate {
                    last.opcode = ffi::ib_wr_opcode_IB_WR_SEND_WITH_INV;
                    last.ex.invalidate_rkey = rkey;
                }
                true
            }
            Tail::Rdma => false,
        };
        let tail: *mut ffi::ib_send_wr = if has_send {
            &mut last
        } else {
            core::ptr::null_mut()
        };
        let first = match posted.value_mut().chain() {
            Some(mut chain) => {
                let first = chain.link(tail, Self::FAILED);
                if !has_send {
                    chain.signal_last(cqe);
                }
                first
            }
            None => tail,
        };
        if first.is_null() {
            // SAFETY: Nothing was posted.
            return Err(PostError::Rejected(unsafe { posted.reclaim() }));
        }

        // The completion may run before the call returns, so the slots are its own from here on.
        queues.posted.fetch_add(1, Relaxed);
        let slots = credit.into_slots();
        let mut bad: *const ffi::ib_send_wr = core::ptr::null();
        // SAFETY: The queue pair is valid by the type invariant; requests and elements live until
        // the call returns, the memory they describe is owned by the context now out of reach.
        let result = unsafe { ffi::svcrs_post_send(self.qp.as_ptr(), first, &mut bad) };
        if result == 0 {
            return Ok(());
        }
        if bad == first.cast_const() {
            queues.give_back(slots);
            queues.posted.fetch_sub(1, Relaxed);
            // SAFETY: The first request was refused, so the signaled one was not accepted.
            return Err(PostError::Rejected(unsafe { posted.reclaim() }));
        }
        // The slots stay taken: the first part of the chain is still there.
        if bad.is_null() {
            // siw reports some errors for a chain that it has queued, and names no request. It
            // completes, which ends the posting as ever; `drain` waits for that.
            return Err(PostError::InDoubt);
        }
        queues.posted.fetch_sub(1, Relaxed);
        // Beyond the room there is the context leaks: the device may still use it, and freeing it
        // would be a guess.
        let _ = queues
            .in_doubt
            .lock()
            // SAFETY: The device has refused the last request, which names the context, or one in
            // front of it.
            .push_within_capacity(unsafe { posted.into_doubt() });
        Err(PostError::InDoubt)
    }

    /// Moves the queue pair to the error state and waits until everything posted has completed.
    /// `late` is told each minute how many seconds that has taken.
    ///
    /// Nobody posts any more: the caller holds the last reference.
    ///
    /// # Errors
    ///
    /// `EIO` when some context did not come back. Its memory, and whatever its handler would use,
    /// must never be freed.
    pub(crate) fn drain(
        &self,
        queues: &Queues,
        _context: &Sleepable,
        mut late: impl FnMut(u64),
    ) -> Result {
        // SAFETY: All zeros is a valid value of the C struct.
        let mut attr: ffi::ib_qp_attr = unsafe { core::mem::zeroed() };
        attr.qp_state = ffi::ib_qp_state_IB_QPS_ERR;
        // CAST: A small flag.
        let mask = ffi::ib_qp_attr_mask_IB_QP_STATE as c_int;
        // SAFETY: Queue pair and attributes are valid.
        let failing = unsafe { ffi::ib_modify_qp(self.qp.as_ptr(), &mut attr, mask) } == 0;
        let mut millis = 0u64;
        // ORDERING: Pairs with `completed`, here and below.
        while failing && queues.posted.load(Acquire) > 0 {
            let pause = millis.clamp(1, 100);
            fsleep(Delta::from_millis(pause as i64));
            let before = millis;
            millis = millis.saturating_add(pause);
            if before / 60_000 != millis / 60_000 {
                late(millis / 1000);
            }
        }
        // Even if the device has refused the state: some drivers can drain one that has failed.
        // SAFETY: Valid, with a slot for the marker, by the type invariant.
        unsafe { ffi::ib_drain_qp(self.qp.as_ptr()) };
        if queues.posted.load(Acquire) > 0 {
            return Err(EIO);
        }
        Ok(())
    }
}

impl<C: QueueContext> Drop for Qp<C> {
    fn drop(&mut self) {
        // SAFETY: `id` is valid by the type invariant and has this queue pair.
        unsafe { ffi::rdma_destroy_qp(self.id.as_ptr()) };
    }
}

/// The completion handler of requests that have no context.
///
/// # Safety
///
/// Called by the RDMA core for the queue pair of a `Qp<C>`, whose completion queue has a `C` as context.
unsafe extern "C" fn failed<C: QueueContext>(cq: *mut ffi::ib_cq, wc: *mut ffi::ib_wc) {
    // SAFETY: By this function's contract; the invariant of `Cq` keeps the context alive.
    let context = unsafe { &*ffi::svcrs_cq_context(cq).cast::<C>() };
    // SAFETY: The completion is valid during the call.
    context.queues().note_error(unsafe { (*wc).status });
}
