// SPDX-License-Identifier: GPL-2.0

//! What is remembered of a call until its reply is sent.
//!
//! The page that the call was received in belongs to sunrpc as soon as it has the call, so all that
//! the reply needs of the transport header is copied here: the fixed words, and the Write list and
//! the Reply chunk as they were on the wire.

use crate::{
    kern::{
        bytes,
        page::{
            PrivatePage,
            PAGE_SIZE, //
        }, //
    },
    proto::{
        Call,
        Fixed,
        ReplyLists,
        Reports,
        Xid, //
    },
    stats::{
        self,
        Counted, //
    }, //
};
use kernel::prelude::*;

/// Bytes of lists kept without a page: 16 segments in any arrangement that has at most 8 Write
/// chunks and a Reply chunk.
const INLINE_LISTS: usize = 16 * 16 + 9 * 8 + 8;

/// A call until it is answered; `rq_xprt_ctxt` of the request.
pub(crate) struct CallContext {
    fixed: Fixed,
    inv_rkey: Option<u32>,
    reports: Reports,
    lists_len: usize,
    lists: [u8; INLINE_LISTS],
    overflow: Option<PrivatePage>,
    in_use: Option<Counted>,
}

impl CallContext {
    /// An empty context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<KBox<Self>> {
        Ok(KBox::new(
            Self {
                fixed: Fixed {
                    xid: Xid([0; 4]),
                    vers: 0,
                    credits: 0,
                    proc_: 0,
                },
                inv_rkey: None,
                reports: Reports::default(),
                lists_len: 0,
                lists: [0; INLINE_LISTS],
                overflow: None,
                in_use: None,
            },
            GFP_KERNEL,
        )?)
    }

    /// Whether the lists of `call` need a page, to be given to [`CallContext::remember`].
    pub(crate) fn needs_page(call: &Call<'_>) -> bool {
        call.reply_lists_wire().len() > INLINE_LISTS
    }

    /// Copies what the reply to `call` will need.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` when the lists need a page and there is none.
    pub(crate) fn remember(&mut self, call: &Call<'_>, page: Option<PrivatePage>) -> Result {
        let wire = call.reply_lists_wire();
        self.fixed = call.fixed();
        self.inv_rkey = call.inv_rkey();
        self.reports = Reports::default();
        self.overflow = page;
        let room: &mut [u8] = match &mut self.overflow {
            Some(page) => page.bytes_mut(),
            None => &mut self.lists,
        };
        bytes::copy(room.get_mut(..wire.len()).ok_or(EMSGSIZE)?, wire);
        self.lists_len = wire.len();
        Ok(())
    }

    /// The fixed words of the call's transport header.
    pub(crate) fn fixed(&self) -> Fixed {
        self.fixed
    }

    /// The one key of the client that appears in the call, to be invalidated with the reply.
    pub(crate) fn inv_rkey(&self) -> Option<u32> {
        self.inv_rkey
    }

    /// The results that were reported.
    pub(crate) fn reports(&self) -> &Reports {
        &self.reports
    }

    /// The call's Write list and Reply chunk.
    pub(crate) fn lists(&self) -> Option<ReplyLists<'_>> {
        let room: &[u8] = match &self.overflow {
            Some(page) => page.bytes(),
            None => &self.lists,
        };
        ReplyLists::from_wire(room.get(..self.lists_len)?)
    }

    /// Takes note of a result that may go to a Write chunk.
    pub(crate) fn report(&mut self, offset: u32, len: u32) {
        self.reports.add(offset, len);
    }

    /// Counts the call as in progress.
    pub(crate) fn set_in_use(&mut self) {
        self.in_use = Some(Counted::new(&stats::objects().calls));
    }

    /// Forgets the call; the page its lists were in comes back.
    pub(crate) fn reset(&mut self) -> Option<PrivatePage> {
        self.lists_len = 0;
        self.in_use = None;
        self.overflow.take()
    }
}

const _: () = assert!(INLINE_LISTS < PAGE_SIZE);
