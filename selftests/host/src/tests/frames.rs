// SPDX-License-Identifier: GPL-2.0

//! The reference frames A to I, as the bytes in the reference text.

use super::{
    call,
    expect,
    Is, //
};
use crate::{
    frame::hex,
    proto::{
        encode_err_chunk,
        encode_err_vers,
        encode_reverse_call,
        parse,
        payloads::Payloads,
        plan_reply,
        writes::WriteOp,
        Answer,
        Layout,
        Piece,
        ReplyForm,
        ReplyLists,
        Xid, //
    },
};

use std::num::NonZeroU32;

const NULL: &str = "1a2b3c4d 00000000 00000002 000186a3 00000003 00000000
                    00000000 00000000 00000000 00000000";
const START: &str = "1a2b3c4d 00000001 00000020 00000000";
const XID: Xid = Xid([0x1a, 0x2b, 0x3c, 0x4d]);

fn grant() -> NonZeroU32 {
    NonZeroU32::new(0x80).unwrap()
}

/// Plans a reply to `msg` and returns the plan's form and header.
fn reply_to(msg: &[u8], payload: Option<(u32, u32)>, xdr_len: u32) -> (ReplyForm, Vec<u8>) {
    let call = call(msg);
    let lists = ReplyLists::from_wire(call.reply_lists_wire()).unwrap();
    let mut payloads = Payloads::default();
    if let Some((off, len)) = payload {
        payloads.push(&lists, off, len).unwrap();
    }
    let plan = plan_reply(&lists, &payloads, xdr_len, 4096).unwrap();
    let mut out = vec![0xa5; 4096];
    let len = plan
        .encode(&mut out, &lists, call.fixed().xid, grant())
        .unwrap();
    out.truncate(len);
    (plan.form(), out)
}

#[test]
fn a_null_call_b_its_reply() {
    let msg = hex(&format!("{START} 00000000 00000000 00000000 {NULL}"));
    assert_eq!(msg.len(), 68);
    let null = call(&msg);
    assert_eq!(null.fixed().xid, XID);
    assert_eq!(null.fixed().credits, 0x20);
    assert_eq!((null.header_len(), null.call_len()), (28, 40));
    assert_eq!(null.payload(), hex(NULL));
    assert_eq!(null.layout(), Layout::Inline);
    assert_eq!(null.inv_rkey(), None);
    assert_eq!(null.reply_lists_wire(), [0; 8]);
    assert!(null.assembly().eq([Piece::Inline { off: 0, len: 40 }]));

    let header = hex("1a2b3c4d 00000001 00000080 00000000 00000000 00000000 00000000");
    assert_eq!(reply_to(&msg, None, 24), (ReplyForm::Inline, header));
}

#[test]
fn c_err_vers() {
    let msg = hex(&format!(
        "1a2b3c4d 00000002 00000020 00000000 0 {NULL} 00000000 0000000"
    ));
    let Err(reject) = parse(&msg, &super::LIMITS) else {
        panic!("accepted");
    };
    let Answer::ErrVers(fixed) = reject.answer() else {
        panic!("{reject:?}");
    };
    let answer = hex("1a2b3c4d 00000002 00000080 00000004 00000001 00000001 00000001");
    assert_eq!(encode_err_vers(&fixed, grant())[..], answer);
    expect("C", &answer, Is::PeerError);
}

#[test]
fn d_err_chunk() {
    let msg = hex(&format!("{START} 00000002 00000000 00000000 {NULL}"));
    let Err(reject) = parse(&msg, &super::LIMITS) else {
        panic!("accepted");
    };
    let Answer::ErrChunk(fixed) = reject.answer() else {
        panic!("{reject:?}");
    };
    let answer = hex("1a2b3c4d 00000001 00000080 00000004 00000002");
    assert_eq!(encode_err_chunk(&fixed, grant())[..], answer);
    expect("D", &answer, Is::PeerError);
}

#[test]
fn e_position_zero_read_chunk() {
    let msg = hex("1a2b3c4d 00000001 00000020 00000001
         00000001 00000000 00001234 00000028 00007f00 00001000 00000000 00000000 00000000");
    assert_eq!(msg.len(), 52);
    let call = call(&msg);
    assert_eq!((call.header_len(), call.call_len()), (52, 40));
    assert!(call.payload().is_empty());
    assert_eq!(call.layout(), Layout::Stream);
    assert_eq!(call.inv_rkey(), Some(0x1234));
    assert!(call.assembly().eq([Piece::Remote {
        handle: 0x1234,
        offset: 0x7f00_0000_1000,
        len: 40
    }]));
}

#[test]
fn f_write_chunk_g_its_reply() {
    let msg = hex(&format!(
        "{START} 00000000 | 00000001 00000001 00002345 00001000 00007f00 00002000 00000000 |
         00000000 {NULL}"
    ));
    let header = hex("1a2b3c4d 00000001 00000080 00000000
         00000000 00000001 00000001 00002345 00000064 00007f00 00002000 00000000 00000000");
    // 128 bytes in front of the data, 100 bytes of data.
    assert_eq!(
        reply_to(&msg, Some((128, 100)), 228),
        (ReplyForm::Inline, header)
    );
}

#[test]
fn h_read_chunk() {
    let mut msg = hex(&format!(
        "{START} 00000001 0000005c 00004567 00000005 00007f00 00005000 00000000 | 00000000 |
         00000000 {NULL}"
    ));
    msg.extend([0; 48]);
    msg.extend(hex("00000005"));
    let call = call(&msg);
    assert_eq!((call.payload().len(), call.call_len()), (92, 100));
    assert_eq!(
        call.layout(),
        Layout::Single {
            position: 92,
            chunk_len: 5
        }
    );
    assert_eq!(call.sink_pages(), 1);
    assert!(call.assembly().eq([
        Piece::Inline { off: 0, len: 92 },
        Piece::Remote {
            handle: 0x4567,
            offset: 0x7f00_0000_5000,
            len: 5
        },
        Piece::Pad { len: 3 },
    ]));
}

#[test]
fn i_reply_chunk() {
    let msg = hex(&format!(
        "{START} 00000000 | 00000000 |
         00000001 00000002 00003456 00001000 00007f00 00003000
                           00003456 00001000 00007f00 00004000 {NULL}"
    ));
    let lists = ReplyLists::from_wire(call(&msg).reply_lists_wire()).unwrap();
    let plan = plan_reply(&lists, &Payloads::default(), 5000, 4096).unwrap();
    assert_eq!(plan.form(), ReplyForm::ReplyChunk);
    assert_eq!(plan.inline_ranges().count(), 0);
    assert!(plan.writes(&lists).eq([
        WriteOp {
            handle: 0x3456,
            offset: 0x7f00_0000_3000,
            src_off: 0,
            len: 4096
        },
        WriteOp {
            handle: 0x3456,
            offset: 0x7f00_0000_4000,
            src_off: 4096,
            len: 904
        },
    ]));

    let header = hex("1a2b3c4d 00000001 00000080 00000001 00000000 00000000
         00000001 00000002 00003456 00001000 00007f00 00003000
                           00003456 00000388 00007f00 00004000");
    assert_eq!(reply_to(&msg, None, 5000), (ReplyForm::ReplyChunk, header));

    // A small one goes inline, and says that the chunk is unused.
    let header = hex("1a2b3c4d 00000001 00000080 00000000 00000000 00000000
         00000001 00000002 00003456 00000000 00007f00 00003000
                           00003456 00000000 00007f00 00004000");
    assert_eq!(reply_to(&msg, None, 500), (ReplyForm::Inline, header));
}

#[test]
fn reverse_call() {
    // P29: what the server sends to call back.
    assert_eq!(
        encode_reverse_call(XID, NonZeroU32::new(2).unwrap())[..],
        hex("1a2b3c4d 00000001 00000002 00000000 00000000 00000000 00000000")
    );
}
