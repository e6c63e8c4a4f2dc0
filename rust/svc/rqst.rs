// SPDX-License-Identifier: GPL-2.0

//! A service thread with the request it works on, and the pages it owns.
//!
//! A thread owns two arrays of pages: `rq_pages` for the call and `rq_respages` for the reply. All
//! entries of the first are set when a message is received. They are only ever *exchanged* here, so
//! they stay set and `rq_pages_nfree` stays 0. The second is in [`super::reply_array`].

use crate::{
    ffi,
    kern::page::{
        PrivatePage,
        SharedPage,
        PAGE_SIZE, //
    },
    svc::{
        connection::Connection,
        xdr_buf::XdrBuf, //
    }, //
};
use core::{
    marker::PhantomData,
    ops::Range,
    ptr::{
        null_mut,
        NonNull, //
    }, //
};
use kernel::{
    bindings,
    ffi::c_int,
    prelude::*,
    types::Opaque, //
};

/// A `svc_rqst` of a thread that serves a connection of type `C`.
///
/// # Invariants
///
/// `rq_xprt_ctxt` is null or a leaked box of `C::Call`.
#[repr(transparent)]
pub(crate) struct Rqst<C: Connection>(Opaque<ffi::svc_rqst>, PhantomData<C>);

/// What receiving led to.
pub(crate) struct Received(c_int);

impl Received {
    /// No message for the service.
    pub(crate) const NOTHING: Self = Self(0);

    pub(super) fn into_raw(self) -> c_int {
        self.0
    }
}

/// A call in memory, to be installed by [`Rqst::install`].
pub(crate) enum CallPages<'a> {
    /// All of it in one page.
    Inline {
        /// The page the message was received in.
        page: PrivatePage,
        /// Where in it the call is.
        call: Range<usize>,
    },
    /// A call one of whose arguments is in pages of its own.
    Single {
        /// The page the message was received in.
        page: PrivatePage,
        /// Where in it the call up to the argument is.
        head: Range<usize>,
        /// Where in it the rest of the call is.
        tail: Range<usize>,
        /// The argument's pages.
        sink: &'a mut KVec<PrivatePage>,
        /// Its length in bytes, padding included.
        sink_len: usize,
    },
    /// A call that fills pages from the start of the first on.
    Stream {
        /// The pages.
        sink: &'a mut KVec<PrivatePage>,
        /// Its length in bytes.
        len: usize,
    },
}

impl<C: Connection> Rqst<C> {
    /// Borrows a request.
    ///
    /// # Safety
    ///
    /// The request belongs to the calling thread for all of `'a` and serves a transport of `C`.
    pub(super) unsafe fn from_raw<'a>(rqst: *mut ffi::svc_rqst) -> &'a mut Self {
        // SAFETY: Valid and exclusive by this function's contract.
        unsafe { &mut *rqst.cast() }
    }

    pub(super) fn as_ptr(&self) -> *mut ffi::svc_rqst {
        self.0.get()
    }

    pub(super) fn xprt_ptr(&self) -> *mut ffi::svc_xprt {
        // SAFETY: The request is valid.
        unsafe { (*self.as_ptr()).rq_xprt }
    }

    /// Whether the reply's body is wrapped by RPCSEC_GSS, so that no part of it may be moved apart
    /// (RFC 8166 section 8.2.2.3).
    pub(crate) fn is_wrapped(&self) -> bool {
        // SAFETY: The request is valid.
        let flavor = unsafe { (*self.as_ptr()).rq_cred.cr_flavor };
        matches!(
            flavor,
            ffi::rpc_auth_flavors_RPC_AUTH_GSS_KRB5I | ffi::rpc_auth_flavors_RPC_AUTH_GSS_KRB5P
        )
    }

    /// RPC program and version of the call being answered.
    pub(crate) fn program(&self) -> (u32, u32) {
        // SAFETY: The request is valid.
        let program = unsafe { (*self.as_ptr()).rq_prog };
        // SAFETY: As above.
        let version = unsafe { (*self.as_ptr()).rq_vers };
        (program, version)
    }

    /// The transport's memory of the call being answered.
    pub(crate) fn call(&mut self) -> Option<&mut C::Call> {
        // SAFETY: By the type invariant; the borrow of the request makes it exclusive.
        unsafe { (*self.as_ptr()).rq_xprt_ctxt.cast::<C::Call>().as_mut() }
    }

    /// The transport's memory of the call, and the reply.
    pub(crate) fn call_and_reply(&mut self) -> (Option<&mut C::Call>, XdrBuf<'_>) {
        // SAFETY: The reply belongs to the thread, and its pages stay during the borrow.
        let reply = unsafe { XdrBuf::from_raw(&raw const (*self.as_ptr()).rq_res) };
        // SAFETY: As in `call`; it is another object than the reply.
        let call = unsafe { (*self.as_ptr()).rq_xprt_ctxt.cast::<C::Call>().as_mut() };
        (call, reply)
    }

    /// Pages a call or a reply can have.
    pub(super) fn maxpages(&self) -> usize {
        // SAFETY: The request is valid.
        unsafe { (*self.as_ptr()).rq_maxpages }
    }

    /// Exchanges a page of the call array; the one that was there comes back.
    ///
    /// # Safety
    ///
    /// `index` is less than `rq_maxpages`.
    unsafe fn exchange(&mut self, index: usize, page: PrivatePage) -> Option<SharedPage> {
        // SAFETY: Within the array by this function's contract.
        let slot = unsafe { (*self.as_ptr()).rq_pages.add(index) };
        // SAFETY: As above; the array belongs to the thread.
        let old = unsafe { slot.replace(page.into_shared().into_raw().as_ptr()) };
        // SAFETY: The array owned one reference on the page, which it no longer has.
        NonNull::new(old).map(|old| unsafe { SharedPage::from_raw(old) })
    }

    /// Makes `pages` the call that the thread works on, and `call` the transport's memory of it.
    /// Each page that had to make room goes to `displaced`.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` when the thread has fewer pages than the call, or a range is not in its page;
    /// nothing has been exchanged then.
    pub(crate) fn install(
        &mut self,
        pages: CallPages<'_>,
        call: KBox<C::Call>,
        mut displaced: impl FnMut(SharedPage),
    ) -> Result<Received, (Error, KBox<C::Call>)> {
        let max = self.maxpages();
        let in_page = |range: &Range<usize>| range.start <= range.end && range.end <= PAGE_SIZE;
        // Head in page 0, then pages from 1 on: the order in which sunrpc presets `rq_arg`.
        let (head, page_len, tail) = match pages {
            CallPages::Inline { page, call: range } => {
                if !in_page(&range) || max < 1 {
                    return Err((EMSGSIZE, call));
                }
                let base = page.address();
                // SAFETY: The array has an entry.
                unsafe { self.exchange(0, page) }.map(&mut displaced);
                ((base, range), 0, None)
            }
            CallPages::Single {
                page,
                head,
                tail,
                sink,
                sink_len,
            } => {
                let fits = sink.len().saturating_mul(PAGE_SIZE) >= sink_len;
                if !in_page(&head) || !in_page(&tail) || !fits || sink.len() >= max {
                    return Err((EMSGSIZE, call));
                }
                let base = page.address();
                // SAFETY: The array has an entry.
                unsafe { self.exchange(0, page) }.map(&mut displaced);
                for (index, page) in sink.drain_all().enumerate() {
                    // SAFETY: There are fewer pages than entries.
                    unsafe { self.exchange(index.wrapping_add(1), page) }.map(&mut displaced);
                }
                ((base, head), sink_len, Some((base, tail)))
            }
            CallPages::Stream { sink, len } => {
                let fits = sink.len().saturating_mul(PAGE_SIZE) >= len;
                let Some(first) = sink.first().filter(|_| fits && sink.len() <= max) else {
                    return Err((EMSGSIZE, call));
                };
                let base = first.address();
                for (index, page) in sink.drain_all().enumerate() {
                    // SAFETY: There are at most as many pages as entries.
                    unsafe { self.exchange(index, page) }.map(&mut displaced);
                }
                let head = len.min(PAGE_SIZE);
                ((base, 0..head), len.saturating_sub(head), None)
            }
        };
        Ok(self.arrange(head, page_len, tail, call))
    }

    /// Fills in the request for a call whose pages are in the array.
    fn arrange(
        &mut self,
        head: (*mut u8, Range<usize>),
        page_len: usize,
        tail: Option<(*mut u8, Range<usize>)>,
        call: KBox<C::Call>,
    ) -> Received {
        let kvec = |(base, range): (*mut u8, Range<usize>)| ffi::kvec {
            iov_base: base.wrapping_add(range.start).cast(),
            iov_len: range.len(),
        };
        let head = kvec(head);
        let tail = tail.map_or(
            ffi::kvec {
                iov_base: null_mut(),
                iov_len: 0,
            },
            kvec,
        );
        // At most `rq_maxpages` pages and two parts of a page: far below the width of the fields.
        let len = head
            .iov_len
            .wrapping_add(page_len)
            .wrapping_add(tail.iov_len);
        let rqst = self.as_ptr();
        // SAFETY: The call array has at least one entry.
        let pages = unsafe { (*rqst).rq_pages.add(1) };
        // SAFETY: The request belongs to the thread.
        let arg = unsafe { &mut (*rqst).rq_arg };
        arg.head = [head];
        arg.tail = [tail];
        arg.pages = pages;
        arg.page_base = 0;
        // CAST: See above.
        arg.page_len = page_len as u32;
        arg.len = len as u32;
        arg.buflen = len as u32;
        // SAFETY: As above.
        unsafe { (*rqst).rq_next_page = (*rqst).rq_respages };
        // INVARIANT: A leaked box; a request that receives has no call yet.
        // SAFETY: As above.
        unsafe { (*rqst).rq_xprt_ctxt = KBox::into_raw(call).cast() };
        // SAFETY: As above.
        unsafe { (*rqst).rq_prot = ffi::IPPROTO_MAX };
        // SAFETY: Request and transport are valid.
        unsafe { ffi::svc_xprt_copy_addrs(rqst, (*rqst).rq_xprt) };
        // RDMA ports are bound in the kernel, so there are no unprivileged ones.
        // SAFETY: The flags are valid.
        unsafe { bindings::set_bit(ffi::RQ_SECURE as usize, &raw mut (*rqst).rq_flags) };
        // The flag of an earlier request of another transport may still be set.
        // SAFETY: As above.
        unsafe { bindings::clear_bit(ffi::RQ_LOCAL as usize, &raw mut (*rqst).rq_flags) };
        // CAST: See above; the value is traced and tested for being positive.
        Received(len as c_int)
    }
}
