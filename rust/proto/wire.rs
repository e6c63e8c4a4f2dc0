// SPDX-License-Identifier: GPL-2.0

//! XDR words: a reader and a writer over byte slices that cannot run past their end.
//!
//! Everything in a transport header is a multiple of four bytes in big-endian order (RFC 4506), so
//! these two types are all the codec the module needs.

/// Bytes that fill `len` up to the next XDR unit.
pub(super) const fn pad(len: u32) -> u32 {
    len.wrapping_neg() & 3
}

/// `len` rounded up to the next XDR unit; wide, so it cannot overflow.
pub(super) fn roundup4(len: u32) -> u64 {
    u64::from(len).saturating_add(u64::from(pad(len)))
}

/// Reads words from the front of a slice.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `N` bytes as an array, or [`None`], then nothing was consumed.
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    /// The next word, or [`None`] if fewer than four bytes are left.
    pub(super) fn word(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next two words as one 64-bit integer, high word first.
    pub(super) fn hyper(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// The next `len` bytes, or [`None`], then nothing was consumed.
    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }
}

/// Writes words to the front of a slice.
pub(super) struct Writer<'a> {
    rest: &'a mut [u8],
}

impl<'a> Writer<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Appends `bytes`, or returns [`None`] if they do not fit.
    pub(super) fn array<const N: usize>(&mut self, bytes: [u8; N]) -> Option<()> {
        let rest = core::mem::take(&mut self.rest);
        let (head, rest) = rest.split_first_chunk_mut::<N>()?;
        *head = bytes;
        self.rest = rest;
        Some(())
    }

    /// Appends one word.
    pub(super) fn word(&mut self, word: u32) -> Option<()> {
        self.array(word.to_be_bytes())
    }

    /// Appends one 64-bit integer, high word first.
    pub(super) fn hyper(&mut self, hyper: u64) -> Option<()> {
        self.array(hyper.to_be_bytes())
    }
}
