// SPDX-License-Identifier: GPL-2.0

//! What the fuzz targets do with their input. The tests run the committed corpus through the same
//! functions.

use crate::{
    check_call::check_call,
    check_reply::ReplyCase,
    frame::{
        rpc_call,
        Frame,
        Seg,
        X, //
    },
    proto::{
        cm_private,
        encode_cm_private,
        CmPrivate,
        Ingress,
        Limits, //
    },
};

/// Takes small numbers out of fuzz input; zeroes when it is used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *byte
    }

    /// A number below `end`.
    fn below(&mut self, end: u32) -> u32 {
        let number = u32::from(self.byte()) << 8 | u32::from(self.byte());
        number % end
    }

    /// A segment of less than `end` bytes.
    fn seg(&mut self, end: u32) -> Seg {
        let handle = u32::from(self.byte() % 4);
        let length = self.below(end);
        (handle, length, u64::from(self.byte()) << 32)
    }

    fn chunk(&mut self, end: u32) -> Vec<Seg> {
        (0..self.below(5)).map(|_| self.seg(end)).collect()
    }
}

/// A message as it is; its XID, which decides nothing else, also chooses the limits.
pub(crate) fn parse(data: &[u8]) {
    let (segments, bytes) = match data {
        [segments, bytes, ..] => (*segments, *bytes),
        _ => (0, 0),
    };
    let limits = Limits {
        max_segments: u16::from(segments),
        max_call_bytes: u32::from(bytes) * 64,
    };
    let _ = check_call(data, &limits);
}

/// A well-formed message made from the input: it goes deeper than bytes do.
pub(crate) fn assembly(data: &[u8]) {
    let mut input = Input(data);
    let nomsg = input.byte() & 1 == 1;
    let mut frame = if nomsg {
        Frame::nomsg()
    } else {
        let len = 40 + input.below(100) as usize;
        Frame::msg(rpc_call(X, len))
    };
    let limits = Limits {
        max_segments: 32,
        max_call_bytes: 64 * u32::from(input.byte()),
    };

    for _ in 0..input.below(12) {
        let position = match input.byte() % 4 {
            0 if nomsg => 0,
            _ => 40 + 4 * input.below(50),
        };
        frame = frame.read(position, input.seg(70));
    }
    for _ in 0..input.below(4) {
        frame = frame.write(&input.chunk(100));
    }
    if input.byte() & 1 == 1 {
        frame = frame.reply(&input.chunk(100));
    }

    let bytes = frame.bytes();
    if let Ok(Ingress::Call(call)) = check_call(&bytes, &limits) {
        assert_eq!(call.payload(), frame.payload);
        assert_eq!(call.header_len() + frame.payload.len(), bytes.len());
    }
}

/// A reply made from the input.
pub(crate) fn reply(data: &[u8]) {
    let mut input = Input(data);
    let writes = (0..input.below(5)).map(|_| input.chunk(60)).collect();
    let reply = (input.byte() & 1 == 1).then(|| input.chunk(200));
    let mut at = 0;
    let mut payloads = Vec::new();
    for _ in 0..input.below(8) {
        at += 4 * input.below(20);
        let len = input.below(80);
        payloads.push((at, len));
        at += len & !3;
    }
    let case = ReplyCase {
        writes,
        reply,
        payloads,
        xdr_len: input.below(600),
        inline_max: input.below(600),
    };
    case.check();
}

/// Private data as it is.
pub(crate) fn private(data: &[u8]) {
    let found = cm_private(data);
    let mut expected = CmPrivate {
        remote_inv: false,
        send: 1024,
        recv: 1024,
    };
    for at in (0..data.len()).rev() {
        if let [0xf6, 0xab, 0x0e, 0x18, 1, flags, send, recv, ..] = data[at..] {
            expected = CmPrivate {
                remote_inv: flags % 2 == 1,
                send: (u32::from(send) + 1) * 1024,
                recv: (u32::from(recv) + 1) * 1024,
            };
        }
    }
    assert_eq!(found, expected);
    let again = encode_cm_private(&found).unwrap();
    assert_eq!(cm_private(&again), found);
}
