// SPDX-License-Identifier: GPL-2.0

//! From the bytes of one Receive to what they are.
//!
//! The order of the checks is part of the contract: it decides which error a message gets that is
//! wrong in two ways. It is written down in `Documentation/protocol.md`.

use super::{
    call::Call,
    fixed::{
        procedure,
        Fixed, //
    },
    read_chunks::ReadList,
    reject::{
        Reason,
        Reject, //
    },
    reply_lists::ReplyLists,
    segment::Census,
    wire::Reader,
    MIN_HEADER,
    VERSION, //
};

/// Length of a well-formed RDMA_ERROR with ERR_CHUNK, the one message below [`MIN_HEADER`] in use.
const ERR_CHUNK_LEN: usize = 20;

/// What a connection accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Segments per message, all lists together.
    pub(crate) max_segments: u16,
    /// Bytes per Call: inline payload, chunks and roundup after reassembly.
    pub(crate) max_call_bytes: u32,
}

/// A message that was understood.
pub(crate) enum Ingress<'a> {
    /// An RPC Call.
    Call(Call<'a>),
    /// The peer's Reply to a reverse-direction Call.
    ReverseReply {
        /// The header; its credits are a grant.
        fixed: Fixed,
        /// The RPC message, at least 8 bytes.
        payload: &'a [u8],
    },
    /// RDMA_ERROR from the peer; it may end a reverse-direction Call and is never answered.
    PeerError {
        /// The header; nothing behind it matters.
        fixed: Fixed,
    },
}

/// Parses one message.
pub(crate) fn parse<'a>(msg: &'a [u8], limits: &Limits) -> Result<Ingress<'a>, Reject> {
    let mut reader = Reader::new(msg);

    if msg.len() < ERR_CHUNK_LEN {
        return Err(Reject::too_short());
    }
    let fixed = Fixed::read(&mut reader).ok_or(Reject::too_short())?;
    if fixed.proc_ == procedure::RDMA_ERROR {
        return Ok(Ingress::PeerError { fixed });
    }
    if msg.len() < MIN_HEADER {
        return Err(Reject::too_short());
    }
    classify(msg, fixed, reader, limits).map_err(|reason| Reject::new(reason, fixed))
}

fn classify<'a>(
    msg: &'a [u8],
    fixed: Fixed,
    mut reader: Reader<'a>,
    limits: &Limits,
) -> Result<Ingress<'a>, Reason> {
    if fixed.vers != VERSION {
        return Err(Reason::BadVersion);
    }
    match fixed.proc_ {
        procedure::RDMA_MSG | procedure::RDMA_NOMSG => {}
        procedure::RDMA_MSGP => return Err(Reason::Msgp),
        procedure::RDMA_DONE => return Err(Reason::Done),
        _ => return Err(Reason::BadProc),
    }

    let mut census = Census::new(u32::from(limits.max_segments));
    let read_list = ReadList::read(&mut reader, &mut census)?;
    let reply_lists = ReplyLists::read(&mut reader, &mut census)?;
    let payload = reader.rest();
    let no_lists = read_list.segments == 0 && reply_lists.is_empty();

    let call = Call::new(
        msg,
        fixed,
        payload,
        read_list,
        &reply_lists,
        census.sole_handle(),
        limits.max_call_bytes,
    )?;
    if fixed.proc_ == procedure::RDMA_NOMSG {
        return Ok(Ingress::Call(call));
    }

    match Direction::of(payload, fixed)? {
        Direction::Call => Ok(Ingress::Call(call)),
        Direction::Reply if no_lists => Ok(Ingress::ReverseReply { fixed, payload }),
        Direction::Reply => Err(Reason::ReverseReplyWithChunks),
    }
}

/// Direction of an RPC message (RFC 5531 section 9).
pub(super) enum Direction {
    Call,
    Reply,
}

impl Direction {
    /// Reads the direction of the RPC message that begins with `rpc`, and compares its XID with
    /// that of the transport header.
    pub(super) fn of(rpc: &[u8], fixed: Fixed) -> Result<Self, Reason> {
        let mut reader = Reader::new(rpc);
        let xid: [u8; 4] = reader.array().ok_or(Reason::NoRpc)?;
        let same = xid == fixed.xid.0;

        match reader.word().ok_or(Reason::NoRpc)? {
            0 if same => Ok(Self::Call),
            0 => Err(Reason::XidMismatch),
            1 if same => Ok(Self::Reply),
            1 => Err(Reason::ReverseReplyXid),
            _ => Err(Reason::BadDirection),
        }
    }
}
