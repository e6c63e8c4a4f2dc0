// SPDX-License-Identifier: GPL-2.0
//! NFS version 3 (RFC 1813): the calls that cases use.

use crate::{
    frame::words,
    rpc::{Call, Kind, NFS, NFSACL},
};

pub fn opaque(data: &[u8]) -> Vec<u8> {
    let mut out = words(&[data.len() as u32]);
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn call(proc: u32, kind: Kind, parts: &[Vec<u8>]) -> Call {
    Call::new(NFS, 3, proc, kind, parts.concat())
}

fn offset(value: u64) -> Vec<u8> {
    words(&[(value >> 32) as u32, value as u32])
}

/// No attribute is set.
fn no_attributes() -> Vec<u8> {
    words(&[0; 6])
}

pub fn getattr(handle: &[u8]) -> Call {
    call(1, Kind::Getattr, &[opaque(handle)])
}

pub fn lookup(dir: &[u8], name: &str) -> Call {
    call(3, Kind::Lookup, &[opaque(dir), opaque(name.as_bytes())])
}

pub fn access(handle: &[u8]) -> Call {
    call(4, Kind::Access, &[opaque(handle), words(&[0x3f])])
}

pub fn readlink(handle: &[u8]) -> Call {
    call(5, Kind::Readlink, &[opaque(handle)])
}

pub fn read(handle: &[u8], from: u64, count: u32) -> Call {
    call(
        6,
        Kind::Read,
        &[opaque(handle), offset(from), words(&[count])],
    )
}

/// FILE_SYNC, so that nothing is left to commit.
pub fn write(handle: &[u8], to: u64, data: &[u8]) -> Call {
    let head = [opaque(handle), offset(to), words(&[data.len() as u32, 2])].concat();
    let mut made = call(7, Kind::Write, &[head.clone(), opaque(data)]);
    made.items.push((head.len() + 4, data.len()));
    made
}

pub fn create(dir: &[u8], name: &str) -> Call {
    call(
        8,
        Kind::Create,
        &[
            opaque(dir),
            opaque(name.as_bytes()),
            words(&[0, 1, 0o644, 0, 0, 0, 0, 0]),
        ],
    )
}

pub fn mkdir(dir: &[u8], name: &str) -> Call {
    call(
        9,
        Kind::Create,
        &[opaque(dir), opaque(name.as_bytes()), no_attributes()],
    )
}

pub fn symlink(dir: &[u8], name: &str, target: &[u8]) -> Call {
    let head = [opaque(dir), opaque(name.as_bytes()), no_attributes()].concat();
    let mut made = call(10, Kind::Create, &[head.clone(), opaque(target)]);
    made.items.push((head.len() + 4, target.len()));
    made
}

pub fn remove(dir: &[u8], name: &str) -> Call {
    call(12, Kind::Remove, &[opaque(dir), opaque(name.as_bytes())])
}

pub fn rmdir(dir: &[u8], name: &str) -> Call {
    call(13, Kind::Remove, &[opaque(dir), opaque(name.as_bytes())])
}

pub fn readdir(dir: &[u8], count: u32) -> Call {
    call(
        16,
        Kind::Readdir,
        &[opaque(dir), words(&[0, 0, 0, 0, count])],
    )
}

pub fn fsinfo(root: &[u8]) -> Call {
    call(19, Kind::Fsinfo, &[opaque(root)])
}

pub fn readdirplus(dir: &[u8], count: u32) -> Call {
    call(
        17,
        Kind::Readdirplus,
        &[opaque(dir), words(&[0, 0, 0, 0, count, count])],
    )
}

/// SETACL of users' entries, as many as that, after those of owner, group, mask and others.
pub fn setacl(handle: &[u8], users: u32) -> Call {
    let mut acl = vec![users + 4];
    let mut entry = |tag: u32, id: u32, may: u32| acl.extend([tag, id, may]);
    entry(1, 0, 6);
    (0..users).for_each(|u| entry(2, 5000 + u, 4));
    entry(4, 0, 4);
    entry(0x10, 0, 4);
    entry(0x20, 0, 4);
    // An access ACL, its entries, and no default ACL.
    let args = [
        opaque(handle),
        words(&[3, users + 4]),
        words(&acl),
        words(&[0, 0]),
    ];
    Call::new(NFSACL, 3, 2, Kind::Setacl, args.concat())
}

pub fn getacl(handle: &[u8]) -> Call {
    Call::new(
        NFSACL,
        3,
        1,
        Kind::Getacl,
        [opaque(handle), words(&[0xf])].concat(),
    )
}
