// SPDX-License-Identifier: GPL-2.0

//! Calls in the reverse direction (RFC 8167): NFSv4.1 callbacks.
//!
//! A call is one inline message without chunks, and so is its reply. Calls are copied into a Send's
//! buffer, so a retransmission shares nothing with a Send that is still posted.

use crate::{
    kern::bytes,
    proto::{
        self,
        Fixed,
        Xid, //
    },
    rpc::{
        class::{
            Backchannel,
            Class, //
        },
        reply, //
    },
    stats,
    svc::{
        self,
        xdr_buf::XdrBuf,
        xprt::Xprt, //
    },
    transport::{
        connection::Connection,
        geometry,
        listener::Listener,
        send, //
    }, //
};
use core::num::NonZeroU32;
use kernel::{
    ffi::c_int,
    prelude::*, //
};

static CLASS: Class = Class::new();

/// Length of the transport header of a call without chunks.
const HEADER: usize = 28;
/// Credits asked for with each call.
const CREDITS: NonZeroU32 = NonZeroU32::MIN.saturating_add(geometry::BACKCHANNEL_CREDITS - 1);

impl Backchannel for Connection {
    const IDENT: c_int = <Listener as svc::listener::Listener>::IDENT | c_int::MIN;
    const SLOTS: u32 = geometry::BACKCHANNEL_CREDITS;
    const MAX_PAYLOAD: usize = geometry::INLINE_SIZE as usize - HEADER;

    fn backchannel_class() -> &'static Class {
        &CLASS
    }

    fn send_call(xprt: &Xprt<Self>, xid: [u8; 4], call: XdrBuf<'_>) -> Result {
        let len = usize::try_from(call.len())?;
        let total = HEADER.checked_add(len).ok_or(EMSGSIZE)?;
        if total > usize::try_from(xprt.inline_max())? {
            return Err(EMSGSIZE);
        }
        send::try_send(xprt, |message| {
            let (header, body) = message.split_at_mut_checked(HEADER).ok_or(EMSGSIZE)?;
            bytes::copy(header, &proto::encode_reverse_call(Xid(xid), CREDITS));
            call.copy(0, body.get_mut(..len).ok_or(EMSGSIZE)?)?;
            Ok(total)
        })?;
        stats::stats().backchannel_calls.inc();
        Ok(())
    }
}

/// Hands an answer of the client to the call that waits for it, or drops it. `None` is an
/// `RDMA_ERROR`: the call fails at once.
pub(crate) fn receive(conn: &Xprt<Connection>, fixed: &Fixed, payload: Option<&[u8]>) {
    let Xid(xid) = fixed.xid;
    if reply::complete(conn, xid, fixed.credits, payload) {
        stats::stats().backchannel_replies.inc();
    } else {
        stats::stats().dropped.inc();
    }
}
