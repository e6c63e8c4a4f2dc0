// SPDX-License-Identifier: GPL-2.0

//! What a connection has for sunrpc to pick up.
//!
//! Completion handlers put in, `recvfrom` takes out. The flag that makes sunrpc send a thread is
//! set and cleared under the lock of the queues: it is set exactly while there is something, so no
//! thread comes for nothing.
//!
//! Locks: `Inbox::queues`.

use crate::{
    ib::work::Work,
    kern::ring::Ring,
    svc::xprt::{
        Flag,
        Xprt, //
    },
    transport::{
        connection::Connection,
        read::ReadContext,
        recv::Message, //
    }, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        SpinLock, //
    }, //
};

/// The two queues.
#[pin_data]
pub(crate) struct Inbox {
    #[pin]
    queues: SpinLock<Queues>,
    /// Length of `read_done`, for those who cannot take the lock.
    reads: Atomic<i32>,
}

struct Queues {
    messages: Ring<Message>,
    read_done: Ring<Work<ReadContext>>,
}

/// Something picked up.
pub(crate) enum Item {
    /// A message.
    Message(Message),
    /// A call whose RDMA Reads are done.
    ReadDone(Work<ReadContext>),
}

impl Inbox {
    /// Empty queues for so many messages and calls.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(messages: usize, reads: usize) -> Result<impl PinInit<Self>> {
        let queues = Queues {
            messages: Ring::new(messages)?,
            read_done: Ring::new(reads)?,
        };
        Ok(pin_init!(Self {
            queues <- new_spinlock!(queues, "svcrdma_rs::inbox"),
            reads: Atomic::new(0),
        }))
    }

    /// Whether a call is here whose RDMA Reads are done.
    ///
    /// # Context
    ///
    /// Any.
    pub(crate) fn has_reads(&self) -> bool {
        self.reads.load(Relaxed) > 0
    }

    /// Puts a message in and asks for a thread.
    ///
    /// # Errors
    ///
    /// Gives the message back when there are more than Receives.
    pub(crate) fn put_message(
        &self,
        xprt: &Xprt<Connection>,
        message: Message,
    ) -> Result<(), Message> {
        let mut queues = self.queues.lock();
        queues.messages.push(message)?;
        xprt.set(Flag::Data);
        drop(queues);
        xprt.enqueue();
        Ok(())
    }

    /// Puts a call in whose RDMA Reads are done, and asks for a thread.
    ///
    /// # Errors
    ///
    /// Gives it back when there are more than calls.
    pub(crate) fn put_read(
        &self,
        xprt: &Xprt<Connection>,
        read: Work<ReadContext>,
    ) -> Result<(), Work<ReadContext>> {
        let mut queues = self.queues.lock();
        queues.read_done.push(read)?;
        self.reads.add(1, Relaxed);
        xprt.set(Flag::Data);
        drop(queues);
        xprt.enqueue();
        Ok(())
    }

    /// Takes the next item: calls whose RDMA Reads are done first, a message only if `room` says
    /// that one more call may be begun.
    pub(crate) fn take(&self, xprt: &Xprt<Connection>, room: bool) -> Option<Item> {
        let mut queues = self.queues.lock();
        let item = match queues.read_done.pop() {
            Some(read) => {
                self.reads.fetch_sub(1, Relaxed);
                Some(Item::ReadDone(read))
            }
            None if room => queues.messages.pop().map(Item::Message),
            None => None,
        };
        if queues.messages.is_empty() && queues.read_done.is_empty() {
            xprt.clear(Flag::Data);
        }
        item
    }
}
