// SPDX-License-Identifier: GPL-2.0

//! Pools that make the steady state free of allocation.
//!
//! Pages circulate: a page that a Receive or an RDMA Read brought is exchanged for one of the
//! thread's, which comes here and goes out again with the next Receive or RDMA Read. The pools are
//! bounded and belong to the module; a shrinker gives pages back to the system.
//!
//! Locks: one per pool, none held while another is taken.

use crate::{
    ib::{
        rdma::Room,
        work::Work, //
    },
    kern::{
        context::Sleepable,
        page::{
            PrivatePage,
            SharedPage, //
        }, //
    },
    stats,
    transport::{
        call::CallContext,
        read::{
            ReadContext,
            Reads, //
        },
        send::Writes, //
    }, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

/// Pages pooled at most: 32 MiB.
const MAX_PAGES: usize = 8192;
/// Contexts of each kind pooled at most.
const MAX_CONTEXTS: usize = 256;

/// What RDMA Reads of a call are made of.
pub(crate) struct ReadKit {
    /// Room for the work requests.
    pub(crate) room: Room,
    /// The pages they fill.
    pub(crate) pages: KVec<PrivatePage>,
}

/// What RDMA Writes of a reply are made of.
pub(crate) struct WriteKit {
    /// Room for the work requests.
    pub(crate) room: Room,
    /// Room for the reply's pages.
    pub(crate) list: KVec<SharedPage>,
    /// Pages in exchange for them.
    pub(crate) spare: KVec<PrivatePage>,
}

/// The pools.
#[pin_data]
pub(crate) struct Depot {
    #[pin]
    pages: SpinLock<KVVec<PrivatePage>>,
    #[pin]
    calls: SpinLock<KVec<KBox<CallContext>>>,
    #[pin]
    read_kits: SpinLock<KVVec<ReadKit>>,
    #[pin]
    write_kits: SpinLock<KVVec<WriteKit>>,
    #[pin]
    reads: SpinLock<KVec<Work<ReadContext>>>,
}

impl Depot {
    /// Empty pools.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            pages <- {
                let room = KVVec::with_capacity(MAX_PAGES, GFP_KERNEL)?;
                new_spinlock!(room, "svcrdma_rs::depot_pages")
            },
            calls <- {
                let room = KVec::with_capacity(MAX_CONTEXTS, GFP_KERNEL)?;
                new_spinlock!(room, "svcrdma_rs::depot_calls")
            },
            read_kits <- {
                let room = KVVec::with_capacity(MAX_CONTEXTS, GFP_KERNEL)?;
                new_spinlock!(room, "svcrdma_rs::depot_read_kits")
            },
            write_kits <- {
                let room = KVVec::with_capacity(MAX_CONTEXTS, GFP_KERNEL)?;
                new_spinlock!(room, "svcrdma_rs::depot_write_kits")
            },
            reads <- {
                let room = KVec::with_capacity(MAX_CONTEXTS, GFP_KERNEL)?;
                new_spinlock!(room, "svcrdma_rs::depot_reads")
            },
        }? Error)
    }

    /// A page.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn page(&self, context: &Sleepable) -> Result<PrivatePage> {
        let pooled = self.pages.lock().pop();
        match pooled {
            Some(page) => {
                stats::objects().pages_pooled.dec();
                Ok(page)
            }
            None => {
                stats::stats().pages_allocated.inc();
                PrivatePage::alloc(context)
            }
        }
    }

    /// Brings `into` to `n` pages.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; the pages that could be had are in `into`.
    pub(crate) fn fill(
        &self,
        into: &mut KVec<PrivatePage>,
        n: usize,
        context: &Sleepable,
    ) -> Result {
        self.fill_pooled(into, n)?;
        let missing = n.saturating_sub(into.len());
        if missing > 0 {
            // CAST: Bounded by the pages of a message.
            stats::stats().pages_allocated.add(missing as i64);
            PrivatePage::alloc_many(into, missing, context)?;
        }
        Ok(())
    }

    /// Brings `into` to `n` pages as far as the pool has them.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn fill_pooled(&self, into: &mut KVec<PrivatePage>, n: usize) -> Result {
        into.reserve(n.saturating_sub(into.len()), GFP_KERNEL)?;
        let before = into.len();
        let mut pool = self.pages.lock();
        while into.len() < n {
            let Some(page) = pool.pop() else {
                break;
            };
            if into.push_within_capacity(page).is_err() {
                break;
            }
        }
        drop(pool);
        // CAST: Bounded by the pages of a message.
        let taken = into.len().saturating_sub(before) as i64;
        stats::objects().pages_pooled.sub(taken);
        Ok(())
    }

    /// Puts a page into the pool, or frees it.
    pub(crate) fn put_page(&self, page: PrivatePage) {
        let refused = self.pages.lock().push_within_capacity(page);
        if refused.is_ok() {
            stats::objects().pages_pooled.inc();
        }
    }

    /// Takes in a page that came back from somewhere, if it is nobody else's; else drops the
    /// reference.
    pub(crate) fn put_shared(&self, page: SharedPage) {
        if let Ok(page) = page.try_into_private() {
            self.put_page(page);
        }
    }

    /// Empties a list of pages into the pool.
    pub(crate) fn put_pages(&self, pages: &mut KVec<PrivatePage>) {
        for page in pages.drain_all() {
            self.put_page(page);
        }
    }

    /// A call context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn call(&self, _context: &Sleepable) -> Result<KBox<CallContext>> {
        let pooled = self.calls.lock().pop();
        match pooled {
            Some(call) => Ok(call),
            None => CallContext::new(),
        }
    }

    /// Takes a call context back.
    pub(crate) fn put_call(&self, mut call: KBox<CallContext>) {
        if let Some(page) = call.reset() {
            self.put_page(page);
        }
        let refused = self.calls.lock().push_within_capacity(call);
        drop(refused);
    }

    /// A kit for RDMA Reads, without pages.
    pub(crate) fn read_kit(&self) -> ReadKit {
        let pooled = self.read_kits.lock().pop();
        pooled.unwrap_or_else(|| ReadKit {
            room: Room::new(),
            pages: KVec::new(),
        })
    }

    /// Takes a kit for RDMA Reads back.
    pub(crate) fn put_read_kit(&self, mut kit: ReadKit) {
        self.put_pages(&mut kit.pages);
        let refused = self.read_kits.lock().push_within_capacity(kit);
        drop(refused);
    }

    /// Takes RDMA Reads back that are not posted, with their pages.
    pub(crate) fn put_reads(&self, reads: Reads) {
        let (pages, room) = reads.finish();
        self.put_read_kit(ReadKit { room, pages });
    }

    /// A kit for RDMA Writes, without pages.
    pub(crate) fn write_kit(&self) -> WriteKit {
        let pooled = self.write_kits.lock().pop();
        pooled.unwrap_or_else(|| WriteKit {
            room: Room::new(),
            list: KVec::new(),
            spare: KVec::new(),
        })
    }

    /// Takes a kit for RDMA Writes back.
    pub(crate) fn put_write_kit(&self, mut kit: WriteKit) {
        self.put_pages(&mut kit.spare);
        kit.list.clear();
        let refused = self.write_kits.lock().push_within_capacity(kit);
        drop(refused);
    }

    /// Takes RDMA Writes back that are not posted, with their pages.
    pub(crate) fn put_writes(&self, writes: Writes) {
        let Writes { rdma, spare } = writes;
        let (reply, room) = rdma.finish();
        let mut list = reply.into_list();
        for page in list.drain_all() {
            self.put_shared(page);
        }
        self.put_write_kit(WriteKit { room, list, spare });
    }

    /// A context for RDMA Reads.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn read(&self, _context: &Sleepable) -> Result<Work<ReadContext>> {
        let pooled = self.reads.lock().pop();
        match pooled {
            Some(read) => Ok(read),
            None => Work::new(ReadContext::new()),
        }
    }

    /// Takes a context for RDMA Reads back that holds nothing.
    pub(crate) fn put_read(&self, read: Work<ReadContext>) {
        let refused = self.reads.lock().push_within_capacity(read);
        drop(refused);
    }

    /// Pages in the pool.
    pub(crate) fn pooled(&self) -> usize {
        self.pages.lock().len()
    }

    /// Frees at most `n` pages of the pool; how many were.
    pub(crate) fn shrink(&self, n: usize) -> usize {
        for freed in 0..n {
            let page = self.pages.lock().pop();
            match page {
                Some(page) => drop(page),
                None => return freed,
            }
            stats::objects().pages_pooled.dec();
        }
        n
    }
}
