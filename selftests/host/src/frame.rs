// SPDX-License-Identifier: GPL-2.0

//! Builds messages, good and bad: nothing is checked here.

/// Transaction id of the reference frames.
pub(crate) const X: u32 = 0x1a2b_3c4d;

/// Credits of the reference frames.
pub(crate) const K: u32 = 0x20;

/// A segment: handle, length, offset.
pub(crate) type Seg = (u32, u32, u64);

/// Big-endian bytes of `words`.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Words of hexadecimal text, in any grouping.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap())
        .collect()
}

/// The NFSv3 NULL Call of the reference frames, 40 bytes.
pub(crate) fn null_call() -> Vec<u8> {
    rpc_call(X, 40)
}

/// An RPC Call of `len` bytes: the NULL Call header, then a counter.
pub(crate) fn rpc_call(xid: u32, len: usize) -> Vec<u8> {
    let mut rpc = words(&[xid, 0, 2, 100_003, 3, 0, 0, 0, 0, 0]);
    rpc.truncate(len);
    while rpc.len() < len {
        rpc.push(u8::try_from(rpc.len() % 251).unwrap());
    }
    rpc
}

/// A message in parts.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) xid: u32,
    pub(crate) vers: u32,
    pub(crate) credits: u32,
    pub(crate) procedure: u32,
    pub(crate) reads: Vec<(u32, Seg)>,
    pub(crate) writes: Vec<Vec<Seg>>,
    pub(crate) reply: Option<Vec<Seg>>,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// RDMA_MSG with a payload.
    pub(crate) fn msg(payload: Vec<u8>) -> Self {
        Self {
            xid: X,
            vers: 1,
            credits: K,
            procedure: 0,
            reads: Vec::new(),
            writes: Vec::new(),
            reply: None,
            payload,
        }
    }

    /// RDMA_NOMSG, without its Position Zero Read chunk.
    pub(crate) fn nomsg() -> Self {
        Self {
            procedure: 1,
            ..Self::msg(Vec::new())
        }
    }

    pub(crate) fn read(mut self, position: u32, seg: Seg) -> Self {
        self.reads.push((position, seg));
        self
    }

    pub(crate) fn write(mut self, segs: &[Seg]) -> Self {
        self.writes.push(segs.to_vec());
        self
    }

    pub(crate) fn reply(mut self, segs: &[Seg]) -> Self {
        self.reply = Some(segs.to_vec());
        self
    }

    /// The fixed header, in words.
    pub(crate) fn fixed(&self) -> Vec<u32> {
        vec![self.xid, self.vers, self.credits, self.procedure]
    }

    /// Write list and Reply chunk, in words.
    pub(crate) fn reply_lists(&self) -> Vec<u32> {
        let mut out = Vec::new();
        for chunk in &self.writes {
            out.push(1);
            push_chunk(&mut out, chunk);
        }
        out.push(0);
        match &self.reply {
            None => out.push(0),
            Some(chunk) => {
                out.push(1);
                push_chunk(&mut out, chunk);
            }
        }
        out
    }

    /// The transport header, in words.
    pub(crate) fn header(&self) -> Vec<u32> {
        let mut out = self.fixed();
        for (position, seg) in &self.reads {
            out.extend([1, *position]);
            push_seg(&mut out, seg);
        }
        out.push(0);
        out.extend(self.reply_lists());
        out
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = words(&self.header());
        out.extend(&self.payload);
        out
    }
}

fn push_chunk(out: &mut Vec<u32>, chunk: &[Seg]) {
    out.push(u32::try_from(chunk.len()).unwrap());
    for seg in chunk {
        push_seg(out, seg);
    }
}

fn push_seg(out: &mut Vec<u32>, (handle, length, offset): &Seg) {
    let high = u32::try_from(offset >> 32).unwrap();
    let low = u32::try_from(offset & 0xffff_ffff).unwrap();
    out.extend([*handle, *length, high, low]);
}
