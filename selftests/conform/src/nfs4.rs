// SPDX-License-Identifier: GPL-2.0
//! NFS version 4 (RFC 7530, RFC 8881): COMPOUNDs of the operations that cases use.

use crate::{
    callback::PROGRAM,
    frame::words,
    handle::Handle,
    nfs3::opaque,
    rpc::{Call, Kind, Ops, NFS},
};

/// A COMPOUND under construction.
#[derive(Clone, Debug)]
pub struct Compound {
    minor: u32,
    ops: Vec<u8>,
    numbers: Vec<u8>,
    items: Vec<(usize, usize)>,
}

/// The state id that any client may READ and WRITE with.
pub const ANONYMOUS: [u8; 16] = [0; 16];

impl Compound {
    pub fn new(minor: u32) -> Self {
        Self {
            minor,
            ops: Vec::new(),
            numbers: Vec::new(),
            items: Vec::new(),
        }
    }

    pub fn op(mut self, number: u32, args: &[Vec<u8>]) -> Self {
        self.ops.extend(words(&[number]));
        args.iter().for_each(|a| self.ops.extend_from_slice(a));
        self.numbers.push(number as u8);
        self
    }

    /// An operation that ends in eligible data.
    fn op_with_item(
        mut self,
        number: u32,
        args: &[Vec<u8>],
        data: &[u8],
        after: &[Vec<u8>],
    ) -> Self {
        self = self.op(number, args);
        self.items.push((self.ops.len() + 4, data.len()));
        self.ops.extend(opaque(data));
        after.iter().for_each(|a| self.ops.extend_from_slice(a));
        self
    }

    pub fn call(self) -> Call {
        let head = words(&[0, self.minor, self.numbers.len() as u32]);
        let kind = Kind::Compound(Ops::new(&self.numbers));
        let mut call = Call::new(NFS, 4, 1, kind, [head.clone(), self.ops].concat());
        call.items = self
            .items
            .iter()
            .map(|(offset, len)| (offset + head.len(), *len))
            .collect();
        call
    }

    pub fn root(self) -> Self {
        self.op(24, &[])
    }

    pub fn handle(self, handle: &Handle) -> Self {
        self.op(22, &[opaque(&handle.four)])
    }

    pub fn lookup(self, name: &str) -> Self {
        self.op(15, &[opaque(name.as_bytes())])
    }

    /// GETFH.
    pub fn name_handle(self) -> Self {
        self.op(10, &[])
    }

    /// GETATTR of type and size.
    pub fn getattr(self) -> Self {
        self.op(9, &[words(&[1, 0x12])])
    }

    pub fn read(self, from: u64, count: u32) -> Self {
        self.op(
            25,
            &[
                ANONYMOUS.to_vec(),
                words(&[(from >> 32) as u32, from as u32, count]),
            ],
        )
    }

    pub fn readlink(self) -> Self {
        self.op(27, &[])
    }

    pub fn read_plus(self, from: u64, count: u32) -> Self {
        self.op(
            68,
            &[
                ANONYMOUS.to_vec(),
                words(&[(from >> 32) as u32, from as u32, count]),
            ],
        )
    }

    /// LAYOUTGET of all of the current file, for reading, as flexible files.
    pub fn layoutget(self, max: u32) -> Self {
        self.op(
            50,
            &[
                words(&[0, 4, 1, 0, 0, u32::MAX, u32::MAX, 0, 0]),
                ANONYMOUS.to_vec(),
                words(&[max]),
            ],
        )
    }

    /// GETDEVICEINFO of a device that is none.
    pub fn getdeviceinfo(self, max: u32) -> Self {
        self.op(47, &[vec![0; 16], words(&[4, max, 0])])
    }

    pub fn write(self, to: u64, data: &[u8]) -> Self {
        self.op_with_item(
            38,
            &[
                ANONYMOUS.to_vec(),
                words(&[(to >> 32) as u32, to as u32, 2]),
            ],
            data,
            &[],
        )
    }

    /// CREATE of a symbolic link.
    pub fn symlink(self, name: &str, target: &[u8]) -> Self {
        self.op_with_item(
            6,
            &[words(&[5])],
            target,
            &[opaque(name.as_bytes()), words(&[0, 0])],
        )
    }

    pub fn sequence(self, session: &[u8; 16], number: u32, slot: u32, cache: bool) -> Self {
        self.op(
            53,
            &[
                session.to_vec(),
                words(&[number, slot, slot, u32::from(cache)]),
            ],
        )
    }

    /// All entries of the current directory, with type and size.
    pub fn readdir(self, max: u32) -> Self {
        self.op(26, &[words(&[0, 0, 0, 0, max, max, 1, 0x12])])
    }

    /// GETATTR of one attribute among the first 32.
    pub fn attribute(self, number: u32) -> Self {
        self.op(9, &[words(&[1, 1 << number])])
    }

    pub fn getxattr(self, name: &str) -> Self {
        self.op(72, &[opaque(name.as_bytes())])
    }

    /// Made or replaced.
    pub fn setxattr(self, name: &str, value: &[u8]) -> Self {
        self.op(73, &[words(&[0]), opaque(name.as_bytes()), opaque(value)])
    }

    pub fn listxattrs(self, max: u32) -> Self {
        self.op(74, &[words(&[0, 0, max])])
    }

    pub fn exchange_id(self, owner: &[u8], verifier: u64) -> Self {
        let verifier = verifier.to_be_bytes().to_vec();
        self.op(42, &[verifier, opaque(owner), words(&[0, 0, 0])])
    }

    /// `back`: the longest call of the reverse direction, and its slots.
    pub fn create_session(self, client: u64, number: u32, flags: u32, back: (u32, u32)) -> Self {
        let fore = words(&[0, 1_052_672, 1_052_672, 4096, 8, 16, 0]);
        let back = words(&[0, back.0, 1024, 0, 2, back.1, 0]);
        let security = words(&[PROGRAM, 1, 0]);
        self.op(
            43,
            &[
                words(&[(client >> 32) as u32, client as u32, number, flags]),
                fore,
                back,
                security,
            ],
        )
    }

    pub fn reclaim_complete(self) -> Self {
        self.op(58, &[words(&[0])])
    }

    /// OPEN of the current file for reading, with a wish for a delegation.
    pub fn open(self, client: u64, owner: &[u8]) -> Self {
        let (high, low) = ((client >> 32) as u32, client as u32);
        let owner = [words(&[high, low]), opaque(owner)].concat();
        self.op(18, &[words(&[0, 0x101, 0]), owner, words(&[0, 4])])
    }

    pub fn destroy_session(self, session: &[u8; 16]) -> Self {
        self.op(44, &[session.to_vec()])
    }
}
