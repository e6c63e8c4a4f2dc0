// SPDX-License-Identifier: GPL-2.0

//! An RDMA device and its limits.

use crate::ffi;
use kernel::{
    fmt,
    prelude::*,
    types::Opaque, //
};

/// A `struct ib_device`, only ever seen by reference.
#[repr(transparent)]
pub(crate) struct Device(Opaque<ffi::ib_device>);

// SAFETY: All that is reachable through a shared reference is constant after registration, but for
// the name, which is copied.
unsafe impl Sync for Device {}

/// Bytes of a name: `IB_DEVICE_NAME_MAX`.
const MAX_NAME: usize = 64;

/// A copy of a device's name.
pub(crate) struct DeviceName([u8; MAX_NAME]);

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = CStr::from_bytes_until_nul(&self.0).map(CStr::to_str);
        f.write_str(name.unwrap_or(Ok("?")).unwrap_or("?"))
    }
}

/// The limits of a device that a connection is sized by.
#[derive(Clone, Copy)]
pub(crate) struct DeviceCaps {
    /// Work requests a queue can hold.
    pub(crate) max_qp_wr: u32,
    /// Completions a completion queue can hold.
    pub(crate) max_cqe: u32,
    /// Scatter/gather elements of a Send or RDMA Write.
    pub(crate) max_send_sge: u32,
    /// Scatter/gather elements of an RDMA Read.
    pub(crate) max_sge_rd: u32,
    /// RDMA Reads a queue pair can have outstanding.
    pub(crate) max_rd_atom: u32,
    /// Bytes one scatter/gather element can describe.
    pub(crate) max_seg_size: u32,
    /// The device can register and invalidate memory by work requests.
    pub(crate) mem_mgt_extensions: bool,
    /// Pages one memory region can hold.
    pub(crate) max_fast_reg_pages: u32,
    /// The port speaks iWARP, where an RDMA Read is into registered memory only.
    pub(crate) iwarp: bool,
    /// An RDMA Read can invalidate the region it fills.
    pub(crate) read_inv: bool,
}

impl Device {
    /// Borrows a device.
    ///
    /// # Safety
    ///
    /// `ptr` points to a registered device for all of `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut ffi::ib_device) -> &'a Self {
        // SAFETY: The caller promises a live object, and `Self` is a transparent `Opaque` of it.
        unsafe { &*ptr.cast() }
    }

    /// The C object.
    pub(crate) fn as_ptr(&self) -> *mut ffi::ib_device {
        self.0.get()
    }

    /// The device's name, as in `rdma link`. It can be renamed at any time.
    pub(crate) fn name(&self) -> DeviceName {
        let mut name = DeviceName([0; MAX_NAME]);
        // SAFETY: The device is registered, and the buffer as long as is said.
        unsafe { ffi::svcrs_device_name(self.as_ptr(), name.0.as_mut_ptr().cast(), MAX_NAME) };
        name
    }

    /// Whether memory is mapped for it through an IOMMU.
    pub(super) fn maps_by_iommu(&self) -> bool {
        // SAFETY: The device is registered.
        unsafe { ffi::svcrs_maps_by_iommu(self.as_ptr()) }
    }

    /// The limits of the device and of one of its ports.
    pub(crate) fn caps(&self, port: u32) -> DeviceCaps {
        let mut raw: ffi::svcrs_device_caps = pin_init::zeroed();
        // SAFETY: Both pointers are valid.
        unsafe { ffi::svcrs_device_caps(self.as_ptr(), port, &mut raw) };
        DeviceCaps {
            max_qp_wr: raw.max_qp_wr,
            max_cqe: raw.max_cqe,
            max_send_sge: raw.max_send_sge,
            max_sge_rd: raw.max_sge_rd,
            max_rd_atom: raw.max_qp_init_rd_atom,
            max_seg_size: raw.max_seg_size,
            mem_mgt_extensions: raw.mem_mgt_extensions,
            max_fast_reg_pages: raw.max_fast_reg_pages,
            iwarp: raw.iwarp,
            read_inv: raw.read_inv,
        }
    }
}
