// SPDX-License-Identifier: GPL-2.0
//! Results of NFS procedures, decoded to the last byte.

use std::collections::VecDeque;

use crate::{frame::Words, rpc::Kind};

/// What a Write chunk holds after the reply: None if it was sent with no segments.
pub type Placed = VecDeque<Option<Vec<u8>>>;

/// One READ-class result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    pub data: Vec<u8>,
    pub reduced: bool,
}

/// What is of interest in any results.
#[derive(Clone, Debug, Default)]
pub struct Results {
    pub status: u32,
    pub count: u32,
    pub eof: bool,
    pub handle: Vec<u8>,
    pub names: Vec<String>,
    pub items: Vec<Item>,
    /// NFSv4: operation and status of each.
    pub ops: Vec<(u32, u32)>,
    pub sequence: Option<[u8; 16]>,
    pub client: u64,
    pub number: u32,
    pub flags: u32,
}

struct Decoder<'a, 'b> {
    words: &'b mut Words<'a>,
    placed: &'b mut Placed,
    out: Results,
}

/// Decode results of a kind; the stream has to end with them.
pub fn decode(kind: Kind, words: &mut Words<'_>, placed: &mut Placed) -> Result<Results, String> {
    let mut decoder = Decoder {
        words,
        placed,
        out: Results::default(),
    };
    decoder.results(kind)?;
    let out = decoder.out;
    words.end().map_err(|e| format!("after the results: {e}"))?;
    Ok(out)
}

impl<'a> Decoder<'a, '_> {
    fn word(&mut self) -> Result<u32, String> {
        self.words.word()
    }

    fn skip(&mut self, len: usize) -> Result<(), String> {
        self.words.take(len).map(drop)
    }

    fn attributes(&mut self) -> Result<(), String> {
        if self.words.boolean()? {
            self.skip(84)
        } else {
            Ok(())
        }
    }

    fn change(&mut self) -> Result<(), String> {
        if self.words.boolean()? {
            self.skip(24)?;
        }
        self.attributes()
    }

    fn handle(&mut self) -> Result<Vec<u8>, String> {
        Ok(self.words.opaque()?.to_vec())
    }

    fn name(&mut self) -> Result<(), String> {
        let name = String::from_utf8_lossy(self.words.opaque()?).into_owned();
        self.out.names.push(name);
        Ok(())
    }

    /// Eligible data: inline, or in the next Write chunk.
    fn item(&mut self) -> Result<(), String> {
        let len = self.words.word()? as usize;
        // What has no bytes may leave its chunk to the next item (RFC 8166, section
        // 4.3.2.2) or not (RFC 8267, section 6.4.1).
        let left = len == 0 && matches!(self.placed.front(), Some(Some(d)) if !d.is_empty());
        let chunk = if left { None } else { self.placed.pop_front() };
        let item = match chunk {
            Some(Some(data)) if data.len() == len && len > 0 => Item {
                data,
                reduced: true,
            },
            Some(Some(data)) if !data.is_empty() => {
                return Err(format!(
                    "{} bytes in a Write chunk, {len} said inline",
                    data.len()
                ));
            }
            chunk => {
                let data = self.words.take(len)?.to_vec();
                self.words.roundup(len)?;
                // Nothing to place: the chunk counts as used.
                Item {
                    data,
                    reduced: len == 0 && matches!(chunk, Some(Some(_))),
                }
            }
        };
        self.out.items.push(item);
        Ok(())
    }

    fn results(&mut self, kind: Kind) -> Result<(), String> {
        match kind {
            Kind::Null => return Ok(()),
            Kind::Unknown => return self.skip(self.words.rest.len()),
            Kind::Any => {
                self.placed.clear();
                return self.skip(self.words.rest.len());
            }
            Kind::Compound => return self.compound(),
            _ => {}
        }
        self.out.status = self.word()?;
        let good = self.out.status == 0;
        match kind {
            Kind::Getattr if good => self.skip(84)?,
            Kind::Lookup if good => {
                self.out.handle = self.handle()?;
                self.attributes()?;
                self.attributes()?;
            }
            Kind::Readlink if good => {
                self.attributes()?;
                self.item()?;
            }
            Kind::Read if good => {
                self.attributes()?;
                self.out.count = self.word()?;
                self.out.eof = self.words.boolean()?;
                self.item()?;
                if self.out.items[0].data.len() != self.out.count as usize {
                    return Err(format!(
                        "count {} but {} bytes",
                        self.out.count,
                        self.out.items[0].data.len()
                    ));
                }
            }
            Kind::Write if good => {
                self.change()?;
                self.out.count = self.word()?;
                self.skip(12)?;
            }
            Kind::Create if good => {
                if self.words.boolean()? {
                    self.out.handle = self.handle()?;
                }
                self.attributes()?;
                self.change()?;
            }
            Kind::Getacl if good => {
                self.attributes()?;
                let rest = self.words.rest.len();
                self.skip(rest)?;
            }
            Kind::Readdir | Kind::Readdirplus if good => {
                self.directory(kind == Kind::Readdirplus)?
            }
            Kind::Getattr => {}
            Kind::Lookup
            | Kind::Readlink
            | Kind::Read
            | Kind::Readdir
            | Kind::Readdirplus
            | Kind::Getacl
            | Kind::Setacl => {
                self.attributes()?;
            }
            _ => self.change()?,
        }
        Ok(())
    }

    fn directory(&mut self, plus: bool) -> Result<(), String> {
        self.attributes()?;
        self.skip(8)?;
        while self.words.boolean()? {
            self.skip(8)?;
            self.name()?;
            self.skip(8)?;
            if plus {
                self.attributes()?;
                if self.words.boolean()? {
                    self.handle()?;
                }
            }
        }
        self.out.eof = self.words.boolean()?;
        Ok(())
    }

    fn compound(&mut self) -> Result<(), String> {
        self.out.status = self.word()?;
        self.words.opaque()?;
        for _ in 0..self.word()? {
            let (op, status) = (self.word()?, self.word()?);
            self.out.ops.push((op, status));
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
        Ok(())
    }

    fn bitmap(&mut self) -> Result<(), String> {
        let words = self.word()? as usize;
        self.skip(words * 4)
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
                self.bitmap()?;
                self.words.opaque()?;
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
                self.skip(12)?;
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
