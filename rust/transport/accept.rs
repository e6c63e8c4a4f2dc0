// SPDX-License-Identifier: GPL-2.0

//! Accepting a connection: what is agreed with the peer, and what is made.

use crate::{
    cm::{
        endpoint::{
            AcceptParams,
            Geometry, //
        },
        pending::ConnId, //
    },
    ib::{
        device::DeviceCaps,
        dma_check, //
    },
    kern::{
        context::Sleepable,
        page::PAGE_SIZE, //
    },
    proto::{
        self,
        CmPrivate,
        Limits, //
    },
    stats,
    svc::{
        listener::{
            AcceptedRef,
            Serv, //
        },
        xprt::Xprt, //
    },
    transport::{
        connection::Connection,
        geometry::{
            self,
            Reader, //
        },
        listener::Listener,
        recv::{
            self,
            RecvContext, //
        },
        send::SendContext,
        shared::{
            self,
            Shared, //
        }, //
    }, //
};
use kernel::prelude::*;

/// Send contexts made at accept, so that callbacks find one.
const FIRST_SENDS: usize = 2;

/// What is said to the peer.
struct Answer {
    read_depth: u8,
    private_data: [u8; 8],
}

/// What decides how large a connection is and how it speaks.
pub(crate) struct Terms {
    /// The queues' sizes.
    pub(super) geometry: Geometry,
    /// How RDMA Reads name memory.
    pub(super) reader: Reader,
    /// What a message may have.
    pub(super) limits: Limits,
    /// Bytes the client can receive, or this end can send, in one message.
    pub(super) inline_max: u32,
    /// Both ends agreed on remote invalidation.
    pub(super) remote_inv: bool,
    /// Bytes of one mapping at most.
    pub(super) max_seg_size: usize,
}

/// Agrees with the peer on sizes and abilities (RFC 8797).
///
/// # Errors
///
/// `EPROTO` when the client allows no RDMA Reads, `EOPNOTSUPP` when the device is too small.
fn agree(
    id: &ConnId,
    caps: &DeviceCaps,
    maxpages: usize,
    shared: &Shared,
) -> Result<(Terms, Answer)> {
    let theirs = proto::cm_private(id.private_data());
    let ours = CmPrivate {
        remote_inv: caps.mem_mgt_extensions,
        send: geometry::INLINE_SIZE,
        recv: geometry::INLINE_SIZE,
    };
    let max_rd_atom = u8::try_from(caps.max_rd_atom).unwrap_or(u8::MAX);
    let read_depth = id.read_limit().min(max_rd_atom);
    if read_depth == 0 {
        // Without RDMA Reads most calls could only be refused.
        return Err(EPROTO);
    }
    // One page of a message is the transport header's; see `CallPages`.
    let pages = maxpages.saturating_sub(1);
    let geometry = geometry::of(caps, pages)?;
    let terms = Terms {
        geometry,
        reader: shared.reader.for_device(caps, &geometry, pages)?,
        limits: Limits {
            max_segments: geometry::MAX_SEGMENTS,
            max_call_bytes: u32::try_from(pages.saturating_mul(PAGE_SIZE))?,
        },
        inline_max: ours.send.min(theirs.recv),
        remote_inv: ours.remote_inv && theirs.remote_inv,
        max_seg_size: usize::try_from(caps.max_seg_size)?.min(dma_check::max_mapping()),
    };
    let answer = Answer {
        read_depth,
        private_data: proto::encode_cm_private(&ours).ok_or(EINVAL)?,
    };
    Ok((terms, answer))
}

/// Accepts the connection of `id` for the service of `listener`.
///
/// # Errors
///
/// `ENODEV` when the device goes, `EPROTO` when the client allows no RDMA Reads, `EOPNOTSUPP` when
/// the device is too small, and what its driver returns.
pub(crate) fn accept(
    id: ConnId,
    listener: &Xprt<Listener>,
    context: &Sleepable,
) -> Result<AcceptedRef<Connection>> {
    let shared = shared::get().ok_or(ENODEV)?;
    let device = shared.devices.guard(id.device().ok_or(ENODEV)?)?;
    let caps = device.caps(id.port());
    let (terms, answer) = agree(&id, &caps, listener.maxpages(), shared)?;
    let recv_depth = terms.geometry.recv_depth;
    let serv = Serv::of(listener).ok_or(EINVAL)?;
    let xprt = Xprt::make(Serv::net_of(listener), serv.as_ptr(), |place| {
        Connection::new(place, id, device, terms, shared, context)
    })?;
    let accepted = AcceptedRef::new(xprt);
    let conn = accepted.xprt().ok_or(EINVAL)?;
    let endpoint = conn.endpoint();
    conn.set_local(endpoint.id().local_addr()?);
    conn.set_remote(endpoint.id().peer_addr()?);
    shared.connections.add(conn, context)?;
    // A removal that began before the line above did not see the connection; it is seen here.
    drop(shared.devices.guard(endpoint.device())?);
    for _ in 0..FIRST_SENDS {
        let page = shared.depot.page(context)?;
        conn.keep_send(SendContext::new(endpoint.device().again(), page, context)?);
    }
    for _ in 0..recv_depth {
        let receive = RecvContext::new(endpoint.device().again())?;
        recv::post(conn, receive, None, context)?;
    }
    endpoint.accept(
        conn,
        &AcceptParams {
            private_data: &answer.private_data,
            initiator_depth: answer.read_depth,
            // Without end: a client that has more calls outstanding than credits only waits.
            rnr_retry_count: 7,
        },
        context,
    )?;
    stats::stats().accepts.inc();
    Ok(accepted)
}
