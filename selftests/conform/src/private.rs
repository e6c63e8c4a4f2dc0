// SPDX-License-Identifier: GPL-2.0
//! Connection manager private data (RFC 8797).

const MAGIC: [u8; 4] = [0xf6, 0xab, 0x0e, 0x18];

/// The settings that one side announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub flags: u8,
    pub send: u8,
    pub receive: u8,
}

impl Settings {
    pub fn encode(self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend([1, self.flags, self.send, self.receive]);
        out
    }

    /// As a peer reads it: anywhere in the data.
    pub fn find(data: &[u8]) -> Option<Self> {
        data.windows(8)
            .find(|w| w[..4] == MAGIC)
            .filter(|w| w[4] == 1)
            .map(|w| Self {
                flags: w[5],
                send: w[6],
                receive: w[7],
            })
    }

    /// The longest Send from a peer that says `theirs` to one that says `mine`.
    pub fn threshold(mine: &[u8], theirs: &[u8]) -> usize {
        let mine = Self::find(mine).map_or(1024, |s| Self::bytes(s.receive));
        mine.min(Self::find(theirs).map_or(1024, |s| Self::bytes(s.send)))
    }

    /// Whether the peer that says this takes Sends with Invalidate.
    pub fn invalidates(data: &[u8]) -> bool {
        Self::find(data).is_some_and(|s| s.flags & 1 != 0)
    }

    /// Bytes that a size code stands for.
    pub fn bytes(code: u8) -> usize {
        (usize::from(code) + 1) << 10
    }
}
