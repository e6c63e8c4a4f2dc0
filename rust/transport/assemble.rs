// SPDX-License-Identifier: GPL-2.0

//! Calls with Read chunks: the second pass.
//!
//! On whatever thread comes, it takes the pages back from the device, completes them with what was
//! inline, and exchanges them for the thread's.

use crate::{
    ib::work::Work,
    kern::{
        bytes,
        context::Sleepable,
        page::{
            PrivatePage,
            PAGE_SIZE, //
        }, //
    },
    proto::{
        Answer,
        Layout,
        Piece, //
    },
    stats,
    svc::{
        rqst::{
            CallPages,
            Received,
            Rqst, //
        },
        xprt::Xprt, //
    },
    transport::{
        connection::Connection,
        depot::ReadKit,
        read::{
            abandon,
            Parts,
            ReadContext, //
        },
        recv, //
    }, //
};
use kernel::prelude::*;

/// Bytes of a call that nfsd's duplicate reply cache takes a checksum of (`RC_CSUMLEN`,
/// fs/nfsd/cache.h). It takes them from head and pages, also behind the end of the pages, so what is
/// there must not differ when the call comes again.
const CHECKSUMMED: usize = 256;

/// Second pass: completes a call whose RDMA Reads are done and hands it to the thread.
pub(crate) fn finish(
    conn: &Xprt<Connection>,
    rqst: &mut Rqst<Connection>,
    mut work: Work<ReadContext>,
    context: &Sleepable,
) -> Received {
    let taken = work.take();
    conn.depot().put_read(work);
    let Some((reads, parts)) = taken else {
        return Received::NOTHING;
    };
    // From here on the pages are the CPU's.
    let (pages, room) = reads.finish();
    let mut kit = ReadKit { room, pages };
    let received = match assemble(&parts, &mut kit.pages) {
        Ok(how) => install(conn, rqst, parts, &mut kit.pages, how),
        Err(answer) => {
            abandon(conn, parts);
            recv::refuse(conn, answer, context);
            Received::NOTHING
        }
    };
    conn.depot().put_read_kit(kit);
    received
}

/// How a completed call lies in memory.
enum Shape {
    /// The argument in pages, the rest in the page of the message, split at `split`.
    Single {
        start: usize,
        split: usize,
        padded: usize,
    },
    /// All of it in pages.
    Stream { len: usize },
}

/// Writes what did not come by RDMA Read: inline parts and padding.
///
/// Pages of the depot have old bytes in them. Those behind what is written here are not part of the
/// call, and nothing may look at them.
fn assemble(parts: &Parts, pages: &mut [PrivatePage]) -> Result<Shape, Answer> {
    let broken = Answer::ErrChunk(parts.call.fixed());
    let call = parts.view().map_err(|_| broken)?;
    let start = call.header_len();
    match call.layout() {
        // CAST: `u32` to `usize` is lossless on 64-bit.
        Layout::Single {
            position,
            chunk_len,
        } => {
            let padded = (chunk_len as usize).next_multiple_of(4);
            let defined = padded.max(CHECKSUMMED);
            if !fill(pages, chunk_len as usize, defined, None) {
                return Err(broken);
            }
            Ok(Shape::Single {
                start,
                split: start.saturating_add(position as usize),
                padded,
            })
        }
        Layout::Inline | Layout::Stream => {
            let mut at = 0usize;
            for piece in call.assembly() {
                let (piece_len, source) = match piece {
                    Piece::Remote { len, .. } => (len as usize, Source::Device),
                    Piece::Pad { len } => (len as usize, Source::Zeros),
                    Piece::Inline { off, len } => {
                        let bytes = usize::try_from(off)
                            .ok()
                            .and_then(|off| call.payload().get(off..))
                            .and_then(|rest| rest.get(..len as usize))
                            .ok_or(broken)?;
                        (len as usize, Source::Bytes(bytes))
                    }
                };
                let end = at.saturating_add(piece_len);
                let filled = match source {
                    Source::Device => true,
                    Source::Zeros => fill(pages, at, end, None),
                    Source::Bytes(bytes) => fill(pages, at, end, Some(bytes)),
                };
                if !filled {
                    return Err(broken);
                }
                at = end;
            }
            let first = pages.first();
            let first = first.and_then(|page| page.bytes().get(..at.min(PAGE_SIZE)));
            let first = first.unwrap_or(&[]);
            call.check_assembled(first)
                .and_then(|()| call.check_reducible(first))
                .map_err(|reject| reject.answer())?;
            Ok(Shape::Stream { len: at })
        }
    }
}

/// Where a piece's bytes come from.
enum Source<'a> {
    Device,
    Zeros,
    Bytes(&'a [u8]),
}

/// Writes `from..to` of the pages, with `source` or zeros; whether it could.
fn fill(pages: &mut [PrivatePage], from: usize, to: usize, source: Option<&[u8]>) -> bool {
    let mut at = from;
    let mut rest = source;
    while at < to {
        let in_page = at % PAGE_SIZE;
        let len = to.saturating_sub(at).min(PAGE_SIZE.saturating_sub(in_page));
        let slot = pages
            .get_mut(at / PAGE_SIZE)
            .and_then(|page| page.bytes_mut().get_mut(in_page..))
            .and_then(|slot| slot.get_mut(..len));
        let Some(slot) = slot else {
            return false;
        };
        match rest {
            None => slot.fill(0),
            Some(left) => {
                let Some((now, later)) = left.split_at_checked(len) else {
                    return false;
                };
                bytes::copy(slot, now);
                rest = Some(later);
            }
        }
        at = at.saturating_add(len);
    }
    true
}

/// Gives the completed call to the thread.
fn install(
    conn: &Xprt<Connection>,
    rqst: &mut Rqst<Connection>,
    parts: Parts,
    sink: &mut KVec<PrivatePage>,
    how: Shape,
) -> Received {
    let Parts {
        header, len, call, ..
    } = parts;
    let pages = match how {
        Shape::Single {
            start,
            split,
            padded,
        } => CallPages::Single {
            page: header,
            head: start..split,
            tail: split..len,
            sink,
            sink_len: padded,
        },
        Shape::Stream { len } => {
            conn.depot().put_page(header);
            CallPages::Stream { sink, len }
        }
    };
    let received = rqst.install(pages, call, |page| conn.depot().put_shared(page));
    match received {
        Ok(received) => {
            stats::stats().calls_read.inc();
            received
        }
        Err((_, call)) => {
            conn.end_call(call);
            conn.close_soon();
            Received::NOTHING
        }
    }
}
