// SPDX-License-Identifier: GPL-2.0
//! ONC RPC version 2 (RFC 5531): calls of any content, strict replies.

use crate::frame::{words, Words};

pub const NFS: u32 = 100_003;
pub const MOUNT: u32 = 100_005;
pub const PORTMAP: u32 = 100_000;
pub const NFSACL: u32 = 100_227;

/// How the results of a call are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Getattr,
    Lookup,
    Readlink,
    Read,
    Write,
    /// WRITE that asks for a stability which may not exist: Linux's nfsd gives it back.
    OddWrite,
    /// CREATE, MKDIR, SYMLINK.
    Create,
    /// REMOVE, RMDIR.
    Remove,
    Readdir,
    Readdirplus,
    Getacl,
    Setacl,
    Access,
    Fsinfo,
    /// Procedures of NFSv3 that no case calls; a mutation may.
    Other(u32),
    Compound(Ops),
    /// RPCSEC_GSS: a context is made (RFC 2203, section 5.2.3.1).
    Context,
    /// Any results are taken.
    Unknown,
    /// ... and anything in Write chunks.
    Any,
}

/// The operations of a COMPOUND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ops {
    numbers: [u8; Ops::MOST],
    /// None if they are not known.
    count: Option<u8>,
}

impl Ops {
    const MOST: usize = 128;

    pub const ANY: Self = Self {
        numbers: [0; Self::MOST],
        count: None,
    };

    pub fn new(numbers: &[u8]) -> Self {
        let mut this = Self::ANY;
        this.numbers[..numbers.len()].copy_from_slice(numbers);
        this.count = Some(numbers.len() as u8);
        this
    }

    pub fn known(&self) -> Option<&[u8]> {
        self.count.map(|count| &self.numbers[..count.into()])
    }
}

/// A call, with the places of the arguments that may travel in Read chunks.
#[derive(Clone, Debug)]
pub struct Call {
    pub xid: u32,
    pub rpcvers: u32,
    pub prog: u32,
    pub vers: u32,
    pub proc: u32,
    /// Credential and verifier.
    pub auth: Vec<u8>,
    pub args: Vec<u8>,
    /// Eligible opaque data: offset in `args` and length without roundup.
    pub items: Vec<(usize, usize)>,
    pub kind: Kind,
}

pub fn auth_none() -> Vec<u8> {
    words(&[0, 0, 0, 0])
}

/// AUTH_SYS of root with this many further groups.
pub fn auth_sys(groups: u32) -> Vec<u8> {
    let mut body = words(&[0, 1, u32::from_be_bytes(*b"c\0\0\0"), 0, 0, groups]);
    (0..groups).for_each(|g| body.extend(words(&[g])));
    let mut out = words(&[1, body.len() as u32]);
    out.extend(body);
    out.extend(words(&[0, 0]));
    out
}

impl Call {
    pub fn new(prog: u32, vers: u32, proc: u32, kind: Kind, args: Vec<u8>) -> Self {
        let auth = if kind == Kind::Null {
            auth_none()
        } else {
            auth_sys(0)
        };
        Self {
            xid: 0,
            rpcvers: 2,
            prog,
            vers,
            proc,
            auth,
            args,
            items: Vec::new(),
            kind,
        }
    }

    pub fn null() -> Self {
        Self::new(NFS, 3, 0, Kind::Null, Vec::new())
    }

    pub fn xid(mut self, xid: u32) -> Self {
        self.xid = xid;
        self
    }

    /// All in front of the credential.
    pub fn head(&self) -> Vec<u8> {
        words(&[self.xid, 0, self.rpcvers, self.prog, self.vers, self.proc])
    }

    /// The whole Payload stream.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.head();
        out.extend_from_slice(&self.auth);
        out.extend_from_slice(&self.args);
        out
    }

    /// The position of eligible item `n` in the Payload stream and its length.
    pub fn item(&self, n: usize) -> (usize, usize) {
        let (offset, len) = self.items[n];
        (24 + self.auth.len() + offset, len)
    }

    /// The stream without item `n` and its roundup; the item.
    pub fn reduced(&self, n: usize) -> (Vec<u8>, Vec<u8>) {
        let (position, len) = self.item(n);
        let mut stream = self.encode();
        let item = stream[position..position + len].to_vec();
        stream.drain(position..position + len.next_multiple_of(4));
        (stream, item)
    }

    /// The stream without any item, and the items.
    pub fn reduced_all(&self) -> (Vec<u8>, Vec<Vec<u8>>) {
        let mut stream = self.encode();
        let mut items: Vec<_> = (0..self.items.len())
            .rev()
            .map(|n| {
                let (position, len) = self.item(n);
                let whole = stream.drain(position..position + len.next_multiple_of(4));
                whole.take(len).collect::<Vec<_>>()
            })
            .collect();
        items.reverse();
        (stream, items)
    }
}

/// How a reply ends before its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Success,
    /// PROG_UNAVAIL 1 .. SYSTEM_ERR 5, with the versions of PROG_MISMATCH.
    Accepted(u32, Option<(u32, u32)>),
    RpcMismatch(u32, u32),
    AuthError(u32),
}

/// Take the header of the reply to a call with AUTH_NONE or AUTH_SYS off a Payload stream.
pub fn reply(stream: &mut Words<'_>, xid: u32) -> Result<Status, String> {
    verified_reply(stream, xid, |flavor, body| {
        if flavor == 0 && body.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "a verifier of flavor {flavor} with {} bytes",
                body.len()
            ))
        }
    })
}

/// What comes behind credential and verifier of a call.
pub fn arguments(stream: &[u8]) -> Option<Words<'_>> {
    let mut words = Words::new(stream.get(24..)?);
    for _ in 0..2 {
        words.word().ok()?;
        words.opaque().ok()?;
    }
    Some(words)
}

/// The first argument of a call, if it is an opaque: with NFSv3, a file handle.
pub fn first_opaque(stream: &[u8]) -> Option<&[u8]> {
    arguments(stream)?.opaque().ok()
}

/// The same, with a look at the flavor and the body of its verifier.
pub fn verified_reply(
    stream: &mut Words<'_>,
    xid: u32,
    verify: impl FnOnce(u32, &[u8]) -> Result<(), String>,
) -> Result<Status, String> {
    let (got, direction) = (stream.word()?, stream.word()?);
    if got != xid {
        return Err(format!(
            "XID {got:#x} of the RPC reply is not the header's {xid:#x}"
        ));
    }
    if direction != 1 {
        return Err(format!("msg_type {direction} in a reply"));
    }
    let status = match stream.word()? {
        0 => {
            verify(stream.word()?, stream.opaque()?)?;
            match stream.word()? {
                0 => return Ok(Status::Success),
                2 => Status::Accepted(2, Some((stream.word()?, stream.word()?))),
                n @ (1 | 3 | 4 | 5) => Status::Accepted(n, None),
                other => return Err(format!("accept_stat {other}")),
            }
        }
        1 => match stream.word()? {
            0 => Status::RpcMismatch(stream.word()?, stream.word()?),
            1 => Status::AuthError(stream.word()?),
            other => return Err(format!("reject_stat {other}")),
        },
        other => return Err(format!("reply_stat {other}")),
    };
    stream.end()?;
    Ok(status)
}
