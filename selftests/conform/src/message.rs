// SPDX-License-Identifier: GPL-2.0
//! A message to send, with what is needed to explain its reply.

use crate::{
    frame::{words, Header, Lists, MSG, NOMSG},
    gss::Guard,
    rpc::{Call, Kind},
};

#[derive(Clone, Debug)]
pub struct Message {
    pub bytes: Vec<u8>,
    pub xid: u32,
    /// The version that an error has to repeat.
    pub vers: u32,
    /// The lists that a reply has to echo.
    pub lists: Lists,
    pub kind: Kind,
    /// How RPCSEC_GSS protects the reply.
    pub guard: Option<Guard>,
}

impl Message {
    /// The call inline, with these lists.
    pub fn inline(call: &Call, lists: Lists) -> Self {
        Self::new(Header::new(call.xid, MSG, lists), &call.encode(), call.kind)
    }

    /// RDMA_NOMSG with these lists; the Payload stream is in one of them.
    pub fn long(call: &Call, lists: Lists) -> Self {
        Self::new(Header::new(call.xid, NOMSG, lists), &[], call.kind)
    }

    pub fn new(header: Header, payload: &[u8], kind: Kind) -> Self {
        Self {
            bytes: header.message(payload),
            xid: header.xid,
            vers: header.vers,
            lists: header.lists,
            kind,
            guard: None,
        }
    }

    pub fn guarded(self, guard: Guard) -> Self {
        Self {
            guard: Some(guard),
            ..self
        }
    }

    /// Any bytes at all.
    pub fn raw(bytes: Vec<u8>) -> Self {
        let word = |at: usize| {
            bytes
                .get(at..at + 4)
                .map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
        };
        Self {
            xid: word(0),
            vers: word(4),
            lists: Lists::default(),
            kind: Kind::Null,
            guard: None,
            bytes,
        }
    }

    /// Raw words after the fixed header.
    pub fn words(xid: u32, vers: u32, proc: u32, rest: &[u32]) -> Self {
        let mut all = vec![xid, vers, crate::frame::CREDITS, proc];
        all.extend_from_slice(rest);
        Self::raw(words(&all))
    }

    /// Append bytes.
    pub fn and(mut self, more: &[u8]) -> Self {
        self.bytes.extend_from_slice(more);
        self
    }

    pub fn cut(mut self, len: usize) -> Self {
        self.bytes.truncate(len);
        self
    }

    /// Replace the word at this offset.
    pub fn poke(mut self, at: usize, word: u32) -> Self {
        self.bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
        if at == 4 {
            self.vers = word;
        }
        self
    }
}
