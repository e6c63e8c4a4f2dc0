// SPDX-License-Identifier: GPL-2.0

//! Work completion.

use crate::ffi;
use core::marker::PhantomData;

/// A completion during its handler.
///
/// # Invariants
///
/// `ptr` points to a completion that lives for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct Wc<'a> {
    ptr: *const ffi::ib_wc,
    cause: u32,
    _lifetime: PhantomData<&'a ffi::ib_wc>,
}

/// A successful completion: only there are the other members meaningful.
pub(crate) struct WcOk<'a>(Wc<'a>);

impl<'a> Wc<'a> {
    /// # Safety
    ///
    /// `ptr` points to a completion for all of `'a`.
    pub(super) unsafe fn from_raw(ptr: *const ffi::ib_wc) -> Self {
        // INVARIANT: By this function's contract.
        Self {
            ptr,
            cause: ffi::ib_wc_status_IB_WC_SUCCESS,
            _lifetime: PhantomData,
        }
    }

    /// The same with the status of a request that has failed in front of it, or a success.
    pub(super) fn because(self, cause: u32) -> Self {
        Self { cause, ..self }
    }

    /// The status, as `enum ib_wc_status`. If the request was flushed because one in front of it had
    /// failed, it is that one's.
    pub(crate) fn status(self) -> u32 {
        // SAFETY: Valid by the type invariant.
        let status = unsafe { (*self.ptr).status };
        let flushed = status == ffi::ib_wc_status_IB_WC_WR_FLUSH_ERR;
        if flushed && self.cause != ffi::ib_wc_status_IB_WC_SUCCESS {
            return self.cause;
        }
        status
    }

    /// Whether the request was thrown out because its queue pair is in error.
    pub(crate) fn is_flushed(self) -> bool {
        self.status() == ffi::ib_wc_status_IB_WC_WR_FLUSH_ERR
    }

    /// The completion, if it is a success.
    pub(crate) fn ok(self) -> Option<WcOk<'a>> {
        (self.status() == ffi::ib_wc_status_IB_WC_SUCCESS).then_some(WcOk(self))
    }
}

impl WcOk<'_> {
    /// Whether a Send of the peer completed this Receive. An RDMA Write with immediate data does
    /// too, and its length is not that of the Receive.
    pub(crate) fn is_recv(&self) -> bool {
        // SAFETY: Valid by the invariant of `Wc`.
        let opcode = unsafe { (*self.0.ptr).opcode };
        opcode == ffi::ib_wc_opcode_IB_WC_RECV
    }

    /// Bytes received.
    pub(crate) fn byte_len(&self) -> u32 {
        // SAFETY: Valid by the invariant of `Wc`.
        unsafe { (*self.0.ptr).byte_len }
    }
}
