// SPDX-License-Identifier: GPL-2.0

//! Why a message is not processed, and what the peer is told about it (RFC 8166 section 4.5).
//!
//! No rejection closes the connection. The answer carries the fixed header by value, so the error
//! reply cannot contain bytes that this message did not bring.

use super::fixed::Fixed;

/// Why a message was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Shorter than the shortest header.
    TooShort,
    /// RDMA_DONE, which is obsolete.
    Done,
    /// No room for even an XID and a direction in the payload.
    NoRpc,
    /// The RPC message is neither a Call nor a Reply.
    BadDirection,
    /// A reverse Reply with chunk lists, which this requester never offered.
    ReverseReplyWithChunks,
    /// A Read chunk with an argument that may not be reduced.
    NotReducible,
    /// A reverse Reply whose two XIDs differ.
    ReverseReplyXid,
    /// Protocol version other than 1.
    BadVersion,
    /// RDMA_MSGP, which is obsolete.
    Msgp,
    /// Unknown message type.
    BadProc,
    /// The message ends inside a Read segment.
    ReadTruncated,
    /// The message ends inside a Write chunk.
    WriteTruncated,
    /// The message ends inside the Reply chunk.
    ReplyTruncated,
    /// The message ends where a list must go on or end.
    NoTerminator,
    /// A list discriminator other than 0 and 1.
    BadBool,
    /// A Read position that is not a multiple of four.
    MisalignedPosition,
    /// A Read chunk inside the RPC header, which is never eligible for reduction.
    PositionInCallHeader,
    /// A Read position behind the end of the payload.
    PositionBeyondPayload,
    /// Two Read chunks that cover the same bytes, roundup included.
    ChunkOverlap,
    /// A segment that wraps around the end of the address space.
    SegmentWrap,
    /// More segments than [`Limits::max_segments`](super::Limits).
    TooManySegments,
    /// More Read chunks than [`MAX_READ_CHUNKS`](super::MAX_READ_CHUNKS).
    TooManyReadChunks,
    /// More Write chunks than [`MAX_WRITE_CHUNKS`](super::MAX_WRITE_CHUNKS).
    TooManyWriteChunks,
    /// Larger than [`Limits::max_call_bytes`](super::Limits) after reassembly.
    CallTooLarge,
    /// RDMA_NOMSG without a Position Zero Read chunk.
    NomsgWithoutCallChunk,
    /// RDMA_NOMSG with bytes behind the header.
    NomsgTrailingBytes,
    /// RDMA_MSG with a Position Zero Read chunk.
    MsgWithCallChunk,
    /// A Position Zero Read chunk without a byte in it.
    EmptyCallChunk,
    /// The XID of the transport header is not that of the RPC Call.
    XidMismatch,
}

/// What to tell the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing.
    Silent,
    /// RDMA_ERROR with ERR_VERS: [`encode_err_vers`](super::encode_err_vers).
    ErrVers(Fixed),
    /// RDMA_ERROR with ERR_CHUNK: [`encode_err_chunk`](super::encode_err_chunk).
    ErrChunk(Fixed),
}

/// A rejected message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reject {
    reason: Reason,
    answer: Answer,
}

impl Reject {
    /// A message too short to be answered.
    pub(super) fn too_short() -> Self {
        Self {
            reason: Reason::TooShort,
            answer: Answer::Silent,
        }
    }

    /// Rejects the message that began with `fixed`.
    pub(super) fn new(reason: Reason, fixed: Fixed) -> Self {
        let answer = match reason {
            Reason::TooShort
            | Reason::Done
            | Reason::NoRpc
            | Reason::BadDirection
            | Reason::ReverseReplyWithChunks
            | Reason::ReverseReplyXid => Answer::Silent,
            Reason::BadVersion => Answer::ErrVers(fixed),
            _ => Answer::ErrChunk(fixed),
        };
        Self { reason, answer }
    }

    /// Why the message was rejected.
    pub(crate) fn reason(&self) -> Reason {
        self.reason
    }

    /// What to tell the peer.
    pub(crate) fn answer(&self) -> Answer {
        self.answer
    }
}
