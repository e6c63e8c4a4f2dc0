// SPDX-License-Identifier: GPL-2.0
//! A peer that misbehaves on purpose, so that each verdict is seen to fail.
//!
//! It answers the suite's probes and control calls as it should, by handing them
//! to a real NFS server over TCP. With everything else it does the same, but for
//! one thing (`peer`), or says what its mutant always says.

mod heard;
mod items;
mod mutants;
mod peer;
mod place;

use std::{
    collections::HashMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use verbs_sys as sys;

use self::{
    heard::{understand, Heard},
    mutants::Mutant,
    peer::{Client, Peer, Shared},
};
use crate::{
    cm::{self, Address, Id},
    connection::{Connection, Event, Options, Own},
    frame::{words, Segment, Words},
    memory::{failed, Access, Region},
    mutate::parse,
    private::Settings,
    send::Send,
    tcp::Tcp,
};

/// Serve until killed.
pub fn serve(address: SocketAddr, tcp: SocketAddr, mutant: &str) -> Result<bool, String> {
    let shared = Shared::new(Mutant::new(mutant)?, tcp);
    let mut server = Server {
        tcp: Tcp::connect(tcp).map_err(|e| format!("{tcp}: {e}"))?,
        shared,
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
        if sys::rdma_listen(listener.raw, 512) != 0 {
            return Err(failed("rdma_listen"));
        }
    }
    Ok(listener)
}

struct Server {
    tcp: Tcp,
    shared: Shared,
    earlier: Vec<u8>,
    peers: HashMap<usize, Peer>,
    accepted: usize,
    shattered: bool,
}

impl Server {
    fn serve(&mut self, address: SocketAddr) -> std::io::Result<()> {
        let listener = listen(address, sys::RDMA_PS_TCP)?;
        let datagrams = match self.shared.mutant.is("datagram") {
            true => Some(listen(address, sys::RDMA_PS_UDP)?),
            false => None,
        };
        println!("listening");
        loop {
            while let Some(event) = listener.channel.next() {
                self.meet(&event, sys::RDMA_PS_TCP);
            }
            while let Some(event) = datagrams.as_ref().and_then(|d| d.channel.next()) {
                self.meet(&event, sys::RDMA_PS_UDP);
            }
            let mut names: Vec<_> = self.peers.keys().copied().collect();
            names.sort_unstable();
            for name in names {
                self.attend(name);
            }
            if self.shattered {
                self.peers.clear();
                self.shattered = false;
            }
            cm::poll(
                &[listener.channel.descriptor()],
                Instant::now() + Duration::from_millis(1),
            );
        }
    }

    /// A client that asks for a connection; it may have gone meanwhile.
    fn meet(&mut self, event: &cm::Event, port_space: u32) {
        if event.kind == sys::RDMA_CM_EVENT_CONNECT_REQUEST {
            self.accepted += 1;
            self.shared.connections += 1;
            if let Err(error) = self.accept(event, port_space) {
                println!("not accepted: {error}");
            }
        }
    }

    fn accept(&mut self, event: &cm::Event, port_space: u32) -> std::io::Result<()> {
        let mutant = &self.shared.mutant;
        let id = Id::adopt(event.id)?;
        if mutant.is("refuse") && self.accepted > 1 {
            // SAFETY: a request that was neither accepted nor rejected yet.
            unsafe { sys::rdma_reject(id.raw, std::ptr::null(), 0) };
            return Ok(());
        }
        let leaky = mutant.is("leaky");
        let plain = mutant.is("proxy-plain");
        let most = if plain { 1024 } else { 4096 };
        let mine = Settings {
            flags: u8::from(mutant.invalidates()),
            send: 3,
            receive: 3,
        };
        let options = Options {
            private: if plain { Vec::new() } else { mine.encode() },
            receives: match port_space {
                sys::RDMA_PS_UDP => 0,
                // More than the grant by the suite's own calls.
                _ if leaky => 34,
                _ => 64,
            },
            receive_size: match mutant.name() {
                "roomy" => 70_000,
                _ => most,
            },
            responder_resources: u8::from(mutant.is("open")),
            // What the client's Sends do that no Receive is there for.
            rnr_retry: if mutant.is("generous") { 7 } else { 0 },
            own: mutant.is("careless").then_some(Own {
                rnr_retry: 0,
                depth: 1,
            }),
            initiator_depth: event.initiator_depth.min(8),
            port_space,
            loses: leaky.then_some(no_call as fn(&[u8]) -> bool),
            ..Options::default()
        };
        let mut connection = Connection::on(id, &options)?;
        let mut open = None;
        if mutant.is("open") || mutant.is("careless") {
            let region = Region::new(&connection.domain, 4096, Access::Open, 0)?;
            connection.say(&open_memory(&region));
            open = Some(region);
        }
        connection.accept()?;
        let theirs = Settings::find(&event.private);
        let client = Client {
            threshold: theirs.map_or(1024, |s| Settings::bytes(s.receive).min(most)),
            readable: event.initiator_depth > 0,
            invalidates: theirs.is_some_and(|s| s.flags & 1 != 0),
        };
        self.peers
            .insert(self.accepted, Peer::new(connection, open, &client));
        Ok(())
    }

    /// Handle what has come; the connection goes when it is over.
    fn attend(&mut self, name: usize) {
        let mutant = &self.shared.mutant;
        if mutant.is("crowded") {
            let before = self.peers.keys().filter(|n| **n < name).count();
            if before >= mutant.number(100) as usize {
                return;
            }
        }
        let Some(mut peer) = self.peers.remove(&name) else {
            return;
        };
        let mut alive = true;
        while let Some(event) = peer.next() {
            match event {
                Event::Received { bytes, .. } if alive => {
                    let handled = self.handle(&mut peer, &bytes);
                    alive = handled.inspect_err(report).is_ok();
                    self.shared.scarred |= !alive;
                }
                Event::Disconnected => alive = false,
                Event::Failed(what) => {
                    alive = false;
                    self.shattered |= self.shared.mutant.is("fragile");
                    // A client that has gone without a word, and what was for it.
                    self.shared.scarred |= what.starts_with("send: ");
                }
                _ => {}
            }
        }
        let mut pass = || peer.pass_on(&mut self.shared).inspect_err(report);
        let failed = alive && pass().is_err();
        if alive && !failed {
            self.peers.insert(name, peer);
        } else {
            self.shared.scarred |= failed || peer.busy();
        }
    }

    fn handle(&mut self, peer: &mut Peer, bytes: &[u8]) -> std::io::Result<()> {
        if peer.silent {
            return Ok(());
        }
        let fresh = std::mem::replace(&mut peer.fresh, false);
        if bytes.len() > 28 && bytes[0] == 0x50 {
            if fresh {
                // A case has ended: this is the next one's.
                self.shared.connections = 0;
                self.shared.scarred = false;
            }
            return self.probe(peer, bytes);
        }
        let xid = word(bytes, 0);
        let vers = word(bytes, 4);
        let chunk = words(&[xid, vers, 32, 4, 2]);
        let answer = match self.shared.mutant.name() {
            "mute" => return Ok(()),
            "deaf" => {
                peer.silent = true;
                return Ok(());
            }
            "close" => return Err(std::io::ErrorKind::ConnectionAborted.into()),
            "chunk" | "refuse" | "roomy" | "open" | "careless" | "datagram" | "fragile" => chunk,
            "versions" => words(&[xid, vers, 32, 4, 1, 1, 1]),
            "yes" => words(&[xid, 1, 32, 0, 0, 0, 0, xid, 1, 0, 0, 0, 0]),
            "garbage" => words(&[xid, 1, 32, 0, 0, 0, 0, xid, 1, 0, 0, 0, 4]),
            "stale" => [chunk, self.earlier[..8].to_vec()].concat(),
            "other-xid" => words(&[xid ^ 1, vers, 32, 4, 2]),
            "no-credit" => words(&[xid, vers, 0, 4, 2]),
            "spill" => {
                let lists = parse(bytes).map(|(lists, _)| lists).unwrap_or_default();
                for segment in lists.echoed().flatten() {
                    let kind = Send::Write {
                        key: segment.handle,
                        address: segment.offset.wrapping_sub(1),
                    };
                    peer.connection.send_as(&[0x77], kind, 1)?;
                }
                chunk
            }
            _ => return peer.handle(&mut self.shared, bytes),
        };
        self.earlier = [bytes, &[0x5a; 8]].concat();
        peer.connection.send(&answer)
    }

    /// A call of the suite's own.
    fn probe(&mut self, peer: &mut Peer, bytes: &[u8]) -> std::io::Result<()> {
        let call = &bytes[28..];
        let reply = self.tcp.exchange(call)?;
        let header = words(&[word(bytes, 0), 1, 32, 0, 0, 0, 0]);
        peer.connection.send(&[header, reply].concat())
    }
}

fn no_call(bytes: &[u8]) -> bool {
    !matches!(understand(bytes, &Mutant::none()), Heard::Call(_))
}

fn report(error: &std::io::Error) {
    println!("a connection ends: {error}");
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}
