// SPDX-License-Identifier: GPL-2.0
//! A message in words, as far as it can be read. Nothing in it is believed: where it breaks, that
//! place is named and the rest is shown as it is.

#[cfg(test)]
mod tests;

use crate::{
    frame::{hex, Words, ERROR, MSG, MSGP},
    rpc::{MOUNT, NFS, NFSACL, PORTMAP},
};

/// Bytes of a rest that are shown.
const SHOWN: usize = 256;

const DONE: u32 = 3;
const CALLBACK: u32 = 0x4000_0000;

const NFS3: [&str; 22] = [
    "NULL",
    "GETATTR",
    "SETATTR",
    "LOOKUP",
    "ACCESS",
    "READLINK",
    "READ",
    "WRITE",
    "CREATE",
    "MKDIR",
    "SYMLINK",
    "MKNOD",
    "REMOVE",
    "RMDIR",
    "RENAME",
    "LINK",
    "READDIR",
    "READDIRPLUS",
    "FSSTAT",
    "FSINFO",
    "PATHCONF",
    "COMMIT",
];

struct Reader<'a> {
    words: Words<'a>,
    len: usize,
    /// Bytes behind these that there were, and are not here.
    beyond: usize,
    lines: Vec<String>,
    /// The line that is not at its end yet.
    line: Vec<String>,
}

/// Transport header and RPC header.
pub fn message(bytes: &[u8]) -> Vec<String> {
    Reader::new(bytes, 0).read(Reader::transport)
}

/// The RPC header at the beginning of a Payload stream of `len` bytes, of which these are known.
pub fn stream(bytes: &[u8], len: usize) -> Vec<String> {
    Reader::new(bytes, len.saturating_sub(bytes.len())).read(Reader::rpc)
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], beyond: usize) -> Self {
        Self {
            words: Words::new(bytes),
            len: bytes.len(),
            beyond,
            lines: Vec::new(),
            line: Vec::new(),
        }
    }

    fn read(mut self, what: fn(&mut Self) -> Result<(), String>) -> Vec<String> {
        let read = what(&mut self);
        self.flush();
        if let Err(why) = read {
            let at = self.len - self.words.rest.len();
            self.lines.push(format!("breaks at byte {at}: {why}"));
            if self.beyond > 0 {
                let more = self.beyond;
                self.lines.push(format!("{more} bytes more are not here"));
            }
            self.rest("rest");
        }
        self.lines
    }

    /// Add to the line.
    fn put(&mut self, text: impl Into<String>) {
        self.line.push(text.into());
    }

    fn flush(&mut self) {
        if !self.line.is_empty() {
            self.lines.push(self.line.join(", "));
            self.line.clear();
        }
    }

    fn rest(&mut self, name: &str) {
        let rest = self.words.rest;
        if !rest.is_empty() {
            let more = if rest.len() > SHOWN { " ..." } else { "" };
            let shown = hex(&rest[..rest.len().min(SHOWN)]);
            self.lines
                .push(format!("{name}, {} bytes: {shown}{more}", rest.len()));
        }
    }

    /// The next word, if it may be what it is; otherwise it stays.
    fn word_if(&mut self, name: &str, may_be: impl Fn(u32) -> bool) -> Result<u32, String> {
        let mut ahead = self.words.clone();
        let word = ahead.word().map_err(|e| format!("{name}: {e}"))?;
        if !may_be(word) {
            return Err(format!("{name}: {word:#x}"));
        }
        self.words = ahead;
        Ok(word)
    }

    fn word(&mut self, name: &str) -> Result<u32, String> {
        self.word_if(name, |_| true)
    }

    fn boolean(&mut self, name: &str) -> Result<bool, String> {
        Ok(self.word_if(name, |word| word <= 1)? == 1)
    }

    fn transport(&mut self) -> Result<(), String> {
        let xid = self.word("XID")?;
        self.put(format!("XID {xid:#010x}"));
        let version = self.word("version")?;
        self.put(match version {
            1 => "version 1".into(),
            other => format!("version {other} (read as if it were 1)"),
        });
        let credits = self.word("credits")?;
        self.put(format!("credits {credits}"));
        let procedure = self.word_if("procedure", |word| word <= ERROR)?;
        let names = ["MSG", "NOMSG", "MSGP", "DONE", "ERROR"];
        self.put(format!("RDMA_{}", names[procedure as usize]));
        self.flush();
        match procedure {
            ERROR => self.error()?,
            DONE => {}
            _ => {
                if procedure == MSGP {
                    let align = self.word("alignment")?;
                    self.put(format!("alignment {align}"));
                    let threshold = self.word("threshold")?;
                    self.put(format!("threshold {threshold}"));
                    self.flush();
                }
                self.lists()?;
            }
        }
        self.flush();
        if matches!(procedure, MSG | MSGP) {
            return self.rpc();
        }
        self.rest("behind the header");
        Ok(())
    }

    fn error(&mut self) -> Result<(), String> {
        let error = self.word_if("error", |word| word == 1 || word == 2)?;
        if error == 2 {
            self.put("ERR_CHUNK");
            return Ok(());
        }
        self.put("ERR_VERS");
        let low = self.word("lowest version")?;
        self.put(format!("lowest version {low}"));
        let high = self.word("highest version")?;
        self.put(format!("highest version {high}"));
        Ok(())
    }

    fn lists(&mut self) -> Result<(), String> {
        let mut empty = true;
        while self.boolean("discriminator in the Read list")? {
            empty = false;
            let position = self.word("position")?;
            self.segment(&format!("Read list: position {position}"))?;
        }
        if empty {
            self.put("Read list empty");
        }
        let mut number = 0;
        while self.boolean("discriminator in the Write list")? {
            self.chunk(&format!("Write chunk {number}"))?;
            number += 1;
        }
        if number == 0 {
            self.put("Write list empty");
        }
        if self.boolean("discriminator of the Reply chunk")? {
            self.chunk("Reply chunk")?;
        } else {
            self.put("no Reply chunk");
        }
        Ok(())
    }

    fn chunk(&mut self, name: &str) -> Result<(), String> {
        self.flush();
        let count = self.word("count of segments")?;
        self.put(format!("{name}: {count} segments"));
        self.flush();
        // As many as there are: the count may be any.
        (0..count).try_for_each(|i| self.segment(&format!("  segment {i}:")))
    }

    fn segment(&mut self, name: &str) -> Result<(), String> {
        self.flush();
        let handle = self.word("handle")?;
        let separator = if name.ends_with(':') { "" } else { "," };
        self.put(format!("{name}{separator} handle {handle:#x}"));
        let length = self.word("length")?;
        self.put(format!("length {length}"));
        let mut ahead = self.words.clone();
        let offset = ahead.long().map_err(|e| format!("offset: {e}"))?;
        self.words = ahead;
        self.put(format!("offset {offset:#x}"));
        self.flush();
        Ok(())
    }

    fn rpc(&mut self) -> Result<(), String> {
        let xid = self.word("XID of the RPC message")?;
        self.put(format!("RPC XID {xid:#010x}"));
        match self.word_if("call or reply", |word| word <= 1)? {
            0 => self.call()?,
            _ => self.reply()?,
        }
        self.flush();
        Ok(())
    }

    fn call(&mut self) -> Result<(), String> {
        self.put("call");
        let version = self.word("RPC version")?;
        if version != 2 {
            self.put(format!("RPC version {version}"));
        }
        let program = self.word("program")?;
        self.put(match program {
            NFS => "NFS".into(),
            NFSACL => "NFSACL".into(),
            MOUNT => "MOUNT".into(),
            PORTMAP => "rpcbind".into(),
            CALLBACK => "NFS callback".into(),
            other => format!("program {other}"),
        });
        let version = self.word("version of the program")?;
        self.put(format!("version {version}"));
        let procedure = self.word("procedure of the program")?;
        let name = match (program, version, procedure) {
            (NFS, 3, _) => NFS3.get(procedure as usize).copied(),
            (NFS | CALLBACK, 4, 1) | (CALLBACK, 1, 1) => Some("COMPOUND"),
            (_, _, 0) => Some("NULL"),
            _ => None,
        };
        let known = name.map_or(String::new(), |name| format!(" ({name})"));
        self.put(format!("procedure {procedure}{known}"));
        self.auth("credential")?;
        self.auth("verifier")?;
        self.content("arguments");
        Ok(())
    }

    fn reply(&mut self) -> Result<(), String> {
        self.put("reply");
        if self.word_if("accepted or denied", |word| word <= 1)? == 1 {
            self.put("denied");
            if self.word_if("reason to deny", |word| word <= 1)? == 1 {
                let why = self.word("reason of AUTH_ERROR")?;
                self.put(format!("AUTH_ERROR {why}"));
            } else {
                self.put("RPC_MISMATCH");
                self.versions()?;
            }
        } else {
            self.put("accepted");
            self.auth("verifier")?;
            let names = [
                "SUCCESS",
                "PROG_UNAVAIL",
                "PROG_MISMATCH",
                "PROC_UNAVAIL",
                "GARBAGE_ARGS",
                "SYSTEM_ERR",
            ];
            let status = self.word_if("accept_stat", |word| (word as usize) < names.len())?;
            self.put(names[status as usize]);
            if status == 2 {
                self.versions()?;
            }
        }
        self.content("results");
        Ok(())
    }

    fn versions(&mut self) -> Result<(), String> {
        let (low, high) = (self.word("lowest version")?, self.word("highest version")?);
        self.put(format!("versions {low} to {high}"));
        Ok(())
    }

    /// A flavor and its body.
    fn auth(&mut self, name: &str) -> Result<(), String> {
        let flavor = self.word(&format!("flavor of the {name}"))?;
        let flavor = match flavor {
            0 => "AUTH_NONE".into(),
            1 => "AUTH_SYS".into(),
            6 => "RPCSEC_GSS".into(),
            7 => "AUTH_TLS".into(),
            other => format!("of flavor {other}"),
        };
        let mut ahead = self.words.clone();
        let body = ahead.word().and_then(|len| {
            let padded = (len as usize)
                .checked_next_multiple_of(4)
                .unwrap_or(usize::MAX);
            ahead.take(padded)?;
            Ok(len)
        });
        let len = body.map_err(|e| format!("body of the {name}, {flavor}: {e}"))?;
        self.words = ahead;
        self.put(match len {
            0 => format!("{name} {flavor}"),
            len => format!("{name} {flavor} of {len} bytes"),
        });
        Ok(())
    }

    /// What is not taken apart.
    fn content(&mut self, name: &str) {
        let len = self.words.rest.len() + self.beyond;
        self.put(format!("{len} bytes of {name}"));
    }
}
