// SPDX-License-Identifier: GPL-2.0

//! What the module did, and what it holds.
//!
//! Plain atomics, written anywhere and read by `debugfs`. `Documentation/counters.md` says what
//! each one means.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// A number that only grows.
pub(crate) struct Counter(Atomic<i64>);

/// A number of things that exist now.
pub(crate) struct Gauge(Atomic<i64>);

impl Counter {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// One more.
    pub(crate) fn inc(&self) {
        self.0.add(1, Relaxed);
    }

    /// `n` more.
    pub(crate) fn add(&self, n: i64) {
        self.0.add(n, Relaxed);
    }

    /// The number.
    pub(crate) fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

impl Gauge {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// One more.
    pub(crate) fn inc(&self) {
        self.0.add(1, Relaxed);
    }

    /// One fewer.
    pub(crate) fn dec(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    /// `n` more.
    pub(crate) fn add(&self, n: i64) {
        self.0.add(n, Relaxed);
    }

    /// `n` fewer.
    pub(crate) fn sub(&self, n: i64) {
        self.0.fetch_sub(n, Relaxed);
    }

    /// The number.
    pub(crate) fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// Counts one object for as long as it lives.
pub(crate) struct Counted(&'static Gauge);

impl Counted {
    /// One more.
    pub(crate) fn new(gauge: &'static Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

macro_rules! numbers {
    ($(#[$meta:meta])* $name:ident($kind:ident) { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$meta])*
        pub(crate) struct $name {
            $($(#[$doc])* pub(crate) $field: $kind,)*
        }

        impl $name {
            const fn new() -> Self {
                Self { $($field: $kind::new(),)* }
            }

            /// Calls `each` with the name and value of each number.
            pub(crate) fn for_each<E>(
                &self,
                mut each: impl FnMut(&str, i64) -> Result<(), E>,
            ) -> Result<(), E> {
                $(each(stringify!($field), self.$field.get())?;)*
                Ok(())
            }
        }
    };
}

numbers! {
    /// Events since the module was loaded.
    Stats(Counter) {
        /// Connections accepted.
        accepts,
        /// Connections that could not be accepted.
        refused,
        /// Messages received.
        receives,
        /// Messages dropped without an answer.
        dropped,
        /// Receives that failed other than by being flushed.
        receive_errors,
        /// Calls handed to sunrpc without RDMA Reads.
        calls_inline,
        /// Calls handed to sunrpc after RDMA Reads.
        calls_read,
        /// RDMA Read work requests posted.
        read_wrs,
        /// Bytes read from clients.
        read_bytes,
        /// Chains of RDMA Reads that failed.
        read_errors,
        /// RDMA Write work requests posted.
        write_wrs,
        /// Bytes written to clients.
        write_bytes,
        /// Replies sent.
        replies,
        /// Replies sent through a Reply chunk.
        replies_chunk,
        /// Sends that failed other than by being flushed.
        send_errors,
        /// `ERR_VERS` answers.
        err_vers,
        /// `ERR_CHUNK` answers.
        err_chunk,
        /// Sends with remote invalidation.
        sends_with_inv,
        /// Backchannel calls sent.
        backchannel_calls,
        /// Backchannel replies matched.
        backchannel_replies,
        /// Waits for room on a Send Queue.
        sq_waits,
        /// Pages taken from the allocator because a pool was empty.
        pages_allocated,
    }
}

numbers! {
    /// Objects that exist. With no connection all but the `pooled` ones, listeners and their CM ids
    /// are 0.
    Objects(Gauge) {
        /// Listeners.
        listeners,
        /// Connections, from accept until their memory is freed.
        connections,
        /// Verbs objects of connections.
        endpoints,
        /// CM ids.
        cm_ids,
        /// Receive contexts.
        receive_contexts,
        /// Call contexts in use.
        calls,
        /// Send contexts in use.
        sends,
        /// RDMA operations in use.
        rdma_ops,
        /// DMA mappings.
        mappings,
        /// Memory regions, those in pools included.
        memory_regions,
        /// Send Queue slots reserved or posted.
        sq_slots,
        /// Backchannel transports.
        backchannels,
        /// Pages in the pool.
        pages_pooled,
    }
}

static STATS: Stats = Stats::new();
static OBJECTS: Objects = Objects::new();

/// The event counters.
pub(crate) fn stats() -> &'static Stats {
    &STATS
}

/// The object counters.
pub(crate) fn objects() -> &'static Objects {
    &OBJECTS
}
