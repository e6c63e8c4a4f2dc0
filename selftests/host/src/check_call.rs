// SPDX-License-Identifier: GPL-2.0

//! Checks everything that [`parse`] and the [`Call`] it returns promise about one message, against
//! the second decoder.

use crate::{
    frame::Frame,
    naive::{
        self,
        Src,
        Verdict, //
    },
    proto::{
        parse,
        reject::Reject,
        Answer,
        Call,
        Fixed,
        Ingress,
        Layout,
        Limits,
        Piece,
        ReplyLists,
        Xid, //
    },
};

use std::num::NonZeroU32;

/// Parses `msg`, checks all invariants, and returns what `parse` said.
pub(crate) fn check_call<'a>(msg: &'a [u8], limits: &Limits) -> Result<Ingress<'a>, Reject> {
    let verdict = naive::decode(
        msg,
        usize::from(limits.max_segments),
        usize::try_from(limits.max_call_bytes).unwrap(),
    );
    let result = parse(msg, limits);

    match (&result, &verdict) {
        (Err(reject), Verdict::Silent) => assert_eq!(reject.answer(), Answer::Silent),
        (Err(reject), Verdict::ErrVers) => {
            assert_eq!(reject.answer(), Answer::ErrVers(received(msg)));
        }
        (Err(reject), Verdict::ErrChunk) => {
            assert_eq!(reject.answer(), Answer::ErrChunk(received(msg)));
            assert_eq!(received(msg).vers, 1);
        }
        (Ok(Ingress::PeerError { fixed }), Verdict::PeerError) => {
            assert_eq!(*fixed, received(msg));
        }
        (Ok(Ingress::ReverseReply { fixed, payload }), Verdict::ReverseReply) => {
            assert_eq!(*fixed, received(msg));
            assert_eq!(*payload, &msg[28..]);
        }
        (Ok(Ingress::Call(call)), Verdict::Call(naive)) => check(msg, limits, call, naive),
        (Err(reject), verdict) => panic!("{reject:?} instead of {verdict:?}: {msg:02x?}"),
        (Ok(_), verdict) => panic!("not {verdict:?}: {msg:02x?}"),
    }
    result
}

/// The fixed header of `msg` (I15).
fn received(msg: &[u8]) -> Fixed {
    let word = |at: usize| u32::from_be_bytes(msg[at..at + 4].try_into().unwrap());
    Fixed {
        xid: Xid(msg[..4].try_into().unwrap()),
        vers: word(4),
        credits: word(8),
        proc_: word(12),
    }
}

fn check(msg: &[u8], limits: &Limits, call: &Call<'_>, naive: &naive::Call) {
    check_header(msg, limits, call, naive);
    check_reply_lists(call, naive);
    check_assembly(msg, call, naive);
    check_demand(call, naive);
    check_shape(msg, call);
}

/// I1 to I4, I7, I11.
fn check_header(msg: &[u8], limits: &Limits, call: &Call<'_>, naive: &naive::Call) {
    assert_eq!(call.fixed(), received(msg));
    assert_eq!(call.fixed().vers, 1);
    assert_eq!(call.fixed().proc_, u32::from(naive.nomsg));
    assert_eq!(call.header_len(), naive.header_len);
    assert!(call.header_len() >= 28 && call.header_len() <= msg.len());
    assert_eq!(call.payload(), &msg[naive.header_len..]);
    assert!(call.payload().is_empty() || !naive.nomsg);
    assert_eq!(call.call_len() as usize, naive.stream.len());
    assert!(call.call_len() > 0 && call.call_len() <= limits.max_call_bytes);
    assert!(naive.segments().len() <= usize::from(limits.max_segments));

    let mut handles: Vec<u32> = naive.segments().iter().map(|seg| seg.0).collect();
    handles.sort_unstable();
    handles.dedup();
    let sole = match handles[..] {
        [handle] if handle != 0 => Some(handle),
        _ => None,
    };
    assert_eq!(call.inv_rkey(), sole);
}

/// I10: the copied lists say what the message said, and are all there is.
fn check_reply_lists(call: &Call<'_>, naive: &naive::Call) {
    let frame = Frame {
        writes: naive.writes.clone(),
        reply: naive.reply.clone(),
        ..Frame::nomsg()
    };
    let wire = call.reply_lists_wire();
    assert_eq!(wire, crate::frame::words(&frame.reply_lists()));

    let lists = ReplyLists::from_wire(wire).unwrap();
    let capacity = |chunk: &[crate::frame::Seg]| chunk.iter().map(|seg| u64::from(seg.1)).sum();
    assert_eq!(
        lists.reply_chunk().map(|chunk| chunk.capacity()),
        naive.reply.as_deref().map(capacity)
    );
    assert_eq!(
        lists.is_empty(),
        naive.writes.is_empty() && naive.reply.is_none()
    );
    assert!(ReplyLists::from_wire(&wire[..wire.len() - 1]).is_none());
    let mut longer = wire.to_vec();
    longer.push(0);
    assert!(ReplyLists::from_wire(&longer).is_none());
}

/// I6 and I8: the pieces are the stream, and few.
fn check_assembly(msg: &[u8], call: &Call<'_>, naive: &naive::Call) {
    let pieces: Vec<Piece> = call.assembly().collect();
    let mut bytes = Vec::new();

    for piece in &pieces {
        let before = bytes.len();
        match *piece {
            Piece::Inline { off, len } => {
                bytes.extend((off..off + len).map(|n| Src::Inline(n as usize)));
            }
            Piece::Remote {
                handle,
                offset,
                len,
            } => {
                bytes.extend((0..u64::from(len)).map(|n| Src::Remote(handle, offset + n)));
                assert!(naive.reads.iter().any(|(_, seg)| seg.0 == handle
                    && seg.2 <= offset
                    && offset + u64::from(len) <= seg.2 + u64::from(seg.1)));
            }
            Piece::Pad { len } => {
                assert!((1..=3).contains(&len));
                bytes.extend((0..len).map(|_| Src::Zero));
            }
        }
        assert!(bytes.len() > before, "an empty piece: {msg:02x?}");
    }
    assert_eq!(bytes, naive.stream, "{msg:02x?}");
    assert!(pieces.len() <= naive.reads.len() + 2 * naive.chunks.len() + 1);

    let mut full = naive.chunks.iter().filter(|(_, len)| *len > 0);
    let layout = match (naive.nomsg, full.next(), full.next()) {
        (false, None, _) => Layout::Inline,
        // Chunks in front of it are empty: the position is the offset in the payload, too.
        (false, Some((position, len)), None) => Layout::Single {
            position: *position,
            chunk_len: u32::try_from(*len).unwrap(),
        },
        _ => Layout::Stream,
    };
    assert_eq!(call.layout(), layout);
    let remote = naive
        .stream
        .iter()
        .any(|byte| matches!(byte, Src::Remote(..)));
    assert_eq!(call.has_read_chunks(), remote);

    if let Layout::Single {
        position,
        chunk_len,
    } = layout
    {
        // What the transport presents to sunrpc: head, pages, tail.
        let position = position as usize;
        let pages = chunk_len.next_multiple_of(4) as usize;
        let mut xdr: Vec<Src> = (0..position).map(Src::Inline).collect();
        xdr.extend(&naive.stream[position..position + pages]);
        xdr.extend((position..call.payload().len()).map(Src::Inline));
        assert_eq!(xdr, naive.stream);
    }
}

/// I9: pages and work requests, counted byte by byte.
fn check_demand(call: &Call<'_>, naive: &naive::Call) {
    let single = matches!(call.layout(), Layout::Single { .. });
    let sunk: Vec<Src> = match call.layout() {
        Layout::Inline => Vec::new(),
        Layout::Single { .. } => naive
            .stream
            .iter()
            .filter(|byte| !matches!(byte, Src::Inline(_)))
            .copied()
            .collect(),
        Layout::Stream => naive.stream.clone(),
    };
    assert_eq!(call.sink_pages(), sunk.len().div_ceil(4096));

    for max_sge in [1, 2, 3, 32] {
        let mut sges = 0;
        let mut work_requests = 0;
        let mut at = 0;
        for piece in call.assembly() {
            let len = match piece {
                Piece::Inline { .. } if single => 0,
                Piece::Inline { len, .. } | Piece::Pad { len } | Piece::Remote { len, .. } => len,
            };
            if matches!(piece, Piece::Remote { .. }) {
                let mut pages: Vec<u32> = (at..at + len).map(|n| n / 4096).collect();
                pages.dedup();
                sges += pages.len();
                work_requests += pages.chunks(max_sge).count();
            }
            at += len;
        }
        let demand = call.read_demand(NonZeroU32::new(u32::try_from(max_sge).unwrap()).unwrap());
        assert_eq!(demand.sges as usize, sges);
        assert_eq!(demand.work_requests as usize, work_requests);
        let pieces = naive.reads.len() + 2 * naive.chunks.len() + 1;
        let bound = pieces + naive.stream.len() / (4096 * max_sge) + pieces;
        assert!(demand.work_requests as usize <= bound);
    }
}

/// A view made again is the same view, and stays harmless on bytes that are not its own.
fn check_shape(msg: &[u8], call: &Call<'_>) {
    let shape = call.shape();
    let again = Call::from_shape(msg, shape).unwrap();
    assert_eq!(again.payload(), call.payload());
    assert_eq!(again.reply_lists_wire(), call.reply_lists_wire());
    assert!(again.assembly().eq(call.assembly()));
    assert!(Call::from_shape(&msg[..msg.len() - 1], shape).is_none());

    let inverted: Vec<u8> = msg.iter().map(|byte| !byte).collect();
    let mut longer = msg.to_vec();
    for entry in longer[16..call.header_len()].chunks_exact_mut(24) {
        // The length, if this is a Read segment.
        entry[12..16].copy_from_slice(&[0x7f; 4]);
    }
    for wrong in [inverted, longer] {
        let wrong = Call::from_shape(&wrong, shape).unwrap();
        let len: u64 = wrong
            .assembly()
            .map(|piece| match piece {
                Piece::Inline { len, .. } | Piece::Pad { len } | Piece::Remote { len, .. } => {
                    u64::from(len)
                }
            })
            .sum();
        assert!(len <= u64::from(call.call_len()));
    }
}
