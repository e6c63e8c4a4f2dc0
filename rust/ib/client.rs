// SPDX-License-Identifier: GPL-2.0

//! The module as a client of the RDMA core: which devices exist, and who still uses them.
//!
//! A [`DeviceGuard`] keeps a device. When the device goes, the removal callback closes what uses it
//! (through [`ClientOps::removing`]) and waits for the last guard. Our client registers after
//! `rdma_cm`, whose removal therefore runs later: connections close before their CM ids are torn
//! away.
//!
//! The count of guards is the reference count of the entry's [`Lease`], so one more guard costs one
//! atomic operation and sleeps nowhere.
//!
//! Locks: `Devices::list`, `Entry::lease`, `Gone::done`; all sleep, and none is held while another is
//! taken or the other side is called.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use crate::{
    ffi,
    ib::device::Device,
    kern::context::Sleepable, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        CondVar,
        Mutex, //
    },
    types::Opaque, //
};

/// What the owner of the client does about devices.
pub(crate) trait ClientOps: 'static {
    /// The name of the client, in the RDMA core's messages.
    const NAME: &'static CStr;

    /// The devices of the loaded module.
    fn devices() -> Option<&'static Devices>;

    /// `device` goes: close all that holds a guard on it. New guards are refused already.
    fn removing(device: &Device, context: &Sleepable);
}

/// The devices present.
#[pin_data]
pub(crate) struct Devices {
    #[pin]
    list: Mutex<KVec<Arc<Entry>>>,
}

/// One device in the list.
///
/// # Invariants
///
/// `lease` is `None` once removal has begun.
#[pin_data]
struct Entry {
    device: NonNull<ffi::ib_device>,
    #[pin]
    lease: Mutex<Option<Arc<Lease>>>,
    gone: Arc<Gone>,
}

/// What guards share: the last one to go says so.
///
/// # Invariants
///
/// `device` is registered while this exists: the removal callback waits for `gone`.
struct Lease {
    device: NonNull<ffi::ib_device>,
    gone: Arc<Gone>,
}

/// Whether the last guard of a device has gone.
#[pin_data]
struct Gone {
    #[pin]
    done: Mutex<bool>,
    #[pin]
    changed: CondVar,
}

impl Gone {
    fn allocate() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                done <- new_mutex!(false, "svcrdma_rs::device_gone"),
                changed <- new_condvar!("svcrdma_rs::device_gone_changed"),
            }),
            GFP_KERNEL,
        )
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.gone.done.lock() = true;
        self.gone.changed.notify_all();
    }
}

// SAFETY: `device` is only compared, never followed.
unsafe impl Send for Entry {}
// SAFETY: As above; the rest is behind a lock.
unsafe impl Sync for Entry {}
// SAFETY: `device` is only turned into `&Device`, which is `Sync`.
unsafe impl Send for Lease {}
// SAFETY: As above.
unsafe impl Sync for Lease {}

impl Devices {
    /// No devices yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- new_mutex!(KVec::new(), "svcrdma_rs::devices"),
        })
    }

    /// Keeps `device` from being removed.
    ///
    /// # Errors
    ///
    /// `ENODEV` when it is being removed or was never offered to this client.
    ///
    /// # Context
    ///
    /// May sleep.
    pub(crate) fn guard(&self, device: &Device) -> Result<DeviceGuard> {
        let list = self.list.lock();
        let entry = list
            .iter()
            .find(|entry| entry.device.as_ptr() == device.as_ptr())
            .ok_or(ENODEV)?
            .clone();
        drop(list);
        let lease = entry.lease.lock();
        Ok(DeviceGuard(lease.as_ref().ok_or(ENODEV)?.clone()))
    }

    fn add(&self, device: NonNull<ffi::ib_device>) -> Result {
        let gone = Gone::allocate()?;
        // INVARIANT: The RDMA core offers registered devices, and `remove` waits for the lease.
        let lease = Arc::new(
            Lease {
                device,
                gone: gone.clone(),
            },
            GFP_KERNEL,
        )?;
        let entry = Arc::pin_init(
            pin_init!(Entry {
                device,
                lease <- new_mutex!(Some(lease), "svcrdma_rs::device_lease"),
                gone,
            }),
            GFP_KERNEL,
        )?;
        let mut list = self.list.lock();
        let refused = list
            .reserve(1, GFP_KERNEL)
            .map(|()| list.push_within_capacity(entry));
        drop(list);
        // What was refused is dropped without the lock.
        refused?.map_err(|_| ENOMEM)
    }

    fn remove(&self, device: &Device, removing: fn(&Device, &Sleepable)) {
        let mut list = self.list.lock();
        let index = list
            .iter()
            .position(|entry| entry.device.as_ptr() == device.as_ptr());
        let entry = index.and_then(|index| list.remove(index).ok());
        drop(list);
        let Some(entry) = entry else {
            return;
        };
        // Taken out of the lock before it is dropped: the last drop takes `gone.done`.
        let lease = entry.lease.lock().take();
        // SAFETY: The RDMA core calls this from process context.
        removing(device, &unsafe { Sleepable::assume() });
        drop(lease);
        let mut done = entry.gone.done.lock();
        while !*done {
            entry.gone.changed.wait(&mut done);
        }
    }
}

/// Keeps a device registered.
pub(crate) struct DeviceGuard(Arc<Lease>);

impl DeviceGuard {
    /// A guard of a device that no client was offered.
    ///
    /// # Safety
    ///
    /// `device` stays valid until the last guard is gone.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) unsafe fn of_test(device: NonNull<ffi::ib_device>) -> Result<Self> {
        let gone = Gone::allocate()?;
        // INVARIANT: By this function's contract.
        Ok(Self(Arc::new(Lease { device, gone }, GFP_KERNEL)?))
    }

    /// One guard more. Granted even while the device is being removed: that waits for all guards.
    pub(crate) fn again(&self) -> Self {
        Self(self.0.clone())
    }
}

impl core::ops::Deref for DeviceGuard {
    type Target = Device;

    fn deref(&self) -> &Device {
        // SAFETY: Registered by the invariant of `Lease`, which this guard keeps.
        unsafe { Device::from_raw(self.0.device.as_ptr()) }
    }
}

/// A registered client.
///
/// # Invariants
///
/// The C object is registered and does not move.
#[pin_data(PinnedDrop)]
pub(crate) struct Client<T: ClientOps> {
    #[pin]
    client: Opaque<ffi::ib_client>,
    _ops: PhantomData<fn() -> T>,
}

// SAFETY: Registration state is the RDMA core's, which synchronizes it.
unsafe impl<T: ClientOps> Send for Client<T> {}
// SAFETY: Nothing is reachable through a shared reference.
unsafe impl<T: ClientOps> Sync for Client<T> {}

impl<T: ClientOps> Client<T> {
    /// Registers the client; devices present are added before this returns.
    ///
    /// # Errors
    ///
    /// What `ib_register_client` returns.
    ///
    /// # Context
    ///
    /// Module initialization; may sleep.
    pub(crate) fn register() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            client <- Opaque::try_ffi_init(|slot: *mut ffi::ib_client| {
                // SAFETY: `slot` is valid for writes of an `ib_client`, for which zero is valid.
                unsafe { slot.write_bytes(0, 1) };
                // SAFETY: As above.
                unsafe { (*slot).name = T::NAME.as_char_ptr() };
                // SAFETY: As above.
                unsafe { (*slot).add = Some(Self::add) };
                // SAFETY: As above.
                unsafe { (*slot).remove = Some(Self::remove) };
                // SAFETY: The object is filled in, pinned, and unregistered in `drop`.
                kernel::error::to_result(unsafe { ffi::ib_register_client(slot) })
            }),
            _ops: PhantomData,
        })
    }

    /// # Safety
    ///
    /// Called by the RDMA core with a registered device.
    unsafe extern "C" fn add(device: *mut ffi::ib_device) -> c_int {
        let (Some(devices), Some(device)) = (T::devices(), NonNull::new(device)) else {
            return ENODEV.to_errno();
        };
        devices.add(device).map_or_else(|e| e.to_errno(), |()| 0)
    }

    /// # Safety
    ///
    /// Called by the RDMA core with a device that `add` was called with.
    unsafe extern "C" fn remove(device: *mut ffi::ib_device, _data: *mut c_void) {
        // SAFETY: The device stays registered until this callback has returned.
        let device = unsafe { Device::from_raw(device) };
        if let Some(devices) = T::devices() {
            devices.remove(device, T::removing);
        }
    }
}

#[pinned_drop]
impl<T: ClientOps> PinnedDrop for Client<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the type invariant; calls `remove` for each device and waits.
        unsafe { ffi::ib_unregister_client(self.client.get()) };
    }
}
