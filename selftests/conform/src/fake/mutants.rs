// SPDX-License-Identifier: GPL-2.0
//! What a fake peer does wrong: nothing, or one thing.

/// Those that always say the same, and those that are right but for one thing.
const MUTANTS: &[(&str, &str)] = &[
    ("mute", "never answers anything but probes"),
    ("deaf", "never answers, not even a probe behind it"),
    ("chunk", "answers everything with ERR_CHUNK"),
    ("versions", "answers everything with ERR_VERS"),
    ("yes", "answers everything with success and no results"),
    ("garbage", "answers everything with GARBAGE_ARGS"),
    ("close", "closes the connection at each message"),
    ("stale", "ERR_CHUNK with bytes of an earlier message"),
    ("other-xid", "ERR_CHUNK with another XID"),
    ("no-credit", "ERR_CHUNK that grants nothing"),
    ("refuse", "rejects every connection but the first"),
    ("spill", "writes in front of each segment, then ERR_CHUNK"),
    ("roomy", "takes longer messages than it says"),
    ("open", "lets its memory be read and written"),
    (
        "careless",
        "the same, though it allows no Reads in its answer",
    ),
    ("fragile", "closes all connections when one fails"),
    ("datagram", "accepts datagram connections, too"),
    (
        "proxy",
        "nothing: hands calls on to the NFS server over TCP",
    ),
    (
        "proxy-invalidate",
        "nothing: the same, keys are invalidated",
    ),
    (
        "proxy-plain",
        "nothing: the same, without a word of its own, and 1,024 bytes at most",
    ),
    ("unechoed", "leaves chunks out of its replies"),
    ("unused", "uses no Write chunk"),
    ("full", "says that chunks are full"),
    ("backward", "returns segments in the wrong order"),
    ("pad", "writes the roundup behind data in a Write chunk"),
    ("beyond", "writes behind what it says that it wrote"),
    ("squeeze", "writes all of a result, however small the chunk"),
    ("hasty", "writes into chunks after the reply is sent"),
    (
        "late-read",
        "reads the Read chunks of the call before again",
    ),
    ("no-pad", "does not put the roundup behind a Read chunk"),
    (
        "stale-read",
        "takes what a Read chunk lacks from its own memory",
    ),
    ("any-place", "puts Read chunks wherever they say"),
    (
        "boundless",
        "looks at chunks one by one for what is too long",
    ),
    ("nonzero", "takes every discriminator but 0 for 1"),
    (
        "unended",
        "takes what its header lacks at the end for zeros",
    ),
    ("loose-key", "invalidates a key of the call before"),
    ("unasked-key", "invalidates a key without having said so"),
    ("long-send", "sends whatever the length"),
    ("spoil-write", "changes a byte of data that it stores"),
    ("spoil-read", "changes a byte of data that it returns"),
    ("cut", "leaves out the last four bytes of a reply"),
    ("longer", "adds four bytes to a reply"),
    ("wrong-xid", "answers with another XID"),
    ("greedy", "grants N credits (400)"),
    (
        "generous",
        "the same, and Sends without a Receive are repeated without end",
    ),
    (
        "lossy",
        "does not answer every Nth call of a connection (16)",
    ),
    ("fading", "answers the first N calls of a connection (1)"),
    ("leaky", "loses the Receive of what is no call"),
    (
        "crowded",
        "serves no connection that N earlier ones are open beside (100)",
    ),
    ("stores", "carries calls out, then ERR_CHUNK"),
    ("closes", "closes instead of sending ERR_CHUNK"),
    ("twice", "answers twice"),
    ("odd-versions", "ERR_VERS with versions 1 to 2"),
    ("fickle", "ERR_VERS to a call of 48 bytes"),
    (
        "inner-xid",
        "ERR_CHUNK with the XID of the RPC, not the header's",
    ),
    ("own-version", "ERR_VERS with its own version"),
    ("again-fails", "calls that it has seen fail"),
    ("again-differs", "replies to calls that it has seen differ"),
    ("replay", "answers what it has answered again by itself"),
    ("weary", "fails from the Nth connection on (6)"),
    (
        "scarred",
        "spoils data once a call's connection is gone; all but the first late, no GETATTR",
    ),
    ("callback-chunks", "callbacks with a Write list"),
    ("callback-long", "callbacks of 1,100 bytes more"),
    ("callback-xid", "callbacks with two XIDs"),
    ("callback-lost", "no callback comes"),
    (
        "callback-flood",
        "callbacks without regard to credits; asks for one",
    ),
    (
        "callback-stalls",
        "takes a grant of no callbacks at its word",
    ),
    ("callback-single", "one callback at a time"),
    (
        "callback-late",
        "answers two calls behind each callback a second late",
    ),
    ("callback-echo", "sends DESTROY_SESSION back, too"),
    (
        "callback-unasked",
        "a callback behind the second COMPOUND of a session, and on other connections",
    ),
    (
        "callback-blocks",
        "no COMPOUND is answered after a callback",
    ),
    (
        "callback-closes",
        "what is no call ends a connection with callbacks",
    ),
    (
        "callback-confused",
        "a call with a callback's XID is dropped",
    ),
];

pub struct Mutant {
    name: String,
    number: Option<u32>,
}

impl Mutant {
    /// By name, or NAME:N.
    pub fn new(text: &str) -> Result<Self, String> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, number.parse().ok()),
            None => (text, None),
        };
        if MUTANTS.iter().any(|(known, _)| *known == name) {
            return Ok(Self {
                name: name.into(),
                number,
            });
        }
        let names: Vec<_> = MUTANTS
            .iter()
            .map(|(name, what)| format!("  {name:<18} {what}"))
            .collect();
        Err(format!("no such mutant; there are:\n{}", names.join("\n")))
    }

    /// One that does nothing wrong.
    pub fn none() -> Self {
        Self {
            name: "proxy".into(),
            number: None,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// The N of its description.
    pub fn number(&self, default: u32) -> u32 {
        self.number.unwrap_or(default)
    }

    /// What it grants.
    pub fn credits(&self) -> u32 {
        match self.is("greedy") || self.is("generous") {
            true => self.number(400),
            false => 32,
        }
    }

    /// How many callbacks it may have under way once a reply has granted this; it asks for two.
    pub fn window(&self, granted: u32) -> usize {
        let most = if self.is("callback-single") { 1 } else { 2 };
        let least = u32::from(!self.is("callback-stalls"));
        granted.clamp(least, most) as usize
    }

    /// Whether it says that it invalidates keys.
    pub fn invalidates(&self) -> bool {
        self.is("proxy-invalidate") || self.is("loose-key")
    }
}
