// SPDX-License-Identifier: GPL-2.0
//! RPC over TCP: mounting, preparing files and checking what a server stored,
//! without the transport under test.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    time::Duration,
};

use crate::{
    frame::{words, Words},
    nfs3::opaque,
    results::{self, Results},
    rpc::{self, Call, Kind, Status, MOUNT, PORTMAP},
};

const LIMIT: Duration = Duration::from_secs(60);

pub struct Tcp {
    address: SocketAddr,
    stream: TcpStream,
    xid: u32,
}

impl Tcp {
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        Ok(Self {
            address,
            stream: Self::open(address)?,
            xid: 0x7c00_0000,
        })
    }

    fn open(address: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&address, LIMIT)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Exchange Payload streams, on a new connection if the server has closed this one: servers do
    /// so with what has been idle for some minutes.
    pub fn exchange(&mut self, stream: &[u8]) -> io::Result<Vec<u8>> {
        if matches!(self.peek()?, Some(0)) {
            self.stream = Self::open(self.address)?;
        }
        self.send(stream)?;
        self.receive()
    }

    pub fn send(&mut self, stream: &[u8]) -> io::Result<()> {
        let mut record = words(&[0x8000_0000 | stream.len() as u32]);
        record.extend_from_slice(stream);
        self.stream.write_all(&record)
    }

    /// Whether something has come, the end included.
    pub fn pending(&self) -> io::Result<bool> {
        Ok(self.peek()?.is_some())
    }

    /// How many bytes have come, at most one; None if nothing has, 0 at the end of the stream.
    fn peek(&self) -> io::Result<Option<usize>> {
        self.stream.set_nonblocking(true)?;
        let there = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        match there {
            Ok(len) => Ok(Some(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(_) => Ok(Some(0)),
        }
    }

    pub fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut reply = Vec::new();
        loop {
            let mut mark = [0; 4];
            self.stream.read_exact(&mut mark)?;
            let mark = u32::from_be_bytes(mark);
            let from = reply.len();
            reply.resize(from + (mark & 0x7fff_ffff) as usize, 0);
            self.stream.read_exact(&mut reply[from..])?;
            if mark >> 31 != 0 {
                return Ok(reply);
            }
        }
    }

    pub fn call(&mut self, call: Call) -> Result<Results, String> {
        self.xid += 1;
        let call = call.xid(self.xid);
        let bytes = self
            .exchange(&call.encode())
            .map_err(|e| format!("over TCP: {e}"))?;
        let mut stream = Words::new(&bytes);
        match rpc::reply(&mut stream, self.xid)? {
            Status::Success => results::decode(call.kind, &mut stream, &mut Default::default()),
            other => Err(format!("over TCP: {other:?}")),
        }
    }

    /// A call: its XID and the Payload stream of its reply.
    pub fn raw(&mut self, call: Call) -> Result<(u32, Vec<u8>), String> {
        self.xid += 1;
        let bytes = self
            .exchange(&call.xid(self.xid).encode())
            .map_err(|e| format!("over TCP: {e}"))?;
        Ok((self.xid, bytes))
    }

    fn results(&mut self, call: Call) -> Result<Vec<u8>, String> {
        let (xid, bytes) = self.raw(call)?;
        let mut stream = Words::new(&bytes);
        match rpc::reply(&mut stream, xid)? {
            Status::Success => Ok(stream.rest.to_vec()),
            other => Err(format!("over TCP: {other:?}")),
        }
    }
}

/// The file handle of an export, as rpc.mountd gives it.
pub fn mount(server: IpAddr, path: &str) -> Result<Vec<u8>, String> {
    let connect = |port, what: &str| {
        let address = SocketAddr::new(server, port);
        Tcp::connect(address).map_err(|e| {
            format!(
                "{what} of the server (TCP, {address}): {e}; the file handle of --export comes \
                 from there: it has to run, and no firewall may be in the way"
            )
        })
    };
    let getport = Call::new(PORTMAP, 2, 3, Kind::Unknown, words(&[MOUNT, 3, 6, 0]));
    let port = Words::new(&connect(111, "rpcbind")?.results(getport)?).word()?;
    if port == 0 {
        return Err(
            "rpcbind of the server knows no MOUNT, version 3, over TCP: start it there (Linux: \
             rpc.mountd)"
                .into(),
        );
    }
    let mut mountd = connect(port as u16, "MOUNT")?;
    let path_argument = opaque(path.as_bytes());
    let reply = mountd.results(Call::new(MOUNT, 3, 1, Kind::Unknown, path_argument))?;
    let mut reply = Words::new(&reply);
    match reply.word()? {
        0 => Ok(reply.opaque()?.to_vec()),
        2 => Err(format!("MOUNT of {path}: there is no such export")),
        13 => Err(format!(
            "MOUNT of {path}: this machine may not; the export has to permit it, from ports above \
             1023 (Linux: insecure)"
        )),
        status => Err(format!("MOUNT of {path}: status {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::TcpListener, thread};

    #[test]
    fn a_connection_that_was_closed_is_made_anew() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            drop(listener.accept().unwrap());
            let (mut second, _) = listener.accept().unwrap();
            let mut call = [0; 8];
            second.read_exact(&mut call).unwrap();
            second.write_all(&call).unwrap();
        });
        let mut tcp = Tcp::connect(address).unwrap();
        while tcp.peek().unwrap().is_none() {
            thread::yield_now();
        }
        assert_eq!(tcp.exchange(b"call").unwrap(), b"call");
        server.join().unwrap();
    }
}
