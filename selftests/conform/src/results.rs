// SPDX-License-Identifier: GPL-2.0
//! Results of NFS procedures, decoded to the last byte.

mod compound;

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

/// Of an object, as NFSv3 gives them (RFC 1813, section 2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    pub kind: u32,
    pub size: u64,
    pub fsid: u64,
    pub fileid: u64,
}

impl Attributes {
    const DIRECTORY: u32 = 2;

    /// Whether the same object has others, as nothing but a directory's size may change.
    pub fn differ(&self, other: &Self) -> bool {
        let size = if self.kind == Self::DIRECTORY {
            self.size
        } else {
            other.size
        };
        *self != Self { size, ..*other }
    }
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
    pub attributes: Vec<Attributes>,
    /// FSINFO: the longest READ and WRITE.
    pub sizes: (u32, u32),
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

    /// They may be there.
    fn attributes(&mut self) -> Result<(), String> {
        if self.words.boolean()? {
            self.fattr()
        } else {
            Ok(())
        }
    }

    fn fattr(&mut self) -> Result<(), String> {
        let kind = self.word()?;
        let mode = self.word()?;
        if !(1..=7).contains(&kind) || mode > 0o177_777 {
            return Err(format!("attributes of type {kind}, mode {mode:#o}"));
        }
        // Links, user, group.
        self.skip(12)?;
        let size = self.words.long()?;
        // Bytes used, device.
        self.skip(16)?;
        let (fsid, fileid) = (self.words.long()?, self.words.long()?);
        (0..3).try_for_each(|_| self.time())?;
        self.out.attributes.push(Attributes {
            kind,
            size,
            fsid,
            fileid,
        });
        Ok(())
    }

    fn time(&mut self) -> Result<(), String> {
        self.word()?;
        let nanoseconds = self.word()?;
        if nanoseconds < 1_000_000_000 {
            Ok(())
        } else {
            Err(format!("a time with {nanoseconds} nanoseconds"))
        }
    }

    fn change(&mut self) -> Result<(), String> {
        if self.words.boolean()? {
            self.skip(8)?;
            (0..2).try_for_each(|_| self.time())?;
        }
        self.attributes()
    }

    /// How a WRITE was done, and the verifier.
    fn written(&mut self) -> Result<(), String> {
        let committed = self.word()?;
        if committed > 2 {
            return Err(format!("data committed in way {committed}"));
        }
        self.skip(8)
    }

    /// One of the two lists of GETACL: how many there are, and those that were asked for.
    fn entries(&mut self) -> Result<(), String> {
        let (all, given) = (self.word()?, self.word()?);
        if given != all && given != 0 {
            return Err(format!("{given} of {all} entries"));
        }
        for _ in 0..given {
            // Whom it is for, and what is permitted.
            self.skip(8)?;
            let permitted = self.word()?;
            if permitted > 7 {
                return Err(format!("permissions {permitted:#x}"));
            }
        }
        Ok(())
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
            Kind::Compound(ops) => return self.compound(&ops),
            Kind::Context => {
                self.words.opaque()?;
                self.skip(12)?;
                return self.words.opaque().map(drop);
            }
            _ => {}
        }
        self.out.status = self.word()?;
        let good = self.out.status == 0;
        match kind {
            Kind::Getattr if good => self.fattr()?,
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
                self.written()?;
            }
            Kind::OddWrite if good => {
                self.change()?;
                self.out.count = self.word()?;
                self.skip(12)?;
            }
            Kind::Create | Kind::Other(11) if good => {
                if self.words.boolean()? {
                    self.out.handle = self.handle()?;
                }
                self.attributes()?;
                self.change()?;
            }
            Kind::Getacl if good => {
                self.attributes()?;
                let mask = self.word()?;
                if mask > 0xf {
                    return Err(format!("mask {mask:#x}"));
                }
                self.entries()?;
                self.entries()?;
            }
            Kind::Access if good => {
                self.attributes()?;
                let granted = self.word()?;
                if granted > 0x3f {
                    return Err(format!("access {granted:#x}"));
                }
            }
            Kind::Fsinfo if good => {
                self.attributes()?;
                let read = self.word()?;
                self.skip(8)?;
                self.out.sizes = (read, self.word()?);
                // Preferences, the largest file, the precision of times, properties.
                self.skip(12 + 8 + 8 + 4)?;
            }
            Kind::Other(number) => self.other(number, good)?,
            Kind::Readdir | Kind::Readdirplus if good => {
                self.directory(kind == Kind::Readdirplus)?
            }
            Kind::Getattr => {}
            Kind::Lookup
            | Kind::Readlink
            | Kind::Read
            | Kind::Readdir
            | Kind::Readdirplus
            | Kind::Access
            | Kind::Fsinfo
            | Kind::Getacl
            | Kind::Setacl => {
                self.attributes()?;
            }
            _ => self.change()?,
        }
        Ok(())
    }

    /// MKNOD is like CREATE.
    fn other(&mut self, number: u32, good: bool) -> Result<(), String> {
        let more = match number {
            14 => {
                // RENAME
                self.change()?;
                return self.change();
            }
            15 => {
                // LINK
                self.attributes()?;
                return self.change();
            }
            // FSSTAT, PATHCONF
            18 => 52,
            20 => 24,
            // COMMIT
            21 => 8,
            // SETATTR, MKNOD that failed
            2 | 11 => 0,
            _ => return Err(format!("no decoder for procedure {number}")),
        };
        if matches!(number, 18 | 20) {
            self.attributes()?;
        } else {
            self.change()?;
        }
        self.skip(if good { more } else { 0 })
    }

    fn directory(&mut self, plus: bool) -> Result<(), String> {
        self.attributes()?;
        self.skip(8)?;
        while self.words.boolean()? {
            let fileid = self.words.long()?;
            self.name()?;
            self.skip(8)?;
            if plus {
                let before = self.out.attributes.len();
                self.attributes()?;
                if let Some(of) = self.out.attributes.get(before) {
                    if of.fileid != fileid {
                        return Err(format!("file {fileid} with attributes of {}", of.fileid));
                    }
                }
                if self.words.boolean()? {
                    self.handle()?;
                }
            }
        }
        self.out.eof = self.words.boolean()?;
        Ok(())
    }
}
