// SPDX-License-Identifier: GPL-2.0

//! Programs, and which arguments may be reduced: those of NFS (RFC 8267 sections 4 and 6.1), and
//! none that RPCSEC_GSS protects (RFC 8166 section 8.2.2).
//!
//! RFC 8166 section 6.1: a Call that reduces another argument must not be processed. For versions 2
//! and 3 the procedure, and what is in front of the argument, say it all. In version 4 only a
//! decoder of the COMPOUND could tell, so its Calls pass, as do those of programs without a binding
//! that is known here.

use super::{
    read_chunks::ReadChunk,
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

/// Bytes of a file handle of version 2.
const NFS2_FHSIZE: usize = 32;
/// `time_how` of a time that follows.
const SET_TO_CLIENT_TIME: u32 = 2;

/// Flavor of RPCSEC_GSS credentials, and in them the procedure and service (RFC 2203 section 5) of
/// arguments that are the upper layer's own.
const RPCSEC_GSS: u32 = 6;
const RPCSEC_GSS_DATA: u32 = 0;
const RPC_GSS_SVC_NONE: u32 = 1;

/// Whether an RPC program and version are those of NFS version 4.
pub(crate) fn is_nfs4(program: (u32, u32)) -> bool {
    program == (NFS_PROGRAM, 4)
}

/// Whether a Call that begins with `rpc` may have `chunks` Read chunks with bytes at positions other
/// than zero, of which `first` is the lowest. What is in front of that is in `rpc`.
pub(super) fn check_reducible(rpc: &[u8], first: &ReadChunk, chunks: usize) -> Result<(), Reason> {
    // A chunk in the credentials would also hide what they say.
    let len = header_len(rpc).ok_or(Reason::PositionInCallHeader)?;
    if u32::try_from(len).map_or(true, |len| first.position < len) {
        return Err(Reason::PositionInCallHeader);
    }
    let mut words = Reader::new(rpc);
    let identity = identity(&mut words);
    if is_wrapped(&mut words) {
        return Err(Reason::NotReducible);
    }
    let mut arguments = Reader::new(rpc.get(len..).unwrap_or_default());
    let item = match identity {
        Some((NFS_PROGRAM | NFS_ACL_PROGRAM, _, NULL)) => return Ok(()),
        Some((NFS_PROGRAM, 2, NFS2_WRITE)) => write2_data(&mut arguments),
        Some((NFS_PROGRAM, 2, NFS2_SYMLINK)) => symlink2_target(&mut arguments),
        Some((NFS_PROGRAM, 3, NFS3_WRITE)) => write3_data(&mut arguments),
        Some((NFS_PROGRAM, 3, NFS3_SYMLINK)) => symlink3_target(&mut arguments),
        Some((NFS_PROGRAM, 2 | 3, _) | (NFS_ACL_PROGRAM, _, _)) => None,
        _ => return Ok(()),
    };
    // One item of these is eligible, and it begins behind its count.
    let item = item.ok_or(Reason::NotReducible)?;
    let eligible = rpc.len().checked_sub(arguments.rest().len());
    let misplaced = eligible.and_then(|at| u32::try_from(at).ok()) != Some(first.position);
    if chunks != 1 || misplaced || item.remote > first.len {
        return Err(Reason::NotReducible);
    }
    Ok(())
}

/// An argument that may be reduced; what is in front of it has been read.
struct Item {
    /// Bytes that have to be in the chunk.
    remote: u32,
}

impl Item {
    /// An item of which a part may come inline, behind the chunk.
    const SPLIT: Self = Self { remote: 0 };
}

/// An opaque or a string (RFC 4506 sections 4.10, 4.11).
fn skip_opaque(words: &mut Reader<'_>) -> Option<()> {
    let len = roundup4(words.word()?);
    words.bytes(usize::try_from(len).ok()?).map(drop)
}

/// WRITE of NFS version 2 up to its data (RFC 1094 section 2.2.9): file, three words, count.
fn write2_data(words: &mut Reader<'_>) -> Option<Item> {
    words.bytes(NFS2_FHSIZE + 16)?;
    Some(Item::SPLIT)
}

/// SYMLINK of NFS version 2 up to its target (RFC 1094 section 2.2.14): directory, name, count.
fn symlink2_target(words: &mut Reader<'_>) -> Option<Item> {
    words.bytes(NFS2_FHSIZE)?;
    skip_opaque(words)?;
    target(words)
}

/// WRITE of NFS version 3 up to its data (RFC 1813 section 3.3.7): file, offset, count, stability,
/// count.
fn write3_data(words: &mut Reader<'_>) -> Option<Item> {
    skip_opaque(words)?;
    words.bytes(20)?;
    Some(Item::SPLIT)
}

/// SYMLINK of NFS version 3 up to its target (RFC 1813 section 3.3.10): directory, name,
/// attributes, count.
fn symlink3_target(words: &mut Reader<'_>) -> Option<Item> {
    skip_opaque(words)?;
    skip_opaque(words)?;
    // Mode, user, group, size: each if it is to be set.
    for len in [4, 4, 4, 8] {
        if words.word()? != 0 {
            words.bytes(len)?;
        }
    }
    // Times of access and change: as they are, the server's, or the client's.
    for _ in 0..2 {
        if words.word()? == SET_TO_CLIENT_TIME {
            words.bytes(8)?;
        }
    }
    target(words)
}

/// A link's target, behind its count. All of it has to be remote: nfsd takes its length from the
/// count and its bytes from the first page, whatever that has behind the chunk
/// (`svc_fill_symlink_pathname`, net/sunrpc/svc.c).
fn target(words: &mut Reader<'_>) -> Option<Item> {
    Some(Item {
        remote: words.word()?,
    })
}

/// Bytes in front of the arguments: up to the end of the verifier.
fn header_len(rpc: &[u8]) -> Option<usize> {
    let mut words = Reader::new(rpc);
    let _: [u8; 24] = words.array()?;
    // Credentials and verifier: flavor and body.
    for _ in 0..2 {
        words.word()?;
        skip_opaque(&mut words)?;
    }
    rpc.len().checked_sub(words.rest().len())
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
