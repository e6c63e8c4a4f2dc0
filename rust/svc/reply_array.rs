// SPDX-License-Identifier: GPL-2.0

//! The pages of a thread's reply.
//!
//! Of the thread's array, `[rq_respages, rq_next_page)` is in use by the reply; sunrpc releases
//! what is still there and fills in what is missing. Some of these pages may be nfsd's, of files
//! that it exports. What is provably the thread's own stays with it, or is exchanged.

use crate::{
    ffi,
    kern::page::{
        PrivatePage,
        SharedPage,
        PAGE_SIZE, //
    },
    svc::{
        connection::Connection,
        reply_pages::ReplyPages,
        rqst::Rqst, //
    }, //
};
use core::ptr::{
    null_mut,
    NonNull, //
};
use kernel::prelude::*;

impl<C: Connection> Rqst<C> {
    /// The entries of the reply array that are in use.
    fn reply_slots(&mut self) -> &mut [*mut ffi::page] {
        let rqst = self.as_ptr();
        // SAFETY: The request is valid.
        let (first, next) = unsafe { ((*rqst).rq_respages, (*rqst).rq_next_page) };
        let bytes = (next as usize).saturating_sub(first as usize);
        let len = (bytes / size_of::<*mut ffi::page>()).min(self.maxpages());
        // SAFETY: The array has `rq_maxpages` entries and belongs to the thread.
        unsafe { core::slice::from_raw_parts_mut(first, len) }
    }

    /// Keeps those of the reply's pages with the thread that are provably its own; a page of an
    /// exported file would be written to by the next reply. sunrpc releases the others.
    pub(crate) fn keep_reply_pages(&mut self) {
        let slots = self.reply_slots();
        let mut others = slots.len();
        for at in (0..slots.len()).rev() {
            // SAFETY: Entries are null or valid pages.
            if slots.get(at).is_some_and(|page| unsafe { is_own(*page) }) {
                others = others.saturating_sub(1);
                slots.swap(at, others);
            }
        }
        self.give_up_reply_slots(others);
    }

    /// Leaves so many entries of the reply array to sunrpc, which releases what they have and fills
    /// them in again. The others have pages that are the thread's own.
    fn give_up_reply_slots(&mut self, n: usize) {
        let rqst = self.as_ptr();
        let n = n.min(self.maxpages());
        // SAFETY: The request belongs to the thread, and the array has at least `n` entries.
        let next = unsafe { (*rqst).rq_respages.add(n) };
        // SAFETY: The request belongs to the thread.
        unsafe { (*rqst).rq_next_page = next };
    }

    /// The reply array.
    fn reply_array(&self) -> &[*mut ffi::page] {
        // SAFETY: The request is valid.
        let first = unsafe { (*self.as_ptr()).rq_respages };
        // SAFETY: The array has `rq_maxpages` entries and belongs to the thread.
        unsafe { core::slice::from_raw_parts(first, self.maxpages()) }
    }

    /// Entries of the reply array up to the last that the reply uses, and the first of those that
    /// are its page array.
    ///
    /// `rq_next_page` alone does not tell: nfsd leaves it behind where it encodes ACLs, and in some
    /// direct reads.
    ///
    /// # Errors
    ///
    /// `EINVAL` when a page of the reply is not in the array.
    fn reply_extent(&self) -> Result<(usize, usize)> {
        let rqst = self.as_ptr();
        // SAFETY: The request is valid.
        let (first, next) = unsafe { ((*rqst).rq_respages, (*rqst).rq_next_page) };
        let bytes = (next as usize).saturating_sub(first as usize);
        let used = (bytes / size_of::<*mut ffi::page>()).min(self.maxpages());
        // SAFETY: The reply belongs to the thread.
        let buf = unsafe { &(*rqst).rq_res };
        if buf.page_len == 0 {
            return Ok((used, 0));
        }
        // CAST: `u32` to `usize` is lossless on 64-bit.
        let end = (buf.page_base as usize).checked_add(buf.page_len as usize);
        let count = end.ok_or(EINVAL)?.div_ceil(PAGE_SIZE);
        // SAFETY: The reply's page array covers its bytes.
        let pages = unsafe { core::slice::from_raw_parts(buf.pages, count) };
        let slots = self.reply_array();
        let last = slots.len().checked_sub(count).ok_or(EINVAL)?;
        let array = (0..=last)
            .find(|at| slots.get(*at..).and_then(|rest| rest.get(..count)) == Some(pages))
            .ok_or(EINVAL)?;
        Ok((used.max(array.saturating_add(count)), array))
    }

    /// Number of pages the reply uses, and how many of them are provably the thread's own.
    ///
    /// # Errors
    ///
    /// `EINVAL` when a page of the reply is not the thread's.
    pub(crate) fn reply_page_counts(&self) -> Result<(usize, usize)> {
        let (used, _) = self.reply_extent()?;
        let own = self.reply_array().iter().take(used);
        // SAFETY: Entries are null or valid pages.
        let own = own.filter(|page| unsafe { is_own(**page) });
        Ok((used, own.count()))
    }

    /// Takes the reply away with its pages, which go to `list`. For as many as were the thread's own
    /// pages from `spare` take their places, if there are enough; sunrpc allocates the others.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if the list has no room or the thread lacks a page, and nothing has been taken then;
    /// `EINVAL` if a part of the reply is in none of the thread's pages.
    pub(crate) fn take_reply(
        &mut self,
        mut list: KVec<SharedPage>,
        spare: &mut KVec<PrivatePage>,
    ) -> Result<ReplyPages> {
        list.clear();
        // SAFETY: The reply belongs to the thread.
        let buf = unsafe { (&raw const (*self.as_ptr()).rq_res).read() };
        let (used, array) = self.reply_extent()?;
        // All entries that become empty must be filled in again.
        self.give_up_reply_slots(used);
        let slots = self.reply_slots();
        if list.capacity() < slots.len() || slots.iter().any(|slot| slot.is_null()) {
            return Err(ENOSPC);
        }
        let mut own = 0usize;
        for slot in slots.iter_mut() {
            let Some(page) = NonNull::new(core::mem::replace(slot, null_mut())) else {
                continue;
            };
            // SAFETY: The array owned one reference on the page, which it no longer has.
            let page = unsafe { SharedPage::from_raw(page) };
            own = own.saturating_add(usize::from(page.is_private()));
            list.push_within_capacity(page).map_err(|_| ENOSPC)?;
        }
        let mut empty = slots.len();
        for slot in slots.iter_mut().rev().take(own) {
            let Some(page) = spare.pop() else {
                break;
            };
            *slot = page.into_shared().into_raw().as_ptr();
            empty = empty.saturating_sub(1);
        }
        self.give_up_reply_slots(empty);
        // SAFETY: The thread's reply was valid, and its pages are those from entry `array` on.
        unsafe { ReplyPages::new(buf, list, array) }
    }
}

/// Whether there is a page that nobody else can reach.
///
/// # Safety
///
/// `page` is null or valid.
unsafe fn is_own(page: *mut ffi::page) -> bool {
    // SAFETY: By the function's contract.
    !page.is_null() && unsafe { ffi::svcrs_page_private(page) }
}
