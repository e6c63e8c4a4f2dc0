// SPDX-License-Identifier: GPL-2.0

//! How large a connection is.
//!
//! The numbers come from a memory budget. On a software device a Send Queue slot costs the
//! provider 208 bytes and 16 per scatter/gather element, rounded up to a power of two: 255 slots of
//! 32 elements are 256 KiB. With 132 pages for Receives an idle connection stays below 1 MiB, and
//! 1 MiB of payload needs 8 work requests when the client's segments are page-aligned.

use crate::{
    cm::endpoint::Geometry,
    ib::device::DeviceCaps,
    kern::page::PAGE_SIZE, //
};
use kernel::prelude::*;

/// Bytes a Receive or a Send can hold: one page, as the transport of the kernel has it.
pub(crate) const INLINE_SIZE: u32 = 4096;

/// Calls a client may have outstanding: the credits granted in each reply.
pub(crate) const CREDITS: u32 = 128;

/// Calls of this end that may be outstanding on the backchannel.
pub(crate) const BACKCHANNEL_CREDITS: u32 = 2;

/// Receives beyond what the credits of both directions need.
const SPARE_RECEIVES: u32 = 2;

/// Send Queue slots: as many as a reply with one RDMA Write for each segment of a full message needs.
const SEND_DEPTH: u32 = 254;

/// Scatter/gather elements of a work request.
const MAX_SGE: u32 = 32;

/// Segments in the lists of one message: more than fit into a Receive.
pub(crate) const MAX_SEGMENTS: u16 = 256;

/// Calls of one connection that the transport keeps in memory at a time. A client that keeps to
/// its credits has half as many outstanding; the rest is for calls that sunrpc deferred.
pub(crate) const MAX_CALLS: u32 = 2 * CREDITS;

const _: () = assert!(INLINE_SIZE as usize == PAGE_SIZE);

/// Pages of a window of registered memory at most: 1 MiB.
const MAX_WINDOW_PAGES: u32 = 256;

/// How RDMA Reads name the memory they fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// By the local key of the protection domain.
    Local,
    /// By the key of a memory region, registered for the purpose and invalidated after it.
    Registered {
        /// Pages of a region.
        pages: usize,
        /// The last RDMA Read into a region invalidates it.
        read_inv: bool,
        /// The region must allow remote writing, as it is addressed by the peer.
        remote_write: bool,
    },
}

/// What the administrator wants of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReaderChoice {
    /// What the fabric needs.
    Auto,
    /// Always by the local key.
    Local,
    /// Always by registration.
    Registered,
}

impl ReaderChoice {
    /// Reads the parameter's text.
    ///
    /// # Errors
    ///
    /// `EINVAL`.
    pub(crate) fn parse(text: &[u8]) -> Result<Self> {
        match text {
            b"auto" => Ok(Self::Auto),
            b"local" => Ok(Self::Local),
            b"frmr" => Ok(Self::Registered),
            _ => Err(EINVAL),
        }
    }

    /// The reader for a device.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` when the device cannot do what is wanted, or not for a message of `pages` pages.
    pub(crate) fn for_device(
        self,
        caps: &DeviceCaps,
        geometry: &Geometry,
        pages: usize,
    ) -> Result<Reader> {
        let local = !caps.iwarp && holds(geometry.send_depth, geometry.max_read_sge, pages);
        let registered = match self {
            Self::Auto => !local,
            Self::Local if !local => return Err(EOPNOTSUPP),
            Self::Local => false,
            Self::Registered => true,
        };
        if !registered {
            return Ok(Reader::Local);
        }
        if !caps.mem_mgt_extensions || caps.max_fast_reg_pages == 0 {
            return Err(EOPNOTSUPP);
        }
        let region = usize::try_from(MAX_WINDOW_PAGES.min(caps.max_fast_reg_pages))?;
        // Registration, Read and invalidation of each, and where a region ends one more Read.
        let requests = pages.div_ceil(region).saturating_mul(3).saturating_add(1);
        if requests > usize::try_from(geometry.send_depth)? {
            return Err(EOPNOTSUPP);
        }
        Ok(Reader::Registered {
            pages: region,
            read_inv: caps.read_inv,
            remote_write: caps.iwarp,
        })
    }
}

/// Whether so many work requests reach all pages of a message, none of which follow each other.
fn holds(requests: u32, sges: u32, pages: usize) -> bool {
    // CAST: `usize` to `u64` is lossless on 64-bit; two `u32` cannot overflow the product.
    u64::from(requests) * u64::from(sges) >= pages as u64
}

/// The queues of a connection on a device with these limits, for messages of up to `pages` pages.
///
/// # Errors
///
/// `EOPNOTSUPP` when the device is too small.
pub(crate) fn of(caps: &DeviceCaps, pages: usize) -> Result<Geometry> {
    // One work request of each queue, and its completion, is for draining.
    let max_wr = caps.max_qp_wr.saturating_sub(1);
    let recv_depth = CREDITS
        .saturating_add(BACKCHANNEL_CREDITS)
        .saturating_add(SPARE_RECEIVES);
    let max_cqe = caps.max_cqe.saturating_sub(2).saturating_sub(recv_depth);
    let send_depth = SEND_DEPTH.min(max_wr).min(max_cqe);
    let max_sge = MAX_SGE.min(caps.max_send_sge);
    let max_read_sge = max_sge.min(caps.max_sge_rd);
    let small = send_depth < 16
        || max_read_sge == 0
        || !holds(send_depth.saturating_sub(1), max_sge, pages);
    if recv_depth > max_wr || small {
        return Err(EOPNOTSUPP);
    }
    Ok(Geometry {
        recv_depth,
        send_depth,
        max_sge,
        max_read_sge,
    })
}
