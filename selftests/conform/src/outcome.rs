// SPDX-License-Identifier: GPL-2.0
//! How a server may react.

use std::fmt;

/// What a case saw.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A reply with accept_stat SUCCESS.
    Ok,
    /// Any other RPC reply.
    RpcError,
    /// No answer, and the connection lives.
    Drop,
    /// RDMA_ERROR, ERR_VERS.
    Versions,
    /// RDMA_ERROR, ERR_CHUNK.
    Chunk,
    /// The server closed the connection.
    Close,
    /// The server did not accept the connection.
    Refuse,
    /// Our queue pair is in error and the server does not close: only where the fault is ours.
    Broken,
    /// Silence, and a probe on the same connection is not answered.
    Hang,
    /// The server lacks what the case is about: neither right nor wrong.
    Skip,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::RpcError => "RPCERR",
            Self::Drop => "DROP",
            Self::Versions => "EV",
            Self::Chunk => "EC",
            Self::Close => "CLOSE",
            Self::Refuse => "REFUSE",
            Self::Broken => "BROKEN",
            Self::Hang => "HANG",
            Self::Skip => "SKIP",
        }
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// By its name, as profiles have it.
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of outcomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Accept(u16);

pub const OK: Accept = Accept(1 << Outcome::Ok as u16);
pub const RPCERR: Accept = Accept(1 << Outcome::RpcError as u16);
pub const DROP: Accept = Accept(1 << Outcome::Drop as u16);
pub const EV: Accept = Accept(1 << Outcome::Versions as u16);
pub const EC: Accept = Accept(1 << Outcome::Chunk as u16);
pub const CLOSE: Accept = Accept(1 << Outcome::Close as u16);
pub const REFUSE: Accept = Accept(1 << Outcome::Refuse as u16);
pub const BROKEN: Accept = Accept(1 << Outcome::Broken as u16);

/// Those that can be right.
const ALL: [Outcome; 8] = [
    Outcome::Ok,
    Outcome::RpcError,
    Outcome::Drop,
    Outcome::Versions,
    Outcome::Chunk,
    Outcome::Close,
    Outcome::Refuse,
    Outcome::Broken,
];

impl Accept {
    pub fn has(self, outcome: Outcome) -> bool {
        outcome == Outcome::Skip || self.0 & outcome.bit() != 0
    }

    pub fn contains(self, other: Self) -> bool {
        self.0 | other.0 == self.0
    }

    /// By the names of outcomes; None if one has none, or there are none.
    pub fn of(names: &[&str]) -> Option<Self> {
        let mut all = Self(0);
        for name in names {
            let known = ALL.into_iter().find(|o| o.name() == *name)?;
            all.0 |= known.bit();
        }
        (all.0 != 0).then_some(all)
    }
}

impl std::ops::BitOr for Accept {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Accept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = ALL
            .into_iter()
            .filter(|o| self.has(*o))
            .map(Outcome::name)
            .collect();
        f.write_str(&names.join("|"))
    }
}
