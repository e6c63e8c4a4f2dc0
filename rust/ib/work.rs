// SPDX-License-Identifier: GPL-2.0

//! Contexts of work requests: owned by the CPU, or posted and out of reach.
//!
//! A [`Work`] is a box with a completion entry in front. Posting moves it away; the completion
//! handler of its type, [`Completion::done`], is the one place where it comes back. Nothing else
//! can reach the memory in between, which is the whole of "owned by the device".

use crate::{
    ffi,
    ib::{
        qp::Queues,
        wc::Wc, //
    }, //
};
use core::{
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull, //
};
use kernel::{
    pr_warn_once,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    }, //
};

/// The context of a completion queue: what completion handlers are given. It owns the queue pair and
/// what [`QueueContext::queues`] returns, in this order: the queue pair is dropped first.
pub(crate) trait QueueContext: Sync + Sized + 'static {
    /// The queues the work was posted on.
    fn queues(&self) -> &Queues;
}

/// A kind of work.
pub(crate) trait Completion: Send + Sized + 'static {
    /// What the completion queue's context is.
    type Context: QueueContext;

    /// The work is done, well or not, and back in the hands of the CPU.
    ///
    /// # Context
    ///
    /// Process context on the completion queue's worker. Does not sleep: it would hold up the
    /// completions behind it. No `Sleepable` is given, on purpose.
    fn done(work: Work<Self>, wc: Wc<'_>, context: &Self::Context);
}

#[repr(C)]
pub(super) struct Inner<T> {
    /// First, so that its address is that of the whole.
    cqe: ffi::ib_cqe,
    /// Set while posted: a second completion for one posting finds it clear.
    posted: Atomic<bool>,
    /// Send Queue slots the posting holds.
    slots: u32,
    value: T,
}

/// A context owned by the CPU.
pub(crate) struct Work<T: Completion>(KBox<Inner<T>>);

impl<T: Completion> Work<T> {
    /// Makes a context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Context
    ///
    /// May sleep.
    pub(crate) fn new(value: T) -> Result<Self> {
        Ok(Self(KBox::new(
            Inner {
                cqe: ffi::ib_cqe {
                    done: Some(completed::<T>),
                },
                posted: Atomic::new(false),
                slots: 0,
                value,
            },
            GFP_KERNEL,
        )?))
    }

    /// Gives the context to the device. [`Posted::reclaim`] undoes it if it was not accepted.
    pub(super) fn into_posted(mut self, slots: u32) -> Posted<T> {
        self.0.slots = slots;
        // ORDERING: Pairs with the exchange in `completed`, which may run on another CPU as soon
        // as the request is posted.
        self.0.posted.store(true, Release);
        // INVARIANT: The box is leaked into the pointer.
        Posted(KBox::leak(self.0).into())
    }
}

impl<T: Completion> Deref for Work<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: Completion> DerefMut for Work<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.value
    }
}

/// A context on its way to the device.
///
/// # Invariants
///
/// Points to a leaked box of an [`Inner`]. Until `post` has been called for it nobody else uses it.
pub(super) struct Posted<T: Completion>(NonNull<Inner<T>>);

impl<T: Completion> Posted<T> {
    /// The completion entry for the signaled work request.
    pub(super) fn cqe(&self) -> *mut ffi::ib_cqe {
        self.0.as_ptr().cast()
    }

    /// The context, while building the request.
    pub(super) fn value_mut(&mut self) -> &mut T {
        // SAFETY: By the type invariant nobody else uses the context yet.
        unsafe { &mut (*self.0.as_ptr()).value }
    }

    /// Takes the context back from a device that did not accept it.
    ///
    /// # Safety
    ///
    /// No work request that names this context was accepted.
    pub(super) unsafe fn reclaim(self) -> Work<T> {
        // SAFETY: By the type invariant and this function's contract the box is ours alone.
        let inner = unsafe { KBox::from_raw(self.0.as_ptr()) };
        inner.posted.store(false, Relaxed);
        Work(inner)
    }

    /// Drops the memory of a context whose signaled work request will never complete, once the
    /// queue pair is destroyed.
    ///
    /// # Safety
    ///
    /// The signaled work request was not accepted.
    pub(super) unsafe fn into_doubt(self) -> InDoubt {
        /// # Safety
        ///
        /// `ptr` is that of a leaked box of `Inner<T>` which no device uses any more.
        unsafe fn free<T: Completion>(ptr: NonNull<ffi::ib_cqe>) {
            // SAFETY: By this function's contract.
            drop(unsafe { KBox::from_raw(ptr.as_ptr().cast::<Inner<T>>()) });
        }
        // SAFETY: By the type invariant the box is leaked. Only the completion of the signaled request
        // would free it, and there is none by this function's contract.
        let inner = unsafe { self.0.as_ref() };
        // Should a device complete it all the same, the context is left alone.
        inner.posted.store(false, Relaxed);
        InDoubt {
            slots: inner.slots,
            ptr: self.0.cast(),
            free: free::<T>,
        }
    }
}

/// A context that a device may still use, as long as the queue pair exists, though no completion will
/// name it.
pub(super) struct InDoubt {
    ptr: NonNull<ffi::ib_cqe>,
    /// Send Queue slots that the posting holds.
    slots: u32,
    free: unsafe fn(NonNull<ffi::ib_cqe>),
}

// SAFETY: Only contexts that are `Send` get here.
unsafe impl Send for InDoubt {}

impl InDoubt {
    /// Frees the context; the slots it held.
    ///
    /// # Safety
    ///
    /// The queue pair it was posted on is destroyed.
    pub(super) unsafe fn free(self) -> u32 {
        // SAFETY: By this function's contract no device uses the context.
        unsafe { (self.free)(self.ptr) };
        self.slots
    }
}

/// The completion handler of every [`Work`].
///
/// # Safety
///
/// Called by the RDMA core with a completion whose `wr_cqe` is that of a `Work<T>`: only
/// [`Work::new`] makes such entries point here. The queue's context is a `T::Context`: `Qp` posts
/// only work whose context type is its own.
unsafe extern "C" fn completed<T: Completion>(cq: *mut ffi::ib_cq, wc: *mut ffi::ib_wc) {
    // SAFETY: The completion is valid during the call, and `wr_cqe` is set for all work of ours.
    let inner = unsafe { (*wc).__bindgen_anon_1.wr_cqe }.cast::<Inner<T>>();
    // ORDERING: Pairs with the store in `into_posted`.
    // SAFETY: The context was leaked by `into_posted`, and only its completion takes it back. A
    // device completes what was posted once; if it does so twice, that is noticed here while the
    // context is pooled after the first, and is as any other wrong DMA of a device after that.
    if !unsafe { (*inner).posted.xchg(false, Acquire) } {
        pr_warn_once!("a device completed a work request twice\n");
        return;
    }
    // SAFETY: The exchange shows that this call alone takes the box back.
    let work = Work(unsafe { KBox::from_raw(inner) });
    // SAFETY: By this function's contract; the invariant of `Cq` keeps the context alive.
    let context = unsafe { &*ffi::svcrs_cq_context(cq).cast::<T::Context>() };
    let slots = work.0.slots;
    context.queues().give_back(slots);
    // SAFETY: The completion is valid during the call.
    let mut wc = unsafe { Wc::from_raw(wc) };
    if slots > 0 && wc.is_flushed() {
        wc = wc.because(context.queues().take_error());
    }
    T::done(work, wc, context);
    // Last: from here on the context may go.
    context.queues().completed();
}
