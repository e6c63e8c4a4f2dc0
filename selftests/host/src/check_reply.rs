// SPDX-License-Identifier: GPL-2.0

//! Checks everything that the reply planner promises, against a plan made byte by byte.

use crate::{
    frame::{
        words,
        Frame,
        Seg, //
    },
    naive::{
        self,
        Reply, //
    },
    proto::{
        payloads::Payloads,
        plan::ReplyError,
        plan_reply,
        ReplyForm,
        ReplyLists,
        ReplyPlan,
        Xid, //
    },
};

use std::num::NonZeroU32;

/// One reply to plan.
#[derive(Clone, Debug)]
pub(crate) struct ReplyCase {
    pub(crate) writes: Vec<Vec<Seg>>,
    pub(crate) reply: Option<Vec<Seg>>,
    /// Offset and length of each payload, as reported.
    pub(crate) payloads: Vec<(u32, u32)>,
    pub(crate) xdr_len: u32,
    pub(crate) inline_max: u32,
}

/// What came out.
pub(crate) struct Outcome {
    pub(crate) pushes: Vec<Result<(), ReplyError>>,
    pub(crate) plan: Result<ReplyPlan, ReplyError>,
}

/// Bytes of the Send.
pub(crate) fn wire_len(plan: &ReplyPlan) -> usize {
    let inline: usize = plan.inline_ranges().map(|range| range.len as usize).sum();
    assert_eq!(plan.wire_len(), plan.header_len() + inline);
    plan.wire_len()
}

/// Where one byte of the reply stream is written to: handle, address, offset in the stream.
type Written = (u32, u64, u32);

impl ReplyCase {
    /// The raw lists, as the Call would have brought them.
    pub(crate) fn wire(&self) -> Vec<u8> {
        let frame = Frame {
            writes: self.writes.clone(),
            reply: self.reply.clone(),
            ..Frame::nomsg()
        };
        words(&frame.reply_lists())
    }

    /// Plans the reply and checks all invariants.
    pub(crate) fn check(&self) -> Outcome {
        let wire = self.wire();
        let lists = ReplyLists::from_wire(&wire).unwrap();
        let mut payloads = Payloads::default();
        let mut bound: Vec<Option<(u32, u32)>> = vec![None; self.writes.len()];
        let mut turn = 0;
        let mut pushes = Vec::new();

        for (off, len) in &self.payloads {
            let pushed = payloads.push(&lists, *off, *len);
            assert_eq!(pushed, self.bind(&mut bound, &mut turn, *off, *len));
            pushes.push(pushed);
        }
        let plan = plan_reply(&lists, &payloads, self.xdr_len, self.inline_max);
        for payload in &mut bound {
            // Given up after it was reported.
            *payload = payload.filter(|(off, len)| off + len <= self.xdr_len);
        }
        self.check_plan(&lists, &bound, &plan);
        Outcome { pushes, plan }
    }

    /// Binds one payload to a chunk.
    fn bind(
        &self,
        bound: &mut [Option<(u32, u32)>],
        turn: &mut usize,
        off: u32,
        len: u32,
    ) -> Result<(), ReplyError> {
        let end = u64::from(off) + u64::from(len).next_multiple_of(4);
        if off % 4 != 0 || end > u64::from(u32::MAX) {
            return Err(ReplyError::BadPayload);
        }
        for payload in bound.iter_mut() {
            *payload = payload.filter(|(at, len)| at + len.next_multiple_of(4) <= off);
        }
        if *turn == self.writes.len() {
            return Ok(());
        }
        let chunk = &self.writes[*turn];
        *turn += 1;
        if len == 0 || chunk.is_empty() {
            return Ok(());
        }
        if chunk.iter().map(|seg| u64::from(seg.1)).sum::<u64>() < u64::from(len) {
            return Err(ReplyError::WriteChunkTooSmall);
        }
        bound[*turn - 1] = Some((off, len));
        Ok(())
    }

    /// The offsets that are in no Write chunk.
    fn reduced(&self, bound: &[Option<(u32, u32)>]) -> Vec<u32> {
        let mut inline = vec![true; self.xdr_len as usize];
        for (off, len) in bound.iter().flatten() {
            let end = (off + len.next_multiple_of(4)).min(self.xdr_len);
            inline[*off as usize..end as usize].fill(false);
        }
        (0..self.xdr_len)
            .filter(|off| inline[*off as usize])
            .collect()
    }

    fn check_plan(
        &self,
        lists: &ReplyLists<'_>,
        bound: &[Option<(u32, u32)>],
        plan: &Result<ReplyPlan, ReplyError>,
    ) {
        let reduced = self.reduced(bound);
        let header_len = 20 + self.wire().len();
        let inline_max = self.inline_max as usize;
        let room = self
            .reply
            .as_ref()
            .map(|chunk| chunk.iter().map(|seg| seg.1 as usize).sum::<usize>());

        let form = if header_len > inline_max {
            Err(ReplyError::HeaderTooLarge)
        } else if header_len + reduced.len() <= inline_max {
            Ok(ReplyForm::Inline)
        } else {
            match (room, &self.reply) {
                (Some(room), _) if room >= reduced.len() => Ok(ReplyForm::ReplyChunk),
                (Some(_), Some(chunk)) if !chunk.is_empty() => Err(ReplyError::ReplyChunkTooSmall),
                _ => Err(ReplyError::NoReplyChunk),
            }
        };
        assert_eq!(plan.map(|plan| plan.form()), form);
        let Ok(plan) = plan else { return };

        // I12.
        let inline: Vec<u32> = plan
            .inline_ranges()
            .inspect(|range| assert!(range.len > 0))
            .flat_map(|range| range.off..range.off + range.len)
            .collect();
        let nothing = Vec::new();
        let expected = match plan.form() {
            ReplyForm::Inline => &reduced,
            ReplyForm::ReplyChunk => &nothing,
        };
        assert_eq!(&inline, expected);
        assert_eq!(plan.header_len(), header_len);
        assert_eq!(wire_len(plan), header_len + expected.len());
        assert!(wire_len(plan) <= inline_max);
        assert!(plan.inline_ranges().count() <= self.writes.len() + 1);

        self.check_writes(lists, bound, &reduced, plan);
        self.check_header(lists, bound, &reduced, plan);
    }

    /// I13: each byte once, in order, inside one segment per op.
    fn check_writes(
        &self,
        lists: &ReplyLists<'_>,
        bound: &[Option<(u32, u32)>],
        reduced: &[u32],
        plan: &ReplyPlan,
    ) {
        let mut expected: Vec<Written> = Vec::new();
        for (chunk, payload) in self.writes.iter().zip(bound) {
            if let Some((off, len)) = payload {
                let src: Vec<u32> = (*off..off + len).collect();
                fill(&mut expected, chunk, &src);
            }
        }
        if plan.form() == ReplyForm::ReplyChunk {
            fill(&mut expected, self.reply.as_ref().unwrap(), reduced);
        }

        let mut written = Vec::new();
        for op in plan.writes(lists) {
            assert!(op.len > 0);
            let segs = self
                .writes
                .iter()
                .flatten()
                .chain(self.reply.iter().flatten());
            assert!(segs.into_iter().any(|seg| seg.0 == op.handle
                && seg.2 <= op.offset
                && op.offset + u64::from(op.len) <= seg.2 + u64::from(seg.1)));
            written
                .extend((0..op.len).map(|n| (op.handle, op.offset + u64::from(n), op.src_off + n)));
        }
        assert_eq!(written, expected);
        assert_eq!(plan.write_count(lists), plan.writes(lists).count());

        let segs: usize = self.writes.iter().map(Vec::len).sum();
        let reply_segs = self.reply.as_ref().map_or(0, Vec::len);
        assert!(plan.write_count(lists) <= segs + reply_segs + self.writes.len() + 1);
    }

    /// I14: the header echoes the lists; only lengths differ, and they say what was written.
    fn check_header(
        &self,
        lists: &ReplyLists<'_>,
        bound: &[Option<(u32, u32)>],
        reduced: &[u32],
        plan: &ReplyPlan,
    ) {
        const CANARY: u8 = 0xa5;
        let xid = Xid([0, 1, 0xfe, 0xff]);
        let grant = NonZeroU32::new(0x80).unwrap();

        let mut out = vec![CANARY; plan.header_len() + 8];
        assert_eq!(
            plan.encode(&mut out, lists, xid, grant),
            Ok(plan.header_len())
        );
        assert!(out[plan.header_len()..].iter().all(|byte| *byte == CANARY));

        let reply_chunk_len = match plan.form() {
            ReplyForm::Inline => 0,
            ReplyForm::ReplyChunk => reduced.len(),
        };
        let expected = Reply {
            xid: 0x0001_feff,
            vers: 1,
            grant: 0x80,
            procedure: u32::from(plan.form() == ReplyForm::ReplyChunk),
            writes: self
                .writes
                .iter()
                .zip(bound)
                .map(|(chunk, payload)| echo(chunk, payload.map_or(0, |(_, len)| len as usize)))
                .collect(),
            reply: self
                .reply
                .as_ref()
                .map(|chunk| echo(chunk, reply_chunk_len)),
        };
        assert_eq!(
            naive::decode_reply(&out[..plan.header_len()]),
            Some(expected)
        );

        // Too small a buffer is refused, and nothing outside is touched.
        let mut short = vec![CANARY; plan.header_len()];
        assert!(plan
            .encode(&mut short[..plan.header_len() - 1], lists, xid, grant)
            .is_err());
        assert_eq!(short.last(), Some(&CANARY));
    }
}

/// Fills the segments of `chunk` from the front with the bytes at `src`.
fn fill(written: &mut Vec<Written>, chunk: &[Seg], src: &[u32]) {
    let mut cells = chunk.iter().flat_map(|(handle, length, offset)| {
        (0..u64::from(*length)).map(move |n| (*handle, *offset + n))
    });
    for off in src {
        let (handle, address) = cells.next().unwrap();
        written.push((handle, address, *off));
    }
}

/// The chunk as the reply header shows it.
fn echo(chunk: &[Seg], written: usize) -> Vec<Seg> {
    let mut left = written;
    chunk
        .iter()
        .map(|(handle, length, offset)| {
            let len = left.min(*length as usize);
            left -= len;
            (*handle, u32::try_from(len).unwrap(), *offset)
        })
        .collect()
}
