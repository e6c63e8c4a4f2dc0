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
    frame::{words, Lists, Segment},
    memory::failed,
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
];

struct Peer {
    connection: Connection,
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
        mutant: mutant.to_string(),
        earlier: vec![0x5a; 64],
        peers: HashMap::new(),
        accepted: 0,
    };
    server.serve(address).map_err(|e| e.to_string())?;
    Ok(true)
}

struct Server {
    tcp: Tcp,
    mutant: String,
    earlier: Vec<u8>,
    peers: HashMap<usize, Peer>,
    accepted: u32,
}

impl Server {
    fn serve(&mut self, address: SocketAddr) -> std::io::Result<()> {
        let listener = Id::new(sys::RDMA_PS_TCP)?;
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
        println!("listening");
        loop {
            while let Some(event) = listener.channel.next() {
                if event.kind == sys::RDMA_CM_EVENT_CONNECT_REQUEST {
                    self.accept(event.id)?;
                }
            }
            let mut gone = Vec::new();
            let mut names: Vec<_> = self.peers.keys().copied().collect();
            names.sort_unstable();
            for name in names {
                if !self.attend(name) {
                    gone.push(name);
                }
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

    fn accept(&mut self, raw: *mut sys::rdma_cm_id) -> std::io::Result<()> {
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
            receives: 64,
            receive_size: 4096,
            responder_resources: 0,
            initiator_depth: 8,
            ..Options::default()
        };
        let mut connection = Connection::on(id, &options)?;
        if connection.accept().is_ok() {
            self.peers.insert(
                self.accepted as usize,
                Peer {
                    connection,
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
                Event::Disconnected | Event::Failed(_) => alive = false,
                Event::Sent | Event::Other(_) => {}
            }
        }
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
            "chunk" | "refuse" => chunk,
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

    /// Hand an inline call on; what becomes of the lists is the mutant's matter.
    fn proxy(&mut self, peer: &mut Peer, bytes: &[u8]) -> std::io::Result<()> {
        let xid = word(bytes, 0);
        let Some((mut echoed, payload)) =
            parse(bytes).filter(|(_, p)| p.len() >= 40 && word(p, 4) == 0)
        else {
            return Ok(());
        };
        let mut reply = self.tcp.exchange(payload)?;
        let clear = |chunk: &mut Vec<Segment>| chunk.iter_mut().for_each(|s| s.length = 0);
        match self.mutant.as_str() {
            "proxy-unused" | "proxy-twice" => {
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
