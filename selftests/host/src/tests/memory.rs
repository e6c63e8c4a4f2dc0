// SPDX-License-Identifier: GPL-2.0

//! Replies carried out on memory with canaries around each segment, and put together again as a
//! requester would.

use super::property::{
    config,
    reply_case, //
};
use crate::{
    check_reply::{
        wire_len,
        ReplyCase, //
    },
    frame::Seg,
    naive::decode_reply,
    proto::{
        payloads::Payloads,
        plan_reply,
        ReplyLists,
        Xid, //
    },
};

use proptest::prelude::*;

use std::{
    collections::BTreeMap,
    num::NonZeroU32, //
};

const CANARY: u8 = 0xa5;
const GUARD: usize = 64;

/// Registered memory, by handle: each segment has a region with a guard at both ends.
struct Memory(BTreeMap<u32, (u64, Vec<u8>)>);

impl Memory {
    /// Gives each segment of `case` a handle and a region of its own.
    fn register(case: &mut ReplyCase) -> Self {
        let mut memory = BTreeMap::new();
        let all = case
            .writes
            .iter_mut()
            .flatten()
            .chain(case.reply.iter_mut().flatten());
        for (handle, seg) in (1..).zip(all) {
            seg.0 = handle;
            let region = vec![CANARY; seg.1 as usize + 2 * GUARD];
            memory.insert(handle, (seg.2, region));
        }
        Self(memory)
    }

    fn write(&mut self, handle: u32, offset: u64, bytes: &[u8]) {
        let (base, region) = self.0.get_mut(&handle).unwrap();
        let at = GUARD + usize::try_from(offset - *base).unwrap();
        region[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Takes the bytes that a reply header says were written, and checks that no other changed.
    fn take(&self, seg: &Seg) -> Vec<u8> {
        let (_, region) = &self.0[&seg.0];
        let (before, rest) = region.split_at(GUARD);
        let (bytes, after) = rest.split_at(seg.1 as usize);
        assert!(before.iter().chain(after).all(|byte| *byte == CANARY));
        bytes.to_vec()
    }
}

/// The stream: no byte is a canary.
fn stream(len: u32) -> Vec<u8> {
    (0..len).map(|n| (n % 101) as u8).collect()
}

fn run(mut case: ReplyCase) {
    let mut memory = Memory::register(&mut case);
    let wire = case.wire();
    let lists = ReplyLists::from_wire(&wire).unwrap();
    let mut payloads = Payloads::default();
    for (off, len) in &case.payloads {
        let _ = payloads.push(&lists, *off, *len);
    }
    let Ok(plan) = plan_reply(&lists, &payloads, case.xdr_len, case.inline_max) else {
        return;
    };

    let xdr = stream(case.xdr_len);
    for op in plan.writes(&lists) {
        let src = op.src_off as usize;
        memory.write(op.handle, op.offset, &xdr[src..src + op.len as usize]);
    }
    let mut send = vec![0; plan.header_len()];
    plan.encode(&mut send, &lists, Xid([1; 4]), NonZeroU32::MIN)
        .unwrap();
    for range in plan.inline_ranges() {
        let off = range.off as usize;
        send.extend(&xdr[off..off + range.len as usize]);
    }
    assert_eq!(send.len(), wire_len(&plan));

    // The requester: what is in the chunks, and what remains for the stream.
    let header = decode_reply(&send[..plan.header_len()]).unwrap();
    let chunks: Vec<Vec<u8>> = header
        .writes
        .iter()
        .map(|chunk| chunk.iter().flat_map(|seg| memory.take(seg)).collect())
        .collect();
    let reply: Vec<u8> = header
        .reply
        .iter()
        .flatten()
        .flat_map(|seg| memory.take(seg))
        .collect();
    let reduced = if header.procedure == 1 {
        assert!(send.len() == plan.header_len());
        reply
    } else {
        assert!(reply.is_empty());
        send.split_off(plan.header_len())
    };

    // It knows from the results where each item belongs; here, from the order of the bytes.
    let mut rebuilt = Vec::new();
    let mut rest = &reduced[..];
    let mut items: Vec<(usize, &[u8])> = Vec::new();
    for (chunk, bytes) in chunks.iter().enumerate() {
        if !bytes.is_empty() {
            let first = plan
                .writes(&lists)
                .find(|op| case.writes[chunk].iter().any(|seg| seg.0 == op.handle));
            items.push((first.unwrap().src_off as usize, bytes));
        }
    }
    for (off, bytes) in items {
        let (before, after) = rest.split_at(off - rebuilt.len());
        rest = after;
        rebuilt.extend(before);
        rebuilt.extend(bytes);
        // The roundup is the requester's own.
        while rebuilt.len() % 4 != 0 && rebuilt.len() < xdr.len() {
            rebuilt.push(xdr[rebuilt.len()]);
        }
    }
    rebuilt.extend(rest);
    assert_eq!(rebuilt, xdr);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn canaries_stay(case in reply_case()) {
        run(case);
    }
}
