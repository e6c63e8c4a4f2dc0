// SPDX-License-Identifier: GPL-2.0

//! Connection events.

use crate::ffi;

/// What happened to an id (`enum rdma_cm_event_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A peer asks for a connection; the id is a new one.
    ConnectRequest,
    /// The connection is up.
    Established,
    /// The peer or this end ended it.
    Disconnected,
    /// The peer could not be reached, refused, or failed to finish the handshake.
    Failed,
    /// The address the id is bound to moved to another device.
    AddrChange,
    /// The device goes.
    DeviceRemoval,
    /// The time in which stray packets of an ended connection may arrive is over.
    TimewaitExit,
    /// Anything else.
    Other(u32),
}

impl Event {
    /// # Safety
    ///
    /// `event` is valid.
    pub(super) unsafe fn from_raw(event: *const ffi::rdma_cm_event) -> Self {
        // SAFETY: By this function's contract.
        let raw = unsafe { (*event).event };
        match raw {
            ffi::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST => Self::ConnectRequest,
            ffi::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => Self::Established,
            ffi::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED => Self::Disconnected,
            ffi::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE
            | ffi::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR
            | ffi::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => Self::Failed,
            ffi::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE => Self::AddrChange,
            ffi::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => Self::DeviceRemoval,
            ffi::rdma_cm_event_type_RDMA_CM_EVENT_TIMEWAIT_EXIT => Self::TimewaitExit,
            other => Self::Other(other),
        }
    }
}
