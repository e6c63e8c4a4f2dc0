// SPDX-License-Identifier: GPL-2.0

//! Programs, and which arguments may be reduced: those of NFS (RFC 8267 sections 4 and 6.1), and none that
//! RPCSEC_GSS protects (RFC 8166 section 8.2.2).
//!
//! RFC 8166 section 6.1: a Call that reduces another argument must not be processed. For versions 2
//! and 3 the procedure says it all. In version 4 only a decoder of the COMPOUND could tell, so its
//! Calls pass, as do those of programs without a binding that is known here.

use super::{
    reject::Reason,
    wire::{
        roundup4,
        Reader, //
    },
};

const NFS_PROGRAM: u32 = 100_003;
/// NFSACL shares the connection; it reduces nothing (RFC 8267 section 5.2).
const NFS_ACL_PROGRAM: u32 = 100_227;

const NULL: u32 = 0;
const NFS2_WRITE: u32 = 8;
const NFS2_SYMLINK: u32 = 13;
const NFS3_WRITE: u32 = 7;
const NFS3_SYMLINK: u32 = 10;

/// Flavor of RPCSEC_GSS credentials, and in them the procedure and service (RFC 2203 section 5) of
/// arguments that are the upper layer's own.
const RPCSEC_GSS: u32 = 6;
const RPCSEC_GSS_DATA: u32 = 0;
const RPC_GSS_SVC_NONE: u32 = 1;

/// Whether an RPC program and version are those of NFS version 4.
pub(crate) fn is_nfs4(program: (u32, u32)) -> bool {
    program == (NFS_PROGRAM, 4)
}

/// Whether a Call that begins with `rpc` may have Read chunks at positions other than zero, of which
/// `first` is the lowest.
pub(super) fn check_reducible(rpc: &[u8], first: u32) -> Result<(), Reason> {
    // What is in front of the first chunk is in `rpc`; a chunk in the credentials would also hide
    // what they say.
    if header_len(rpc).is_none_or(|len| u64::from(first) < len) {
        return Err(Reason::PositionInCallHeader);
    }
    let mut words = Reader::new(rpc);
    let identity = identity(&mut words);
    if is_wrapped(&mut words) {
        return Err(Reason::NotReducible);
    }
    match identity {
        Some((_, _, NULL))
        | Some((NFS_PROGRAM, 2, NFS2_WRITE | NFS2_SYMLINK))
        | Some((NFS_PROGRAM, 3, NFS3_WRITE | NFS3_SYMLINK)) => Ok(()),
        Some((NFS_PROGRAM, 2 | 3, _) | (NFS_ACL_PROGRAM, _, _)) => Err(Reason::NotReducible),
        _ => Ok(()),
    }
}

/// Bytes in front of the arguments: up to the end of the verifier.
fn header_len(rpc: &[u8]) -> Option<u64> {
    let mut words = Reader::new(rpc);
    let mut len = u64::try_from(words.bytes(24)?.len()).ok()?;
    // Credentials and verifier.
    for _ in 0..2 {
        let _flavor = words.word()?;
        let body = roundup4(words.word()?);
        words.bytes(usize::try_from(body).ok()?)?;
        len = len.saturating_add(8).saturating_add(body);
    }
    Some(len)
}

/// Program, version and procedure of a Call.
fn identity(words: &mut Reader<'_>) -> Option<(u32, u32, u32)> {
    // XID, direction, RPC version.
    let _: [u8; 12] = words.array()?;
    Some((words.word()?, words.word()?, words.word()?))
}

/// Whether the arguments behind the credentials, which come next, are a token, or wrapped for
/// integrity or privacy.
fn is_wrapped(words: &mut Reader<'_>) -> bool {
    let Some(RPCSEC_GSS) = words.word() else {
        return false;
    };
    // Length, version, procedure, sequence number, service.
    let mut fields = [0; 5];
    for field in &mut fields {
        match words.word() {
            Some(word) => *field = word,
            // sunrpc refuses such credentials.
            None => return false,
        }
    }
    let [_, _, procedure, _, service] = fields;
    procedure != RPCSEC_GSS_DATA || service != RPC_GSS_SVC_NONE
}
