// SPDX-License-Identifier: GPL-2.0

//! Which arguments of NFS may be reduced (RFC 8267 sections 4 and 6.1).
//!
//! RFC 8166 section 6.1: a Call that reduces another argument must not be processed. For versions 2
//! and 3 the procedure says it all. In version 4 only a decoder of the COMPOUND could tell, so its
//! Calls pass, as do those of programs without a binding that is known here.

use super::{
    reject::Reason,
    wire::Reader, //
};

const NFS_PROGRAM: u32 = 100_003;
/// NFSACL shares the connection; it reduces nothing (RFC 8267 section 5.2).
const NFS_ACL_PROGRAM: u32 = 100_227;

const NULL: u32 = 0;
const NFS2_WRITE: u32 = 8;
const NFS2_SYMLINK: u32 = 13;
const NFS3_WRITE: u32 = 7;
const NFS3_SYMLINK: u32 = 10;

/// Whether a Call that begins with `rpc` may have a Read chunk at a position other than zero.
pub(super) fn check_reducible(rpc: &[u8]) -> Result<(), Reason> {
    match identity(rpc) {
        Some((_, _, NULL))
        | Some((NFS_PROGRAM, 2, NFS2_WRITE | NFS2_SYMLINK))
        | Some((NFS_PROGRAM, 3, NFS3_WRITE | NFS3_SYMLINK)) => Ok(()),
        Some((NFS_PROGRAM, 2 | 3, _) | (NFS_ACL_PROGRAM, _, _)) => Err(Reason::NotReducible),
        _ => Ok(()),
    }
}

/// Program, version and procedure of a Call.
fn identity(rpc: &[u8]) -> Option<(u32, u32, u32)> {
    let mut words = Reader::new(rpc);
    // XID, direction, RPC version.
    let _: [u8; 12] = words.array()?;
    Some((words.word()?, words.word()?, words.word()?))
}
