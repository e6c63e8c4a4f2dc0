// SPDX-License-Identifier: GPL-2.0
//! A peer that misbehaves on purpose, so that each verdict is seen to fail.
//!
//! It answers the suite's probes and control calls as it should, by handing them
//! to a real NFS server over TCP, and everything else as its mutant says.

use std::{
    collections::HashMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use verbs_sys as sys;

use crate::{
    cm::{self, Address, Id},
    connection::{Connection, Event, Options},
    frame::{words, Lists, Segment, Words},
    memory::{failed, Access, Region},
    mutate::parse,
    private::Settings,
    send::Send,
    tcp::Tcp,
};

/// Ways to answer a case's message.
pub const MUTANTS: &[(&str, &str)] = &[
    ("mute", "never answers anything but probes"),
    ("deaf", "never answers, not even a probe behind it"),
    ("chunk", "answers everything with ERR_CHUNK"),
    ("versions", "answers everything with ERR_VERS"),
    (
        "yes",
        "answers everything with an RPC reply of success and no results",
    ),
    ("garbage", "answers everything with GARBAGE_ARGS"),
    ("close", "closes the connection at each message"),
    (
        "stale",
        "ERR_CHUNK with bytes of an earlier message behind it",
    ),
    ("other-xid", "ERR_CHUNK with another XID"),
    ("no-credit", "ERR_CHUNK that grants nothing"),
    (
        "proxy",
        "hands inline calls on, ignores chunk lists: nothing is echoed",
    ),
    (
        "proxy-echo",
        "hands inline calls on and echoes chunks as if they were full",
    ),
    (
        "proxy-unused",
        "hands inline calls on, leaves every chunk unused",
    ),
    ("proxy-twice", "hands inline calls on, answers twice"),
    (
        "proxy-long",
        "hands inline calls on, four bytes more in each reply",
    ),
    (
        "refuse",
        "rejects every connection but the control connection",
    ),
    (
        "spill",
        "writes a byte in front of each advertised segment, then ERR_CHUNK",
    ),
    (
        "callback",
        "proxy-unused with callbacks, all as it should be but for chunks",
    ),
    (
        "callback-chunks",
        "the same, with a Write list in each callback",
    ),
    (
        "callback-long",
        "the same, 1,100 bytes more in each callback",
    ),
    ("callback-xid", "the same, two XIDs in each callback"),
    ("callback-lost", "the same, no callback comes through"),
    (
        "roomy",
        "takes longer messages than it says, then ERR_CHUNK",
    ),
    (
        "open",
        "lets its memory be read and written, and says where it is",
    ),
    ("fragile", "closes all connections when one of them fails"),
    ("datagram", "accepts datagram connections, too"),
];

struct Peer {
    connection: Connection,
    /// What it lets anybody read and write.
    _open: Option<Region>,
    /// Of its own, as callbacks come on the connection that a session was made on.
    tcp: Option<Tcp>,
    closing: bool,
    silent: bool,
}

/// Serve until killed.
pub fn serve(address: SocketAddr, tcp: SocketAddr, mutant: &str) -> Result<bool, String> {
    if !MUTANTS.iter().any(|(name, _)| *name == mutant) {
        let names: Vec<_> = MUTANTS
            .iter()
            .map(|(name, what)| format!("  {name:<14} {what}"))
            .collect();
        return Err(format!("no such mutant; there are:\n{}", names.join("\n")));
    }
    let mut server = Server {
        tcp: Tcp::connect(tcp).map_err(|e| format!("{tcp}: {e}"))?,
        address: tcp,
        mutant: mutant.to_string(),
        earlier: vec![0x5a; 64],
        peers: HashMap::new(),
        accepted: 0,
        shattered: false,
    };
    server.serve(address).map_err(|e| e.to_string())?;
    Ok(true)
}

/// What a peer that lets its memory be read and written says in its private data.
const OPEN: &[u8] = b"open";

fn open_memory(region: &Region) -> Vec<u8> {
    let mut said = OPEN.to_vec();
    said.extend(region.segment(0, 8).encode());
    said
}

/// The memory that a peer has named so, in the private data of its acceptance.
pub fn named_memory(private: &[u8]) -> Option<Segment> {
    let at = private.windows(4).position(|w| w == OPEN)?;
    Words::new(&private[at + 4..]).segment().ok()
}

fn listen(address: SocketAddr, port_space: u32) -> std::io::Result<Id> {
    let listener = Id::new(port_space)?;
    let mut address = Address::new(address);
    // SAFETY: identifier and address exist during the calls.
    unsafe {
        if sys::rdma_bind_addr(listener.raw, address.pointer()) != 0 {
            return Err(failed("rdma_bind_addr"));
        }
        if sys::rdma_listen(listener.raw, 64) != 0 {
            return Err(failed("rdma_listen"));
        }
    }
    Ok(listener)
}

struct Server {
    tcp: Tcp,
    address: SocketAddr,
    mutant: String,
    earlier: Vec<u8>,
    peers: HashMap<usize, Peer>,
    accepted: u32,
    shattered: bool,
}

impl Server {
    fn serve(&mut self, address: SocketAddr) -> std::io::Result<()> {
        let listener = listen(address, sys::RDMA_PS_TCP)?;
        let datagrams = match self.mutant.as_str() {
            "datagram" => Some(listen(address, sys::RDMA_PS_UDP)?),
            _ => None,
        };
        println!("listening");
        loop {
            while let Some(event) = listener.channel.next() {
                self.meet(&event, sys::RDMA_PS_TCP);
            }
            while let Some(event) = datagrams.as_ref().and_then(|d| d.channel.next()) {
                self.meet(&event, sys::RDMA_PS_UDP);
            }
            let mut gone = Vec::new();
            let mut names: Vec<_> = self.peers.keys().copied().collect();
            names.sort_unstable();
            for name in names {
                if !self.attend(name) {
                    gone.push(name);
                }
            }
            if self.shattered {
                self.peers.clear();
                self.shattered = false;
            }
            gone.iter().for_each(|name| {
                self.peers.remove(name);
            });
            cm::poll(
                &[listener.channel.descriptor()],
                Instant::now() + Duration::from_millis(1),
            );
        }
    }

    /// A client that asks for a connection; it may have gone meanwhile.
    fn meet(&mut self, event: &cm::Event, port_space: u32) {
        if event.kind == sys::RDMA_CM_EVENT_CONNECT_REQUEST {
            if let Err(error) = self.accept(event.id, port_space) {
                println!("not accepted: {error}");
            }
        }
    }

    fn accept(&mut self, raw: *mut sys::rdma_cm_id, port_space: u32) -> std::io::Result<()> {
        self.accepted += 1;
        let id = Id::adopt(raw)?;
        if self.mutant == "refuse" && self.accepted > 1 {
            // SAFETY: a request that was neither accepted nor rejected yet.
            unsafe { sys::rdma_reject(id.raw, std::ptr::null(), 0) };
            return Ok(());
        }
        let options = Options {
            private: Settings {
                flags: 0,
                send: 3,
                receive: 3,
            }
            .encode(),
            receives: if port_space == sys::RDMA_PS_UDP {
                0
            } else {
                64
            },
            receive_size: if self.mutant == "roomy" { 70_000 } else { 4096 },
            responder_resources: u8::from(self.mutant == "open"),
            initiator_depth: 8,
            port_space,
            ..Options::default()
        };
        let mut connection = Connection::on(id, &options)?;
        let mut open = None;
        if self.mutant == "open" {
            let region = Region::new(&connection.domain, 4096, Access::Open, 0)?;
            connection.say(&open_memory(&region));
            open = Some(region);
        }
        let tcp = match self.mutant.starts_with("callback") {
            true => Some(Tcp::connect(self.address)?),
            false => None,
        };
        if connection.accept().is_ok() {
            self.peers.insert(
                self.accepted as usize,
                Peer {
                    connection,
                    _open: open,
                    tcp,
                    closing: false,
                    silent: false,
                },
            );
        }
        Ok(())
    }

    /// Handle what has come; false when the connection is over.
    fn attend(&mut self, name: usize) -> bool {
        let Some(mut peer) = self.peers.remove(&name) else {
            return false;
        };
        let mut alive = true;
        while let Some(event) = peer.connection.next(Instant::now()) {
            match event {
                Event::Received { bytes, .. } => alive &= self.handle(&mut peer, &bytes).is_ok(),
                Event::Disconnected => alive = false,
                Event::Failed(_) => {
                    alive = false;
                    self.shattered |= self.mutant == "fragile";
                }
                Event::Sent | Event::Other(_) => {}
            }
        }
        alive = alive && self.pass_callbacks(&mut peer).is_ok();
        let stays = alive && !peer.closing;
        if stays {
            self.peers.insert(name, peer);
        }
        stays
    }

    fn handle(&mut self, peer: &mut Peer, bytes: &[u8]) -> std::io::Result<()> {
        if peer.silent {
            return Ok(());
        }
        if bytes.len() > 28 && bytes[0] == 0x50 {
            let reply = self.tcp.exchange(&bytes[28..])?;
            let header = words(&[word(bytes, 0), 1, 32, 0, 0, 0, 0]);
            return peer.connection.send(&[header, reply].concat());
        }
        if let Some(tcp) = peer.tcp.as_mut().filter(|_| word(bytes, 32) == 1) {
            return tcp.send(&bytes[28..]);
        }
        let xid = word(bytes, 0);
        let vers = word(bytes, 4);
        let chunk = words(&[xid, vers, 32, 4, 2]);
        let answer = match self.mutant.as_str() {
            "mute" => return Ok(()),
            "deaf" => {
                peer.silent = true;
                return Ok(());
            }
            "close" => {
                peer.connection.disconnect();
                peer.closing = true;
                return Ok(());
            }
            "chunk" | "refuse" | "roomy" | "open" | "datagram" | "fragile" => chunk,
            "versions" => words(&[xid, vers, 32, 4, 1, 1, 1]),
            "yes" => words(&[xid, 1, 32, 0, 0, 0, 0, xid, 1, 0, 0, 0, 0]),
            "garbage" => words(&[xid, 1, 32, 0, 0, 0, 0, xid, 1, 0, 0, 0, 4]),
            "stale" => [chunk, self.earlier[..8].to_vec()].concat(),
            "other-xid" => words(&[xid ^ 1, vers, 32, 4, 2]),
            "no-credit" => words(&[xid, vers, 0, 4, 2]),
            "spill" => {
                for segment in parse(bytes)
                    .map(|(lists, _)| lists)
                    .unwrap_or_default()
                    .echoed()
                    .flatten()
                {
                    let kind = Send::Write {
                        key: segment.handle,
                        address: segment.offset.wrapping_sub(1),
                    };
                    peer.connection.send_as(&[0x77], kind, 1)?;
                }
                chunk
            }
            _ => return self.proxy(peer, bytes),
        };
        self.earlier = [bytes, &[0x5a; 8]].concat();
        peer.connection.send(&answer)
    }

    fn pass_callbacks(&self, peer: &mut Peer) -> std::io::Result<()> {
        while let Some(tcp) = &mut peer.tcp {
            if !tcp.pending()? {
                break;
            }
            let record = tcp.receive()?;
            self.call_back(&mut peer.connection, &record)?;
        }
        Ok(())
    }

    fn call_back(&self, connection: &mut Connection, call: &[u8]) -> std::io::Result<()> {
        let mut header = vec![word(call, 0), 1, 2, 0, 0, 0, 0];
        let mut more = Vec::new();
        match self.mutant.as_str() {
            "callback-lost" => return Ok(()),
            "callback-chunks" => header
                .splice(5..6, [1, 1, 0x77, 64, 0, 0x1000, 0])
                .for_each(drop),
            "callback-long" => more = vec![0; 1100],
            "callback-xid" => header[0] ^= 1,
            _ => {}
        }
        connection.send(&[words(&header), call.to_vec(), more].concat())
    }

    /// Hand an inline call on; what becomes of the lists is the mutant's matter.
    fn proxy(&mut self, peer: &mut Peer, bytes: &[u8]) -> std::io::Result<()> {
        let xid = word(bytes, 0);
        let Some((mut echoed, payload)) =
            parse(bytes).filter(|(_, p)| p.len() >= 40 && word(p, 4) == 0)
        else {
            return Ok(());
        };
        let mut reply = match &mut peer.tcp {
            Some(tcp) => {
                tcp.send(payload)?;
                loop {
                    let record = tcp.receive()?;
                    if word(&record, 4) == 1 {
                        break record;
                    }
                    self.call_back(&mut peer.connection, &record)?;
                }
            }
            None => self.tcp.exchange(payload)?,
        };
        let clear = |chunk: &mut Vec<Segment>| chunk.iter_mut().for_each(|s| s.length = 0);
        match self.mutant.as_str() {
            name if name.starts_with("callback")
                || ["proxy-unused", "proxy-twice"].contains(&name) =>
            {
                echoed.writes.iter_mut().for_each(clear);
                echoed.reply.iter_mut().for_each(clear);
            }
            "proxy" => echoed = Lists::default(),
            "proxy-long" => reply.extend([0; 4]),
            _ => {}
        }
        echoed.reads.clear();
        reply.truncate(3900 - echoed.encode().len().min(3000));
        let message = [words(&[xid, 1, 32, 0]), echoed.encode(), reply].concat();
        if self.mutant == "proxy-twice" {
            peer.connection.send(&message)?;
        }
        peer.connection.send(&message)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}
