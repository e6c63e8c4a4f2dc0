// SPDX-License-Identifier: GPL-2.0

//! Pages by who may touch them.
//!
//! [`SharedPage`] is one reference on a page that others may hold as well: a reply page can be a
//! page-cache page of an exported file. [`PrivatePage`] is a page nobody else can reach, so its
//! bytes may be read and written as slices. `kernel::page::Page` serves neither: it frees with
//! `__free_pages` whatever the reference count says.
//!
//! C header: [`include/linux/mm.h`](srctree/include/linux/mm.h)

use crate::{
    ffi,
    kern::context::Sleepable, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::prelude::*;

/// Bytes in a page.
pub(crate) const PAGE_SIZE: usize = kernel::page::PAGE_SIZE;

/// One reference on a page.
///
/// # Invariants
///
/// The pointer is valid and one reference on the page belongs to this value.
#[repr(transparent)]
pub(crate) struct SharedPage(NonNull<ffi::page>);

// SAFETY: A page reference may be dropped by any thread.
unsafe impl Send for SharedPage {}

impl SharedPage {
    /// Takes over a reference.
    ///
    /// # Safety
    ///
    /// `ptr` is a valid page and the caller gives up one reference on it.
    pub(crate) unsafe fn from_raw(ptr: NonNull<ffi::page>) -> Self {
        // INVARIANT: Valid and owned by the caller's promise.
        Self(ptr)
    }

    /// Gives the reference up to the caller.
    pub(crate) fn into_raw(self) -> NonNull<ffi::page> {
        let ptr = self.0;
        core::mem::forget(self);
        ptr
    }

    /// The C page.
    pub(crate) fn as_ptr(&self) -> *mut ffi::page {
        self.0.as_ptr()
    }

    /// Where the page's bytes are.
    pub(crate) fn address(&self) -> *mut u8 {
        // SAFETY: Valid by the type invariant; there is no high memory on the architectures this
        // builds for, so each page has an address.
        unsafe { ffi::svcrs_page_address(self.as_ptr()) }.cast()
    }

    /// Whether this is the only reference on an order-0 page outside every mapping and LRU list.
    pub(crate) fn is_private(&self) -> bool {
        // SAFETY: Valid by the type invariant.
        unsafe { ffi::svcrs_page_private(self.as_ptr()) }
    }

    /// Turns the page into a private one.
    ///
    /// # Errors
    ///
    /// Gives the page back when somebody else may reach it.
    pub(crate) fn try_into_private(self) -> Result<PrivatePage, SharedPage> {
        if self.is_private() {
            // INVARIANT: The check just found this reference to be the only one. With no mapping
            // and no list nobody has a way to its bytes: who finds pages by their number, as
            // compaction does, gives up on one that is in neither.
            Ok(PrivatePage(self))
        } else {
            Err(self)
        }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: By the type invariant one reference is ours to drop.
        unsafe { ffi::svcrs_put_page(self.as_ptr()) };
    }
}

/// An order-0 page that only the holder of this value can reach.
///
/// # Invariants
///
/// The page has one reference, this one, and is in no mapping. While a device has it mapped, the
/// value is inside an `ib::dma` type that gives no access to it.
#[repr(transparent)]
pub(crate) struct PrivatePage(SharedPage);

impl PrivatePage {
    /// Allocates a page.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn alloc(_context: &Sleepable) -> Result<Self> {
        // SAFETY: No preconditions but a context that may sleep, which the token shows.
        Self::from_alloc(unsafe { ffi::svcrs_alloc_page() })
    }

    fn from_alloc(page: *mut ffi::page) -> Result<Self> {
        let page = NonNull::new(page).ok_or(ENOMEM)?;
        // INVARIANT: A page fresh from the allocator has one reference and no mapping.
        // SAFETY: The allocator gave us that reference.
        Ok(Self(unsafe { SharedPage::from_raw(page) }))
    }

    /// Appends `n` pages to `into`, fewer when memory is short.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when not all could be had; what could be is in `into`.
    pub(crate) fn alloc_many(into: &mut KVec<Self>, n: usize, context: &Sleepable) -> Result {
        into.reserve(n, GFP_KERNEL)?;
        for _ in 0..n {
            into.push_within_capacity(Self::alloc(context)?)
                .map_err(|_| ENOMEM)?;
        }
        Ok(())
    }

    /// Gives the page away as a plain reference.
    pub(crate) fn into_shared(self) -> SharedPage {
        self.0
    }

    /// Where the page's bytes are.
    pub(crate) fn address(&self) -> *mut u8 {
        self.0.address()
    }

    /// The page's bytes.
    pub(crate) fn bytes(&self) -> &[u8; PAGE_SIZE] {
        // SAFETY: By the type invariant nobody else reaches the page; the borrow keeps it so.
        unsafe { &*self.address().cast() }
    }

    /// The page's bytes, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        // SAFETY: As in `bytes`, and the borrow is exclusive.
        unsafe { &mut *self.address().cast() }
    }

    /// `len` bytes from `offset`, cut to what the page has.
    pub(crate) fn range(&self, offset: usize, len: usize) -> PageRange<'_> {
        let offset = offset.min(PAGE_SIZE);
        // INVARIANT: Within one page, which `self` keeps.
        PageRange {
            page: self.0 .0,
            offset,
            len: len.min(PAGE_SIZE.saturating_sub(offset)),
            _lifetime: PhantomData,
        }
    }
}

/// Physically contiguous bytes in one or more pages, borrowed from whoever keeps the pages.
///
/// # Invariants
///
/// `offset + len` bytes from the start of `page` are valid memory for all of `'a`.
pub(crate) struct PageRange<'a> {
    page: NonNull<ffi::page>,
    offset: usize,
    len: usize,
    _lifetime: PhantomData<&'a ffi::page>,
}

impl<'a> PageRange<'a> {
    /// The same range, borrowed from this one.
    pub(crate) fn reborrow(&self) -> PageRange<'_> {
        // INVARIANT: As for `self`.
        PageRange {
            page: self.page,
            offset: self.offset,
            len: self.len,
            _lifetime: PhantomData,
        }
    }

    /// A range of kernel memory that has pages (not vmalloc).
    ///
    /// # Safety
    ///
    /// `len` bytes from `address` are valid, physically contiguous and in the linear mapping for
    /// all of `'a`.
    pub(crate) unsafe fn from_address(address: NonNull<u8>, len: usize) -> Option<Self> {
        // SAFETY: In the linear mapping by this function's contract.
        let page = unsafe { ffi::svcrs_virt_to_page(address.as_ptr().cast()) };
        // INVARIANT: By this function's contract.
        Some(Self {
            page: NonNull::new(page)?,
            // CAST: An address as an integer; only its offset in the page is kept.
            offset: (address.as_ptr() as usize) & (PAGE_SIZE - 1),
            len,
            _lifetime: PhantomData,
        })
    }

    /// A range inside one page.
    ///
    /// # Safety
    ///
    /// `page` is valid for all of `'a` and `offset + len` is at most [`PAGE_SIZE`].
    pub(crate) unsafe fn from_page(page: NonNull<ffi::page>, offset: usize, len: usize) -> Self {
        // INVARIANT: By this function's contract.
        Self {
            page,
            offset,
            len,
            _lifetime: PhantomData,
        }
    }

    /// Where the first byte is.
    pub(crate) fn address(&self) -> *const u8 {
        // SAFETY: The page is valid by the type invariant and has an address, see
        // `SharedPage::address`.
        let page: *const u8 = unsafe { ffi::svcrs_page_address(self.page.as_ptr()) }.cast();
        page.wrapping_add(self.offset)
    }

    /// The first page.
    pub(crate) fn page(&self) -> *mut ffi::page {
        self.page.as_ptr()
    }

    /// Bytes from the start of the first page.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Joins `next` to this range if it begins where this one ends and the whole stays within
    /// `max` bytes.
    pub(crate) fn try_join(&mut self, next: &PageRange<'a>, max: usize) -> bool {
        let (Some(end), Some(len)) = (
            self.offset.checked_add(self.len),
            self.len.checked_add(next.len),
        ) else {
            return false;
        };
        if len > max || next.offset != 0 || end % PAGE_SIZE != 0 || self.len == 0 || next.len == 0 {
            return false;
        }
        let last = (end / PAGE_SIZE).saturating_sub(1);
        // SAFETY: By the type invariant the range reaches into page number `last`, and the pages
        // of a contiguous range are consecutive in the memory map (sparse vmemmap).
        let last = unsafe { self.page.as_ptr().add(last) };
        // SAFETY: Both pages are valid by the type invariants.
        if !unsafe { ffi::svcrs_page_follows(last, next.page.as_ptr()) } {
            return false;
        }
        // INVARIANT: The two ranges are adjacent, so their sum is contiguous and valid.
        self.len = len;
        true
    }
}
