// SPDX-License-Identifier: GPL-2.0

//! A reply with the pages it is in, taken from the thread that made it.
//!
//! The thread goes on to its next call while a device still reads the reply.

use crate::{
    ffi,
    kern::{
        lendable::Lendable,
        page::{
            PageRange,
            SharedPage,
            PAGE_SIZE, //
        }, //
    },
    svc::xdr_buf::XdrBuf, //
};
use kernel::prelude::*;

/// A reply and its pages.
///
/// # Invariants
///
/// All memory that `buf` names is in pages of `list`, and `buf.pages` points into `list`.
pub(crate) struct ReplyPages {
    buf: ffi::xdr_buf,
    list: KVec<SharedPage>,
}

// SAFETY: `buf` names memory of pages that the value owns.
unsafe impl Send for ReplyPages {}

impl ReplyPages {
    /// Takes over the pages of the reply `buf`, which are `list`.
    ///
    /// # Errors
    ///
    /// `EINVAL` when memory of the reply is in none of the pages.
    ///
    /// # Safety
    ///
    /// `buf` names valid memory, and its page array is `array` entries into that which `list` was
    /// taken from.
    pub(super) unsafe fn new(
        mut buf: ffi::xdr_buf,
        mut list: KVec<SharedPage>,
        array: usize,
    ) -> Result<Self> {
        let [head] = &buf.head;
        let [tail] = &buf.tail;
        for part in [head, tail] {
            if part.iov_len > 0 && !Self::holds(&list, part) {
                return Err(EINVAL);
            }
        }
        if buf.page_len > 0 {
            // CAST: `u32` to `usize` is lossless on 64-bit.
            let end = (buf.page_base as usize).checked_add(buf.page_len as usize);
            let pages = end.ok_or(EINVAL)?.div_ceil(PAGE_SIZE);
            let pages = array.checked_add(pages).ok_or(EINVAL)?;
            let entries = list.get_mut(array..pages).ok_or(EINVAL)?;
            // A `SharedPage` is a page pointer.
            buf.pages = entries.as_mut_ptr().cast();
        }
        // INVARIANT: Checked above; the list's memory does not move.
        Ok(Self { buf, list })
    }

    /// Whether a head or tail is in one of the pages.
    fn holds(list: &[SharedPage], part: &ffi::kvec) -> bool {
        // CAST: Addresses, to be compared.
        let start = part.iov_base as usize;
        list.iter().any(|page| {
            let Some(at) = start.checked_sub(page.address() as usize) else {
                return false;
            };
            at.checked_add(part.iov_len)
                .is_some_and(|end| end <= PAGE_SIZE)
        })
    }

    /// The pages.
    pub(crate) fn into_list(self) -> KVec<SharedPage> {
        self.list
    }
}

// SAFETY: The memory is in pages that the value owns, by the type invariant.
unsafe impl Lendable for ReplyPages {
    fn range(&self, at: usize, max: usize) -> Option<PageRange<'_>> {
        // SAFETY: The buffer's memory is valid as long as the value exists, by the type invariant.
        unsafe { XdrBuf::from_raw(&self.buf) }.piece_at(at, max)
    }
}
