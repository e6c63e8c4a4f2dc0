// SPDX-License-Identifier: GPL-2.0

//! A reply in memory: a head, pages, a tail.
//!
//! The pages can be page-cache pages of an exported file, which others may write at the same time.
//! So nothing here makes a slice of them: bytes are copied out, or the memory is named for a
//! device.
//!
//! C header: [`include/linux/sunrpc/xdr.h`](srctree/include/linux/sunrpc/xdr.h)

use crate::{
    ffi,
    kern::page::{
        PageRange,
        PAGE_SIZE, //
    }, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::prelude::*;

/// A borrowed `xdr_buf`.
///
/// # Invariants
///
/// The buffer and all memory it names are valid for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct XdrBuf<'a> {
    buf: NonNull<ffi::xdr_buf>,
    _lifetime: PhantomData<&'a ffi::xdr_buf>,
}

impl<'a> XdrBuf<'a> {
    /// # Safety
    ///
    /// `buf` and all memory it names are valid for all of `'a`.
    pub(crate) unsafe fn from_raw(buf: *const ffi::xdr_buf) -> Self {
        // INVARIANT: By this function's contract.
        Self {
            // SAFETY: Valid, so not null.
            buf: unsafe { NonNull::new_unchecked(buf.cast_mut()) },
            _lifetime: PhantomData,
        }
    }

    fn get(&self) -> &ffi::xdr_buf {
        // SAFETY: Valid by the type invariant.
        unsafe { self.buf.as_ref() }
    }

    /// Length of the stream in bytes.
    pub(crate) fn len(&self) -> u32 {
        self.get().len
    }

    /// The memory of `len` bytes from `offset` of the stream, piece by piece. Fewer bytes come out
    /// if the stream is shorter.
    fn pieces(&self, offset: usize, len: usize) -> Pieces<'a> {
        Pieces {
            buf: *self,
            offset,
            left: len,
        }
    }

    /// Copies bytes from `offset` of the stream on, as many as `into` has.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` if the stream is shorter.
    pub(crate) fn copy(&self, offset: usize, into: &mut [u8]) -> Result {
        let mut rest = into;
        for piece in self.pieces(offset, rest.len()) {
            let (to, after) = rest.split_at_mut_checked(piece.len()).ok_or(EMSGSIZE)?;
            // SAFETY: The piece is valid memory by the invariant of `PageRange`, as long as `to`,
            // and another memory than the transport's buffer.
            unsafe {
                core::ptr::copy_nonoverlapping(piece.address(), to.as_mut_ptr(), piece.len())
            };
            rest = after;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(EMSGSIZE)
        }
    }

    /// The word at `offset` of the stream.
    pub(crate) fn word(&self, offset: usize) -> Option<u32> {
        let mut bytes = [0u8; 4];
        self.copy(offset, &mut bytes).ok()?;
        Some(u32::from_be_bytes(bytes))
    }

    /// The piece at `offset`: from there to the end of its part of the buffer or of its page.
    pub(super) fn piece_at(&self, offset: usize, max: usize) -> Option<PageRange<'a>> {
        let buf = self.get();
        let kvec = |kvec: &ffi::kvec, offset: usize| {
            let len = kvec.iov_len.checked_sub(offset)?.min(max);
            let base = NonNull::new(kvec.iov_base.cast::<u8>())?;
            // SAFETY: `offset` is within the part, which is valid by the type invariant.
            let base = unsafe { base.add(offset) };
            // CAST: An address as an integer, for its offset in the page.
            let in_page = (base.as_ptr() as usize) % PAGE_SIZE;
            let len = len.min(PAGE_SIZE.saturating_sub(in_page));
            // SAFETY: Valid by the type invariant, within one page, and heads and tails are in
            // pages of the thread's or, for a callback, from `kmalloc`: in the linear mapping.
            (len > 0).then_some(unsafe { PageRange::from_address(base, len)? })
        };
        let [head] = &buf.head;
        let [tail] = &buf.tail;
        if offset < head.iov_len {
            return kvec(head, offset);
        }
        let offset = offset.checked_sub(head.iov_len)?;
        // CAST: `u32` to `usize` is lossless on 64-bit.
        let (page_len, page_base) = (buf.page_len as usize, buf.page_base as usize);
        if offset < page_len {
            let at = page_base.checked_add(offset)?;
            let in_page = at % PAGE_SIZE;
            let len = page_len
                .saturating_sub(offset)
                .min(PAGE_SIZE.saturating_sub(in_page))
                .min(max);
            if len == 0 {
                return None;
            }
            // SAFETY: The page array covers `page_base + page_len` bytes by the type invariant.
            let page = NonNull::new(unsafe { buf.pages.add(at / PAGE_SIZE).read() })?;
            // SAFETY: Valid by the type invariant, and within the page.
            return Some(unsafe { PageRange::from_page(page, in_page, len) });
        }
        kvec(tail, offset.checked_sub(page_len)?)
    }
}

/// Iterator over the memory of a part of a stream.
struct Pieces<'a> {
    buf: XdrBuf<'a>,
    offset: usize,
    left: usize,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = PageRange<'a>;

    fn next(&mut self) -> Option<PageRange<'a>> {
        if self.left == 0 {
            return None;
        }
        let piece = self.buf.piece_at(self.offset, self.left)?;
        self.offset = self.offset.checked_add(piece.len())?;
        self.left = self.left.saturating_sub(piece.len());
        Some(piece)
    }
}
