// SPDX-License-Identifier: GPL-2.0
//! Calls of the reverse direction (RFC 8167), taken apart to their last byte: CB_COMPOUNDs of a
//! session (RFC 8881, section 20).

use crate::{
    case::check,
    frame::{self, Words},
};

/// The program number that sessions name for callbacks.
pub const PROGRAM: u32 = 0x4000_0000;

const CB_RECALL: u32 = 4;
const CB_RECALL_ANY: u32 = 8;
const CB_SEQUENCE: u32 = 11;

pub struct Callback {
    pub xid: u32,
    /// How many replies the server takes at once.
    pub credits: u32,
    pub session: [u8; 16],
    pub slot: u32,
    pub number: u32,
    /// The results that its COMPOUND should have.
    pub results: Vec<u8>,
}

impl Callback {
    /// A message that is a call without chunks.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut words = Words::new(bytes);
        let xid = words.word()?;
        let header: Vec<_> = (0..10).map(|_| words.word()).collect::<Result<_, _>>()?;
        let credits = header[1];
        check(
            header[0] == 1 && credits >= 1 && header[2..6] == [0; 4],
            || format!("header of a callback: {header:x?}"),
        )?;
        check(header[6..] == [xid, 0, 2, PROGRAM], || {
            format!("XID {xid:#x}, call {:x?}", &header[6..])
        })?;
        let (_, procedure) = (words.word()?, words.word()?);
        check(procedure == 1, || {
            format!("procedure {procedure} of callbacks")
        })?;
        for _ in 0..2 {
            words.word()?;
            words.opaque()?;
        }
        words.opaque()?;
        let (minor, _, count) = (words.word()?, words.word()?, words.word()?);
        check(
            minor >= 1 && count >= 1 && words.word()? == CB_SEQUENCE,
            || format!("minor version {minor}, {count} operations, the first is not CB_SEQUENCE"),
        )?;
        let sequence = words.clone().take(28)?;
        let session = words.take(16)?.try_into().expect("16 bytes");
        let (number, slot) = (words.word()?, words.word()?);
        words.word()?;
        words.boolean()?;
        for _ in 0..words.word()? {
            words.take(16)?;
            let calls = words.word()? as usize;
            words.take(calls * 8)?;
        }
        // What CB_SEQUENCE had, with its highest slot as the target, then the other operations.
        let mut results = [
            frame::words(&[0, 0, count, CB_SEQUENCE, 0]),
            sequence.to_vec(),
            sequence[24..28].to_vec(),
        ]
        .concat();
        for _ in 1..count {
            let operation = words.word()?;
            match operation {
                CB_RECALL => {
                    words.take(16)?;
                    words.boolean()?;
                    words.opaque()?;
                }
                CB_RECALL_ANY => {
                    words.word()?;
                    let bitmap = words.word()? as usize;
                    words.take(bitmap * 4)?;
                }
                other => return Err(format!("operation {other} in a callback")),
            }
            results.extend(frame::words(&[operation, 0]));
        }
        words.end()?;
        Ok(Self {
            xid,
            credits,
            session,
            slot,
            number,
            results,
        })
    }
}
