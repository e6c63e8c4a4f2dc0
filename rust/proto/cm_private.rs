// SPDX-License-Identifier: GPL-2.0

//! The private data both sides exchange at connection set-up (RFC 8797).
//!
//! The eight bytes may stand at any offset, and the transport below may have padded what surrounds
//! them. Without them the peer is one of the time before: 1024 bytes either way and no remote
//! invalidation.

/// First word.
const MAGIC: [u8; 4] = [0xf6, 0xab, 0x0e, 0x18];

/// The only format version there is.
const FORMAT: u8 = 1;

/// Flag R: the sender can deal with remote invalidation.
const REMOTE_INV: u8 = 1;

/// Unit of the size codes, and the size that everybody supports.
const UNIT: u32 = 1024;

/// What one side declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CmPrivate {
    /// Whether Send with Invalidate may be used.
    pub(crate) remote_inv: bool,
    /// Largest message it sends.
    pub(crate) send: u32,
    /// Largest message it receives.
    pub(crate) recv: u32,
}

/// Finds the declaration in the private data of a connection request; the defaults if there is none.
pub(crate) fn cm_private(buf: &[u8]) -> CmPrivate {
    buf.windows(8).find_map(decode).unwrap_or(CmPrivate {
        remote_inv: false,
        send: UNIT,
        recv: UNIT,
    })
}

fn decode(bytes: &[u8]) -> Option<CmPrivate> {
    let (magic, rest) = bytes.split_first_chunk::<4>()?;
    let [format, flags, send, recv] = *rest.first_chunk::<4>()?;

    (*magic == MAGIC && format == FORMAT).then(|| CmPrivate {
        remote_inv: flags & REMOTE_INV != 0,
        send: size(send),
        recv: size(recv),
    })
}

fn size(code: u8) -> u32 {
    u32::from(code).saturating_add(1).saturating_mul(UNIT)
}

fn code(size: u32) -> Option<u8> {
    if size & 1023 != 0 {
        return None;
    }
    u8::try_from((size >> 10).checked_sub(1)?).ok()
}

/// Encodes our own declaration; [`None`] if a size is not 1 to 256 KiB in whole KiB.
pub(crate) fn encode_cm_private(own: &CmPrivate) -> Option<[u8; 8]> {
    let [m0, m1, m2, m3] = MAGIC;
    let flags = if own.remote_inv { REMOTE_INV } else { 0 };

    Some([
        m0,
        m1,
        m2,
        m3,
        FORMAT,
        flags,
        code(own.send)?,
        code(own.recv)?,
    ])
}
