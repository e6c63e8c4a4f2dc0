// SPDX-License-Identifier: GPL-2.0
//! Results of NFSv4 (RFC 7530, RFC 8881), operation by operation.

use super::{Decoder, Item};
use crate::{frame::Words, rpc::Ops};

/// NFSv4: an operation that is none, and its status.
const ILLEGAL: u32 = 10_044;

impl Decoder<'_, '_> {
    pub fn compound(&mut self, called: &Ops) -> Result<(), String> {
        self.out.status = self.word()?;
        let tag = self.words.opaque()?;
        let called = called.known();
        // That of all our calls has no bytes.
        if called.is_some() && !tag.is_empty() {
            return Err(format!("a tag of {} bytes", tag.len()));
        }
        let count = self.word()?;
        if called.is_some_and(|c| count as usize > c.len()) {
            return Err(format!("{count} results of fewer operations"));
        }
        for i in 0..count {
            let (op, status) = (self.word()?, self.word()?);
            self.out.ops.push((op, status));
            // One that the minor version does not have is ILLEGAL.
            let right =
                |c: &[u8]| (op, status) == (ILLEGAL, ILLEGAL) || op == u32::from(c[i as usize]);
            if !called.is_none_or(right) {
                return Err(format!("operation {op} in place {i}"));
            }
            let last = i + 1 == count;
            if !last && status != 0 || last && status != self.out.status {
                return Err(format!(
                    "status {status} of result {} of {count}, status {} of all",
                    i + 1,
                    self.out.status
                ));
            }
            match (op, status) {
                (_, 0) => self
                    .operation(op)
                    .map_err(|e| format!("in operation {op}: {e}"))?,
                // GETDEVICEINFO too small, LAYOUTGET try later: each with a word.
                (47, 10_005) | (50, 10_058) => self.skip(4)?,
                (34, _) => self.bitmap()?, // SETATTR
                _ => {}
            }
        }
        match called {
            Some(c) if self.out.status == 0 && c.len() != count as usize => Err(format!(
                "{count} results of {} operations, and all of them succeeded",
                c.len()
            )),
            _ => Ok(()),
        }
    }

    fn bitmap(&mut self) -> Result<(), String> {
        let words = self.word()? as usize;
        self.skip(words.saturating_mul(4))
    }

    fn channel(&mut self) -> Result<(), String> {
        self.skip(24)?;
        let ird = self.word()? as usize;
        self.skip(ird * 4)
    }

    fn operation(&mut self, op: u32) -> Result<(), String> {
        match op {
            // DELEGRETURN, LOOKUP, LOOKUPP, NVERIFY, PUTFH, PUTPUBFH, PUTROOTFH, RENEW,
            // RESTOREFH, SAVEFH, VERIFY, DESTROY_SESSION, RECLAIM_COMPLETE
            8 | 15 | 16 | 17 | 22 | 23 | 24 | 30 | 31 | 32 | 37 | 44 | 58 => {}
            3 | 5 => self.skip(8)?, // ACCESS, COMMIT
            9 => {
                let count = self.word()?;
                let mask = (0..count)
                    .map(|_| self.word())
                    .collect::<Result<Vec<_>, _>>()?;
                let values = self.words.opaque()?;
                // What cases ask for, type and size; a mutation may ask for more.
                if mask == [0x12] {
                    let kind = Words::new(values).word()?;
                    if values.len() != 12 || !(1..=9).contains(&kind) {
                        return Err(format!("{} bytes, type {kind}", values.len()));
                    }
                }
            }
            10 => self.out.handle = self.handle()?,
            18 => {
                // OPEN: state id, change, flags, attributes set, delegation
                self.out.sequence = Some(self.words.take(16)?.try_into().expect("16 bytes"));
                self.skip(20)?;
                self.skip(4)?;
                self.bitmap()?;
                self.out.number = self.word()?;
                match self.out.number {
                    0 => {}
                    1 => {
                        self.skip(16 + 4 + 12)?;
                        self.words.opaque()?;
                    }
                    2 => {
                        self.skip(16 + 4 + 12 + 12)?;
                        self.words.opaque()?;
                    }
                    3 => {
                        if matches!(self.word()?, 1 | 2) {
                            self.skip(4)?;
                        }
                    }
                    other => return Err(format!("delegation type {other}")),
                }
            }
            25 => {
                self.out.eof = self.words.boolean()?;
                self.item()?;
            }
            27 => self.item()?,
            38 => {
                self.out.count = self.word()?;
                self.written()?;
            }
            6 => {
                self.skip(20)?;
                self.bitmap()?;
            }
            11 | 28 => self.skip(20)?, // LINK, REMOVE
            26 => {
                // READDIR
                self.skip(8)?;
                while self.words.boolean()? {
                    self.skip(8)?;
                    self.name()?;
                    self.bitmap()?;
                    self.words.opaque()?;
                }
                self.out.eof = self.words.boolean()?;
            }
            34 => self.bitmap()?,
            42 => {
                self.out.client = self.words.long()?;
                self.out.number = self.word()?;
                self.out.flags = self.word()?;
                if self.word()? != 0 {
                    return Err("state protection that was not asked for".into());
                }
                self.skip(8)?;
                self.words.opaque()?;
                self.words.opaque()?;
                for _ in 0..self.word()? {
                    self.words.opaque()?;
                    self.words.opaque()?;
                    self.skip(12)?;
                }
            }
            43 => {
                self.out.sequence = Some(self.words.take(16)?.try_into().expect("16 bytes"));
                self.out.number = self.word()?;
                self.out.flags = self.word()?;
                self.channel()?;
                self.channel()?;
            }
            53 => {
                self.out.sequence = Some(self.words.take(16)?.try_into().expect("16 bytes"));
                self.skip(16)?;
                self.out.flags = self.word()?;
            }
            47 => {
                // GETDEVICEINFO
                self.skip(4)?;
                self.words.opaque()?;
                self.bitmap()?;
            }
            50 => {
                // LAYOUTGET
                self.words.boolean()?;
                self.skip(16)?;
                for _ in 0..self.word()? {
                    self.skip(24)?;
                    self.words.opaque()?;
                }
            }
            68 => {
                // READ_PLUS: data and holes. They are not eligible; cases look at where they are.
                self.out.eof = self.words.boolean()?;
                for _ in 0..self.word()? {
                    match self.word()? {
                        0 => {
                            self.skip(8)?;
                            self.item()?;
                        }
                        1 => self.skip(16)?,
                        other => return Err(format!("content type {other}")),
                    }
                }
            }
            72 => {
                // GETXATTR
                let data = self.words.opaque()?.to_vec();
                let reduced = false;
                self.out.items.push(Item { data, reduced });
            }
            73 => self.skip(20)?, // SETXATTR
            74 => {
                // LISTXATTRS
                self.skip(8)?;
                for _ in 0..self.word()? {
                    self.name()?;
                }
                self.out.eof = self.words.boolean()?;
            }
            other => return Err(format!("no decoder for operation {other}")),
        }
        Ok(())
    }
}
