// SPDX-License-Identifier: GPL-2.0

//! The fixed transport header: sixteen bytes at the same place in every protocol version
//! (RFC 8166 section 4.2).

use super::wire::Reader;

/// `rdma_proc` values (RFC 8166 section 4.2.4).
pub(super) mod procedure {
    pub(crate) const RDMA_MSG: u32 = 0;
    pub(crate) const RDMA_NOMSG: u32 = 1;
    pub(crate) const RDMA_MSGP: u32 = 2;
    pub(crate) const RDMA_DONE: u32 = 3;
    pub(crate) const RDMA_ERROR: u32 = 4;
}

/// Length of the fixed header.
pub(super) const FIXED_LEN: usize = 16;

/// An RPC transaction id, opaque: kept in wire order and never interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Xid(pub(crate) [u8; 4]);

/// The fixed header as it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    /// Transaction id.
    pub(crate) xid: Xid,
    /// Protocol version the peer wrote.
    pub(crate) vers: u32,
    /// Credits the peer asks for (in a Call) or grants (in a reverse Reply).
    pub(crate) credits: u32,
    /// Message type.
    pub(crate) proc_: u32,
}

impl Fixed {
    /// Reads the fixed header, or returns [`None`] if `reader` holds less.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            xid: Xid(reader.array()?),
            vers: reader.word()?,
            credits: reader.word()?,
            proc_: reader.word()?,
        })
    }
}
