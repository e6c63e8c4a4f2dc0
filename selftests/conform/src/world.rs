// SPDX-License-Identifier: GPL-2.0
//! The server under test: its address, files made for the cases, a control
//! connection, and the unit of all deadlines.

use std::{
    collections::HashMap,
    io::{self, Read},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    rc::Rc,
    time::{Duration, Instant},
};

use crate::{
    connection::{Connection, Event, Options},
    explain::{explain, is_call, unexplained, Seen},
    frame::Lists,
    gss::Context,
    handle::Handle,
    message::Message,
    mutate::parse,
    nfs3,
    nfs4::Compound,
    options,
    outcome::Outcome,
    results::{Attributes, Results},
    rpc::{first_opaque, Call, Kind},
    tcp::{self, Tcp},
};

/// Units that connecting, and a call of the suite's own, may take.
const LIMIT: u32 = 5000;

/// Probes have XIDs of their own kind.
const PROBE: u32 = 0x50_00_00_00;

/// Bytes in the big file; its content is `pattern`.
pub const BIG: usize = 1 << 20;
pub const SMALL: usize = 100;
pub const LINK: &[u8] = b"abcde";
pub const NAMES: usize = 120;

/// Files on the server that cases only read.
#[derive(Default)]
pub struct Files {
    pub root: Handle,
    pub dir: Handle,
    pub big: Handle,
    pub small: Handle,
    pub link: Handle,
    pub long_link: Handle,
    pub many: Handle,
    pub stale: Handle,
}

pub struct World {
    pub server: SocketAddr,
    pub unit: Duration,
    /// Units after which silence is a hang.
    pub patience: u32,
    pub files: Files,
    pub tcp: Tcp,
    pub control: Option<Connection>,
    /// Programs that do what only a machine's owner can do.
    pub hooks: Option<PathBuf>,
    /// How long a server may refuse delegations: while clients may reclaim locks.
    pub grace: Duration,
    /// How long to leave a connection idle.
    pub idle: Duration,
    /// The service that contexts are made with.
    pub gss: Option<String>,
    /// By file handle, what NFS over TCP says of files.
    known: HashMap<Vec<u8>, Attributes>,
    /// The longest READ and WRITE that the server takes.
    sizes: (usize, usize),
    context: Option<Rc<Context>>,
    tcp_address: SocketAddr,
    name: String,
    next: u32,
    names: u32,
}

/// What the big file has at an offset.
pub fn pattern(offset: usize, len: usize) -> Vec<u8> {
    (offset..offset + len)
        .map(|i| (i as u32 ^ (i as u32 >> 8).wrapping_mul(0x9d) ^ 0x17) as u8)
        .collect()
}

/// The target of the long link.
pub fn long_target() -> Vec<u8> {
    (0..1501).map(|i| b'a' + (i % 26) as u8).collect()
}

impl World {
    /// Of several, each has a number: its files and XIDs are no other's.
    pub fn new(
        server: SocketAddr,
        options: &options::Options,
        number: u32,
    ) -> Result<Self, String> {
        let tcp_address = SocketAddr::new(server.ip(), options.tcp_port);
        let mut world = Self {
            server,
            unit: Duration::from_millis(1),
            patience: options.patience,
            files: Files {
                root: Handle::new(tcp::mount(server.ip(), &options.export)?, Vec::new()),
                ..Files::default()
            },
            tcp: Tcp::connect(tcp_address)
                .map_err(|e| format!("NFS over TCP at {tcp_address} (--tcp-port): {e}"))?,
            control: None,
            hooks: options.hooks.as_ref().map(Into::into),
            grace: Duration::from_secs(100),
            idle: Duration::from_secs(options.idle),
            gss: options.gss.clone(),
            known: HashMap::new(),
            sizes: (BIG, BIG),
            context: None,
            tcp_address,
            name: format!("conform.{}.{:x}.{number}", std::process::id(), options.seed),
            next: number << 20,
            names: 0,
        };
        world.files.root.four = world.root_of_four(&options.export);
        world.prepare()?;
        Ok(world)
    }

    /// The export's root by the handle that version 4 has for it.
    fn root_of_four(&mut self, export: &str) -> Vec<u8> {
        let names = export.split('/').filter(|name| !name.is_empty());
        let path = names.fold(Compound::new(0).root(), Compound::lookup);
        // Or it is what version 4 has as its root, as with fsid=0.
        let found = self.must(path.name_handle().call());
        let found = found.or_else(|_| self.must(Compound::new(0).root().name_handle().call()));
        found.map(|results| results.handle).unwrap_or_default()
    }

    /// What a call has made, which goes over TCP, by both its handles.
    fn make(&mut self, call: Call, dir: &Handle, name: &str) -> Result<Handle, String> {
        let three = self.must(call)?.handle;
        let lookup = Compound::new(0).handle(dir).lookup(name).name_handle();
        let four = self.must(lookup.call()).map(|results| results.handle);
        Ok(Handle::new(three, four.unwrap_or_default()))
    }

    /// Make the files.
    fn prepare(&mut self) -> Result<(), String> {
        let root = self.files.root.clone();
        let name = self.name.clone();
        self.files.dir = self.make(nfs3::mkdir(&root, &name), &root, &name)?;
        let dir = self.files.dir.clone();
        self.files.big = self.make(nfs3::create(&dir, "big"), &dir, "big")?;
        let big = self.files.big.clone();
        for from in (0..BIG).step_by(65536) {
            self.must(nfs3::write(&big, from as u64, &pattern(from, 65536)))?;
        }
        self.files.small = self.make(nfs3::create(&dir, "small"), &dir, "small")?;
        let small = self.files.small.clone();
        self.must(nfs3::write(&small, 0, &pattern(0, SMALL)))?;
        self.files.link = self.make(nfs3::symlink(&dir, "link", LINK), &dir, "link")?;
        self.files.long_link =
            self.make(nfs3::symlink(&dir, "long", &long_target()), &dir, "long")?;
        self.files.many = self.make(nfs3::mkdir(&dir, "many"), &dir, "many")?;
        let many = self.files.many.clone();
        for i in 0..NAMES {
            self.must(nfs3::create(&many, &many_name(i)))?;
        }
        self.files.stale = self.make(nfs3::create(&dir, "stale"), &dir, "stale")?;
        self.must(nfs3::remove(&dir, "stale"))?;
        let sizes = self.must(nfs3::fsinfo(&root))?.sizes;
        self.sizes = (sizes.0 as usize, sizes.1 as usize);
        let files = &self.files;
        let lasting = [
            &files.root,
            &files.dir,
            &files.big,
            &files.small,
            &files.link,
            &files.long_link,
            &files.many,
        ];
        for handle in lasting.map(Clone::clone) {
            let attributes = self.must(nfs3::getattr(&handle))?.attributes;
            self.known
                .extend(attributes.first().map(|a| (handle.to_vec(), *a)));
        }
        Ok(())
    }

    /// Bytes of the longest READ that the server takes, but no more than the big file has.
    pub fn most_read(&self) -> usize {
        self.sizes.0.min(BIG)
    }

    /// Bytes of the longest WRITE that the server takes, but no more than the big file has.
    pub fn most_written(&self) -> usize {
        self.sizes.1.min(BIG)
    }

    /// Compare the attributes in a reply with what is known of the object: those of NFSv3, where
    /// an inline call names it. Of others only the file system is known.
    pub fn compare(&self, seen: &Seen, sent: &Message) -> Result<(), String> {
        let found = &seen.results.attributes;
        let foreign = |a: &&Attributes| self.known.values().all(|k| k.fsid != a.fsid);
        if let Some(of) = found.iter().find(foreign) {
            return Err(unexplained(format!(
                "attributes of another file system: {of:x?}"
            )));
        }
        // What these begin with is about the handle in the call.
        let first = matches!(
            sent.kind,
            Kind::Getattr
                | Kind::Readlink
                | Kind::Read
                | Kind::Getacl
                | Kind::Access
                | Kind::Fsinfo
                | Kind::Readdir
                | Kind::Readdirplus
        );
        let Some((lists, payload)) = parse(&sent.bytes).filter(|_| first && sent.guard.is_none())
        else {
            return Ok(());
        };
        // Inline up to the first chunk, which has to be behind the handle.
        let handle = first_opaque(payload).filter(|_| lists.reads.is_empty());
        let known = handle.and_then(|h| self.known.get(h));
        match known.zip(found.first()) {
            Some((known, found)) if known.differ(found) => Err(unexplained(format!(
                "attributes {found:x?} where over TCP there are {known:x?}"
            ))),
            _ => Ok(()),
        }
    }

    /// Remove what prepare() and the cases made.
    pub fn clean(&mut self) {
        let (root, dir, many) = (
            self.files.root.clone(),
            self.files.dir.clone(),
            self.files.many.clone(),
        );
        for i in 0..NAMES {
            let _ = self.tcp.call(nfs3::remove(&many, &many_name(i)));
        }
        let mut names = Vec::new();
        if let Ok(listed) = self.tcp.call(nfs3::readdir(&dir, 65536)) {
            names = listed.names;
        }
        for name in names.iter().filter(|n| !n.starts_with('.')) {
            // A delegation of a case may have to run out first (NFS3ERR_JUKEBOX).
            for _ in 0..100 {
                match self.tcp.call(nfs3::remove(&dir, name)) {
                    Ok(results) if results.status == 10008 => {
                        std::thread::sleep(Duration::from_millis(300));
                    }
                    _ => break,
                }
            }
            let _ = self.tcp.call(nfs3::rmdir(&dir, name));
        }
        let name = self.name.clone();
        let _ = self.tcp.call(nfs3::rmdir(&root, &name));
    }

    /// A call over TCP that has to succeed.
    pub fn must(&mut self, call: Call) -> Result<Results, String> {
        let kind = call.kind;
        let results = self.tcp.call(call)?;
        if results.status == 0 {
            Ok(results)
        } else {
            Err(format!("{kind:?} over TCP: NFS status {}", results.status))
        }
    }

    /// The context of most cases with RPCSEC_GSS, made over TCP: a context is for no one connection.
    pub fn context(&mut self) -> Result<Rc<Context>, String> {
        if self.context.is_none() {
            let service = self.gss.clone().ok_or("no --gss")?;
            let mut made = Context::establish(&service, |call| self.tcp.raw(call));
            // nfsd gives rpc.svcgssd 5 seconds, then closes the connection. Its first call takes
            // longer on an emulated machine; clients ask again, too.
            for _ in 0..3 {
                if made.is_err() {
                    self.tcp = Tcp::connect(self.tcp_address).map_err(|e| e.to_string())?;
                    made = Context::establish(&service, |call| self.tcp.raw(call));
                }
            }
            self.context = Some(Rc::new(made?));
        }
        Ok(self.context.clone().expect("just made"))
    }

    /// What a file has, read over TCP.
    pub fn content(&mut self, handle: &[u8], len: u32) -> Result<Vec<u8>, String> {
        Ok(self.must(nfs3::read(handle, 0, len))?.items.remove(0).data)
    }

    /// A name that no file has.
    pub fn fresh_name(&mut self) -> String {
        self.names += 1;
        format!("f{}", self.names)
    }

    /// An empty file of the case's own.
    pub fn fresh_file(&mut self) -> Result<Handle, String> {
        let (dir, name) = (self.files.dir.clone(), self.fresh_name());
        self.make(nfs3::create(&dir, &name), &dir, &name)
    }

    pub fn exists(&mut self, name: &str) -> Result<bool, String> {
        let dir = self.files.dir.clone();
        match self.tcp.call(nfs3::lookup(&dir, name))?.status {
            0 => Ok(true),
            2 => Ok(false),
            other => Err(format!("LOOKUP over TCP: status {other}")),
        }
    }

    /// The XID of a case's next call: never one of a probe.
    pub fn xid(&mut self) -> u32 {
        self.next += 1;
        0x1a00_0000 | self.next & 0xff_ffff
    }

    pub fn probe_xid(&mut self) -> u32 {
        self.next += 1;
        PROBE | self.next & 0xff_ffff
    }

    /// How long to wait for a server's reaction: for anything that happens at all.
    pub fn limit(&self) -> Duration {
        self.unit * self.patience
    }

    pub fn connect(&self, options: &Options) -> Result<Connection, String> {
        Connection::connect(self.server, options, self.unit * LIMIT)
            .map_err(|e| format!("connect: {e}"))
    }

    /// Open the control connection, present a file handle (a server may shed
    /// connections that never do), and measure the unit.
    pub fn open_control(&mut self) -> Result<(), String> {
        self.unit = Duration::from_millis(20);
        let mut control = self.connect(&Options {
            receives: 8,
            ..Options::default()
        })?;
        let root = self.files.root.clone();
        self.exchange(&mut control, nfs3::getattr(&root))?;
        let mut times = Vec::new();
        for _ in 0..51 {
            let begin = Instant::now();
            self.exchange(&mut control, Call::null())?;
            times.push(begin.elapsed());
        }
        times.sort();
        self.unit = times[times.len() / 2].max(Duration::from_millis(1));
        self.control = Some(control);
        Ok(())
    }

    /// Whether a case that needs this cannot be run.
    pub fn lacks(&self, need: &str) -> bool {
        match need {
            "--idle" => self.idle.is_zero(),
            "--gss" => self.gss.is_none(),
            hook => self.hooks.as_ref().is_none_or(|h| !h.join(hook).exists()),
        }
    }

    /// Run a hook to its end.
    pub fn hook(&self, name: &str) -> Result<(), String> {
        let mut running = self.start_hook(name)?;
        while !running.done()? {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub fn start_hook(&self, name: &str) -> Result<Running, String> {
        let folder = self.hooks.as_ref().ok_or("no --hooks")?;
        let started = Command::new(folder.join(name))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        Ok(Running {
            name: name.to_string(),
            child: started.map_err(|e| format!("hook {name}: {e}"))?,
        })
    }

    /// After the server closed all connections: those that are no case's anew.
    pub fn reopen(&mut self) -> Result<(), String> {
        self.control = None;
        self.tcp = Tcp::connect(self.tcp_address).map_err(|e| format!("NFS over TCP: {e}"))?;
        self.open_control()
    }

    /// One good call inline; nothing but its reply may come.
    pub fn exchange(&mut self, on: &mut Connection, call: Call) -> Result<Seen, String> {
        let xid = self.probe_xid();
        let sent = Message::inline(&call.xid(xid), Lists::default());
        on.send(&sent.bytes).map_err(|e| format!("send: {e}"))?;
        let until = Instant::now() + self.unit * LIMIT;
        loop {
            match on.next(until) {
                Some(Event::Received {
                    bytes,
                    invalidated,
                    immediate,
                }) => {
                    on.vet(bytes.len(), invalidated.is_some(), immediate)?;
                    if is_call(&bytes) {
                        return Err(unexplained("a call, where no session has callbacks"));
                    }
                    let seen = explain(&bytes, &sent, &|_| None)?;
                    self.compare(&seen, &sent)?;
                    return if seen.outcome == Outcome::Ok && seen.results.status == 0 {
                        Ok(seen)
                    } else {
                        Err(seen.describe())
                    };
                }
                Some(Event::Sent) => {}
                Some(event) => return Err(format!("{event:?}")),
                None => return Err("no answer".into()),
            }
        }
    }

    /// The connection that no case touches still answers.
    pub fn check_control(&mut self) -> Result<(), String> {
        let mut control = self
            .control
            .take()
            .ok_or("there is no control connection any more")?;
        let root = self.files.root.clone();
        self.exchange(&mut control, nfs3::getattr(&root))
            .map_err(|e| format!("control connection: {e}"))?;
        self.control = Some(control);
        Ok(())
    }
}

/// A hook that has been started.
pub struct Running {
    name: String,
    child: Child,
}

impl Running {
    /// Whether it has ended; an error if it has failed.
    pub fn done(&mut self) -> Result<bool, String> {
        let text = |e: io::Error| format!("hook {}: {e}", self.name);
        match self.child.try_wait().map_err(text)? {
            None => Ok(false),
            Some(status) if status.success() => Ok(true),
            Some(status) => {
                let mut said = String::new();
                if let Some(mut stderr) = self.child.stderr.take() {
                    stderr.read_to_string(&mut said).map_err(text)?;
                }
                Err(format!("hook {}: {status}: {}", self.name, said.trim()))
            }
        }
    }
}

fn many_name(i: usize) -> String {
    format!("entry-{i:04}-{}", "n".repeat(40))
}
