// SPDX-License-Identifier: GPL-2.0

//! A transport instance: the `svc_xprt` and what belongs to it.
//!
//! The C part comes first in memory, so its address is that of the whole. The last reference may
//! be dropped under a spinlock, so `xpo_free` only queues the rest: [`Transport::teardown`] and the
//! release of the memory happen on the module's workqueue.

use crate::{
    ffi,
    kern::{
        context::Sleepable,
        net::Net,
        place::Place,
        sockaddr::SockAddr, //
    },
    svc::class::Class, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    impl_has_work,
    new_work,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    types::Opaque,
    workqueue::{
        Queue,
        Work,
        WorkItem, //
    }, //
};

/// What listeners and connections have in common.
pub(crate) trait Transport: Send + Sync + Sized + 'static {
    /// The operation table, from [`super::listener`] or [`super::connection`].
    const OPS: &'static ffi::svc_xprt_ops;

    /// The class the transport is of.
    fn class() -> &'static Class;

    /// Where teardown runs.
    fn queue() -> Option<&'static Queue>;

    /// sunrpc is about to forget the transport: end all activity. Calls that run may go on.
    fn detach(xprt: &Xprt<Self>, context: &Sleepable);

    /// Nobody refers to the transport any more: stop what could still call into it.
    ///
    /// # Errors
    ///
    /// When something might still use the memory. It is leaked then.
    fn teardown(xprt: &Xprt<Self>, context: &Sleepable) -> Result;
}

/// A `svc_xprt` with the data of its transport.
#[repr(C)]
#[pin_data]
pub(crate) struct Xprt<T: Transport> {
    #[pin]
    xprt: Opaque<ffi::svc_xprt>,
    #[pin]
    work: Work<Self>,
    #[pin]
    data: T,
}

// SAFETY: `svc_xprt` is shared between threads by design; `T` is `Send`.
unsafe impl<T: Transport> Send for Xprt<T> {}
// SAFETY: As above; `T` is `Sync`.
unsafe impl<T: Transport> Sync for Xprt<T> {}

impl_has_work! {
    impl{T: Transport} HasWork<Self> for Xprt<T> { self.work }
}

impl<T: Transport> WorkItem for Xprt<T> {
    type Pointer = Pin<KBox<Self>>;

    fn run(this: Self::Pointer) {
        // SAFETY: Work items run in process context; the token ends with this function.
        let context = unsafe { Sleepable::assume() };
        if T::teardown(&this, &context).is_err() {
            // What it left behind may still call into the module, which therefore stays.
            // SAFETY: Code of the module runs, so it is there.
            unsafe { bindings::__module_get(T::class().owner()) };
            pr_err!("a transport could not be stopped: its memory is lost, and the module stays\n");
            core::mem::forget(this);
        }
    }
}

impl<T: Transport> Deref for Xprt<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

impl<T: Transport> Xprt<T> {
    /// Makes a transport. `data` is told where it will be and gives the initializer of its data;
    /// the C part is initialized last, so a failure before leaves nothing for sunrpc to undo.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and whatever `data` and its initializer return.
    pub(crate) fn make<I: PinInit<T, Error>>(
        net: &Net,
        serv: NonNull<ffi::svc_serv>,
        data: impl FnOnce(Place<Self>) -> Result<I>,
    ) -> Result<XprtRef<T>> {
        let mut memory = KBox::<Self>::new_uninit(GFP_KERNEL)?;
        let this: *mut Self = memory.as_mut_ptr();
        let xprt: *mut ffi::svc_xprt = this.cast();
        // Until `svc_xprt_init`, an event that reaches the data's owner finds a transport that is
        // busy, for which enqueueing does nothing.
        // SAFETY: The slot is valid for writes, and zero is valid for the C struct.
        unsafe { xprt.write_bytes(0, 1) };
        // CAST: A bit number.
        // SAFETY: As above.
        unsafe { (*xprt).xpt_flags = 1 << ffi::XPT_BUSY };
        // SAFETY: A box does not move, and the place is given to the initializer of its data.
        let init = data(unsafe { Place::new(this) })?;
        // SAFETY: The slot is valid for writes, aligned, and pinned with the box.
        unsafe { init.__init(&raw mut (*this).data) }?;
        // SAFETY: As above; initializing a work item cannot fail.
        let _ = unsafe { new_work!("svcrdma_rs::teardown").__init(&raw mut (*this).work) };
        // SAFETY: All pointers are valid; the object is filled in completely.
        unsafe {
            ffi::svc_xprt_init(
                net.as_ptr(),
                T::class().as_ptr(),
                this.cast(),
                serv.as_ptr(),
            )
        };
        // SAFETY: Nobody else knows the transport yet.
        unsafe { (*this.cast::<ffi::svc_xprt>()).xpt_ops = T::OPS };
        // NFSv4 wants a transport with congestion control, which the credits are.
        // CAST: A bit number.
        // SAFETY: As above.
        unsafe {
            bindings::set_bit(
                ffi::XPT_CONG_CTRL as usize,
                &raw mut (*this.cast::<ffi::svc_xprt>()).xpt_flags,
            )
        };
        KBox::into_raw(memory);
        // INVARIANT: `svc_xprt_init` made the one reference.
        Ok(XprtRef {
            // SAFETY: The pointer is that of a box.
            ptr: unsafe { NonNull::new_unchecked(this) },
            _owns: PhantomData,
        })
    }

    /// Borrows the transport of a C object.
    ///
    /// # Safety
    ///
    /// `xprt` is the C part of an `Xprt<T>` that stays for all of `'a`.
    pub(super) unsafe fn from_raw<'a>(xprt: *mut ffi::svc_xprt) -> &'a Self {
        // SAFETY: The C part is the first member; the rest is this function's contract.
        unsafe { &*xprt.cast() }
    }

    /// Borrows the transport of a C object of which only the class is promised.
    ///
    /// # Errors
    ///
    /// `EINVAL` when it is not an `Xprt<T>`.
    ///
    /// # Safety
    ///
    /// `xprt` is a `svc_xprt` that stays for all of `'a`.
    pub(crate) unsafe fn downcast<'a>(xprt: *mut ffi::svc_xprt) -> Result<&'a Self> {
        let xprt = NonNull::new(xprt).ok_or(EINVAL)?.as_ptr();
        // SAFETY: Valid by this function's contract; the members do not change once it is shared.
        let (class, ops) = unsafe { ((*xprt).xpt_class, (*xprt).xpt_ops) };
        if class != T::class().as_ptr() || !core::ptr::eq(ops, T::OPS) {
            return Err(EINVAL);
        }
        // SAFETY: Only `make` makes transports with this table.
        Ok(unsafe { Self::from_raw(xprt) })
    }

    /// The C object.
    pub(crate) fn as_ptr(&self) -> *mut ffi::svc_xprt {
        self.xprt.get()
    }

    /// Sets the address of this end.
    pub(crate) fn set_local(&self, addr: SockAddr<'_>) {
        // SAFETY: Both valid; only the initializing thread calls this.
        unsafe { ffi::svcrs_xprt_set_local(self.as_ptr(), addr.as_ptr()) };
    }

    /// Sets the address of the peer.
    pub(crate) fn set_remote(&self, addr: SockAddr<'_>) {
        // SAFETY: As in `set_local`.
        unsafe { ffi::svcrs_xprt_set_remote(self.as_ptr(), addr.as_ptr()) };
    }

    /// The address of the peer.
    pub(crate) fn remote(&self) -> Result<SockAddr<'_>> {
        // SAFETY: The address lives as long as the transport and is set before it is shared.
        unsafe { SockAddr::from_raw((&raw const (*self.as_ptr()).xpt_remote).cast()) }
    }

    /// The address of this end.
    pub(crate) fn local(&self) -> Result<SockAddr<'_>> {
        // SAFETY: As in `remote`.
        unsafe { SockAddr::from_raw((&raw const (*self.as_ptr()).xpt_local).cast()) }
    }

    /// Pages that one message of the service can have.
    pub(crate) fn maxpages(&self) -> usize {
        // SAFETY: The transport has a server from its initialization on.
        let pages = unsafe { ffi::svcrs_serv_maxpages(self.as_ptr()) };
        // CAST: `u32` to `usize` is lossless on 64-bit.
        pages as usize
    }

    fn flags(&self) -> *mut usize {
        // SAFETY: The transport is valid; only the address is taken.
        unsafe { &raw mut (*self.as_ptr()).xpt_flags }
    }

    /// Tells sunrpc that there is something to accept or to receive, as
    /// [`Xprt::enqueue`] must follow.
    pub(crate) fn set(&self, flag: Flag) {
        // SAFETY: The flags are valid and changed with atomic operations by everybody.
        unsafe { bindings::set_bit(flag.bit(), self.flags()) };
    }

    /// Takes [`Xprt::set`] back.
    pub(crate) fn clear(&self, flag: Flag) {
        // SAFETY: As in `set`.
        unsafe { bindings::clear_bit(flag.bit(), self.flags()) };
    }

    /// Whether a flag is set.
    ///
    /// # Context
    ///
    /// Any.
    pub(crate) fn is_set(&self, flag: Flag) -> bool {
        self.load_flags() & (1 << flag.bit()) != 0
    }

    fn load_flags(&self) -> usize {
        // SAFETY: The flags are valid and changed with atomic operations by everybody.
        let flags: &Atomic<usize> = unsafe { Atomic::from_ptr(self.flags()) };
        flags.load(Relaxed)
    }

    /// Asks sunrpc for a thread.
    ///
    /// # Context
    ///
    /// Any that may take spinlocks.
    pub(crate) fn enqueue(&self) {
        if self.is_deleted() {
            return;
        }
        // SAFETY: The transport is valid. Should it be deleted right now, the flag `XPT_BUSY` is set,
        // and the call does nothing.
        unsafe { ffi::svc_xprt_enqueue(self.as_ptr()) };
    }

    /// Has a thread close the connection.
    ///
    /// # Context
    ///
    /// Any that may take spinlocks.
    pub(crate) fn deferred_close(&self) {
        if self.is_deleted() {
            return;
        }
        // SAFETY: As in `enqueue`.
        unsafe { ffi::svc_xprt_deferred_close(self.as_ptr()) };
    }

    /// A reference, unless the last one is gone already.
    pub(crate) fn try_ref(&self) -> Option<XprtRef<T>> {
        // SAFETY: The memory is valid; the count is only raised if it is not zero.
        let taken = unsafe { ffi::svcrs_xprt_get_unless_dead(self.as_ptr()) };
        // INVARIANT: Just taken.
        taken.then(|| XprtRef {
            ptr: self.into(),
            _owns: PhantomData,
        })
    }

    /// Whether sunrpc has deleted the transport. It gives up the network namespace behind that, which
    /// its tracepoints look at.
    fn is_deleted(&self) -> bool {
        self.load_flags() & (1 << ffi::XPT_DEAD) != 0
    }

    /// Whether sunrpc closes or has closed the connection.
    pub(crate) fn is_dead(&self) -> bool {
        self.load_flags() & ((1 << ffi::XPT_DEAD) | (1 << ffi::XPT_CLOSE)) != 0
    }

    /// `xpo_detach`.
    ///
    /// # Safety
    ///
    /// Called by sunrpc for a transport with [`Transport::OPS`] of `T`.
    pub(super) unsafe extern "C" fn detach_op(xprt: *mut ffi::svc_xprt) {
        // SAFETY: sunrpc holds a reference during the call and calls from process context.
        let (this, context) = unsafe { (Self::from_raw(xprt), Sleepable::assume()) };
        T::detach(this, &context);
    }

    /// `xpo_free`. May be called under a spinlock.
    ///
    /// # Safety
    ///
    /// Called by sunrpc once, when the last reference to the transport is gone.
    pub(super) unsafe extern "C" fn free_op(xprt: *mut ffi::svc_xprt) {
        // SAFETY: `make` leaked the box into the reference that was just dropped.
        let this = unsafe { KBox::from_raw(xprt.cast::<Self>()) };
        match T::queue() {
            Some(queue) => queue.enqueue(KBox::into_pin(this)),
            // Without a queue the module is gone, and this code with it.
            None => core::mem::forget(this),
        }
    }

    /// `xpo_kill_temp_xprt`.
    ///
    /// # Safety
    ///
    /// None; for sunrpc's table.
    pub(super) unsafe extern "C" fn kill_temp_op(_xprt: *mut ffi::svc_xprt) {}
}

/// Flags by which a transport asks for a thread.
#[derive(Clone, Copy)]
pub(crate) enum Flag {
    /// A listener has a connection to accept.
    Conn,
    /// A connection has something to receive.
    Data,
    /// The transport is a listener.
    Listener,
    /// sunrpc has calls of the connection that it put off.
    Deferred,
}

impl Flag {
    fn bit(self) -> usize {
        // CAST: Bit numbers.
        match self {
            Self::Conn => ffi::XPT_CONN as usize,
            Self::Data => ffi::XPT_DATA as usize,
            Self::Listener => ffi::XPT_LISTENER as usize,
            Self::Deferred => ffi::XPT_DEFERRED as usize,
        }
    }
}

/// One reference to a transport.
///
/// # Invariants
///
/// `ptr` is valid and one count of its reference counter belongs to this value.
pub(crate) struct XprtRef<T: Transport> {
    ptr: NonNull<Xprt<T>>,
    _owns: PhantomData<Xprt<T>>,
}

// SAFETY: References may be dropped by any thread; `Xprt<T>` is `Sync`.
unsafe impl<T: Transport> Send for XprtRef<T> {}
// SAFETY: As above.
unsafe impl<T: Transport> Sync for XprtRef<T> {}

impl<T: Transport> XprtRef<T> {
    /// Gives the reference to sunrpc.
    pub(super) fn into_raw(self) -> *mut ffi::svc_xprt {
        ManuallyDrop::new(self).as_ptr()
    }

    /// Drops the only reference to a transport that sunrpc was not given.
    ///
    /// Freeing it drops a module reference, which sunrpc's caller does as well when it is told of
    /// the failure; so one more is taken first.
    pub(super) fn abort(self) {
        // What is flushed meanwhile has sunrpc do nothing: the network namespace is given up first.
        // SAFETY: The flags are valid.
        unsafe { bindings::set_bit(ffi::XPT_DEAD as usize, self.flags()) };
        // SAFETY: The caller holds a module reference, so the module is alive.
        unsafe { bindings::__module_get(T::class().owner()) };
    }

    /// Closes the connection now, if no thread is at work on it; else the thread will.
    pub(crate) fn close(&self, _context: &Sleepable) {
        // SAFETY: Valid by the type invariant.
        unsafe { ffi::svc_xprt_close(self.as_ptr()) };
    }
}

impl<T: Transport> Deref for XprtRef<T> {
    type Target = Xprt<T>;

    fn deref(&self) -> &Xprt<T> {
        // SAFETY: Valid by the type invariant.
        unsafe { self.ptr.as_ref() }
    }
}

impl<T: Transport> Drop for XprtRef<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant one count is ours.
        unsafe { ffi::svc_xprt_put(self.as_ptr()) };
    }
}
