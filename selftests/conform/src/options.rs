// SPDX-License-Identifier: GPL-2.0
//! The command line.

#[cfg(test)]
mod tests;

use std::{
    io::{self, Write},
    net::{SocketAddr, ToSocketAddrs},
};

use lexopt::prelude::*;

const USAGE: &str = "\
usage: rpcrdma-conform --server ADDRESS --export PATH [OPTION...]
       rpcrdma-conform --list [OPTION...]
       rpcrdma-conform --decode-json FILE [--only IDS] [--except IDS]
       rpcrdma-conform --fake MUTANT --server ADDRESS [--port N] [--tcp-port N]

  --server ADDRESS  the server: a name or an address
  --export PATH     what to mount of it
  --port N          the server's RPC-over-RDMA port (20049)
  --tcp-port N      its NFS port for TCP (2049): files are made and checked there
  --only IDS        cases, separated by commas: M037, M03* (any ending), M116..M148
  --except IDS      all but these
  --repeat N        run each case so many times; one failure is enough (1)
  --hooks FOLDER    programs for cases that need power over a machine: see hooks/
  --gss SERVICE     for cases with Kerberos, such as nfs@server: there is a ticket
  --idle SECONDS    run M148, which leaves a connection idle for that long
  --profile FILE    where this server is known to differ (TOML)
  --decode          print below each case what was sent and received, in words
  --json FILE       the evidence: bytes sent and received, completions, events, skipped cases
  --corpus FOLDER   write all that was sent there, as seeds for fuzzers: messages to
                    FOLDER/parse, private data to FOLDER/private
  --patience N      units after which silence is a hang (5000)
  --seed N          decides everything that is random (1)

Instead of the cases:
  --list            print them: id, section, accepted outcomes, units until an answer is
                    due + until one to a probe is, what is sent
  --decode-json FILE  print what a file of --json has, in words
  --fuzz N          N messages with one to three mutations each
  --fuzz-from I     begin with message I of the seed (0)
  --jobs N          threads that they are shared out between (2, at most 16)
  --sweep           WRITEs from Read chunks at each place in a page
  --sample N        only the first N of 20480 (4096: each place once)
  --large           others: WRITEs of 1, 2 and 4 MiB
  --expected FILE   leave the file sweep.PID in the export; what it has to hold
  --fake MUTANT     be a server on that address that misbehaves in this way and
                    hands what it does not spoil to the NFS server over TCP
";

/// What the program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Cases,
    List,
    Decode,
    Fuzz,
    Sweep,
    Fake,
}

use Mode::*;

/// Options that choose a mode.
const MODES: [(&str, Mode); 5] = [
    ("list", List),
    ("decode-json", Decode),
    ("fuzz", Fuzz),
    ("sweep", Sweep),
    ("fake", Fake),
];

/// The modes that look at an option.
const MEANT: [(&str, &[Mode]); 21] = [
    ("server", &[Cases, Fuzz, Sweep, Fake]),
    ("export", &[Cases, Fuzz, Sweep]),
    ("port", &[Cases, Fuzz, Sweep, Fake]),
    ("tcp-port", &[Cases, Fuzz, Sweep, Fake]),
    ("only", &[Cases, List, Decode]),
    ("except", &[Cases, List, Decode]),
    ("repeat", &[Cases]),
    ("hooks", &[Cases]),
    ("gss", &[Cases]),
    ("idle", &[Cases]),
    ("profile", &[Cases, List, Sweep]),
    ("decode", &[Cases]),
    ("json", &[Cases, Fuzz]),
    ("corpus", &[Cases]),
    ("patience", &[Cases, List, Fuzz, Sweep]),
    ("seed", &[Cases, Fuzz, Sweep]),
    ("fuzz-from", &[Fuzz]),
    ("jobs", &[Fuzz]),
    ("sample", &[Sweep]),
    ("large", &[Sweep]),
    ("expected", &[Sweep]),
];

/// Those without which a mode cannot be.
const NEEDED: [(&str, &[Mode]); 2] = [
    ("server", &[Cases, Fuzz, Sweep, Fake]),
    ("export", &[Cases, Fuzz, Sweep]),
];

pub struct Options {
    /// Names of the options that are there.
    given: Vec<String>,
    server: String,
    pub port: u16,
    pub tcp_port: u16,
    pub export: String,
    pub only: Vec<String>,
    pub except: Vec<String>,
    pub repeat: u32,
    pub hooks: Option<String>,
    pub gss: Option<String>,
    pub idle: u64,
    pub profile: Option<String>,
    pub json: Option<String>,
    pub seed: u64,
    pub list: bool,
    pub decode: bool,
    pub decode_json: Option<String>,
    pub fake: Option<String>,
    pub fuzz: Option<u64>,
    pub fuzz_from: u64,
    pub jobs: u32,
    pub sweep: bool,
    pub sample: Option<usize>,
    pub large: bool,
    pub expected: Option<String>,
    pub corpus: Option<String>,
    pub patience: u32,
}

impl Options {
    pub fn parse() -> Result<Self, String> {
        Self::read(lexopt::Parser::from_env()).map_err(|e| format!("{e}\n{USAGE}"))
    }

    pub fn read(mut parser: lexopt::Parser) -> Result<Self, lexopt::Error> {
        let mut this = Self {
            given: Vec::new(),
            server: String::new(),
            port: 20049,
            tcp_port: 2049,
            export: String::new(),
            only: Vec::new(),
            except: Vec::new(),
            repeat: 1,
            hooks: None,
            gss: None,
            idle: 0,
            profile: None,
            json: None,
            seed: 1,
            list: false,
            decode: false,
            decode_json: None,
            fake: None,
            fuzz: None,
            fuzz_from: 0,
            jobs: 2,
            sweep: false,
            sample: None,
            large: false,
            expected: None,
            corpus: None,
            patience: 5000,
        };
        let ids = |text: String| {
            let each = text.split(',').map(|id| id.trim().to_string());
            each.collect::<Vec<_>>()
        };
        while let Some(argument) = parser.next()? {
            if let Long(name) = argument {
                this.given.push(name.to_string());
            }
            match argument {
                Long("server") => this.server = parser.value()?.string()?,
                Long("port") => this.port = parser.value()?.parse()?,
                Long("tcp-port") => this.tcp_port = parser.value()?.parse()?,
                Long("export") => this.export = parser.value()?.string()?,
                Long("only") => this.only.extend(ids(parser.value()?.string()?)),
                Long("except") => this.except.extend(ids(parser.value()?.string()?)),
                Long("repeat") => this.repeat = parser.value()?.parse()?,
                Long("hooks") => this.hooks = Some(parser.value()?.string()?),
                Long("gss") => this.gss = Some(parser.value()?.string()?),
                Long("idle") => this.idle = parser.value()?.parse()?,
                Long("profile") => this.profile = Some(parser.value()?.string()?),
                Long("json") => this.json = Some(parser.value()?.string()?),
                Long("seed") => this.seed = parser.value()?.parse()?,
                Long("fuzz") => this.fuzz = Some(parser.value()?.parse()?),
                Long("fuzz-from") => this.fuzz_from = parser.value()?.parse()?,
                Long("jobs") => this.jobs = parser.value()?.parse::<u32>()?.clamp(1, 16),
                Long("sweep") => this.sweep = true,
                Long("sample") => this.sample = Some(parser.value()?.parse()?),
                Long("large") => this.large = true,
                Long("expected") => this.expected = Some(parser.value()?.string()?),
                Long("corpus") => this.corpus = Some(parser.value()?.string()?),
                Long("patience") => this.patience = parser.value()?.parse()?,
                Long("fake") => this.fake = Some(parser.value()?.string()?),
                Long("list") => this.list = true,
                Long("decode") => this.decode = true,
                Long("decode-json") => this.decode_json = Some(parser.value()?.string()?),
                Long("help") | Short('h') => {
                    print(USAGE)?;
                    std::process::exit(0);
                }
                _ => return Err(argument.unexpected()),
            }
        }
        Ok(this)
    }

    pub fn address(&self) -> Result<SocketAddr, String> {
        let name = &self.server;
        let found = (name.as_str(), self.port).to_socket_addrs();
        let first = found.map_err(|e| format!("--server {name}: {e}"))?.next();
        first.ok_or_else(|| format!("--server {name}: it has no address"))
    }

    fn has(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }

    /// Options that a mode does not look at are mistakes, and so are those that are missing.
    pub fn check(&self) -> Result<(), String> {
        let mut modes = MODES.iter().filter(|(name, _)| self.has(name));
        let chosen = modes.next();
        if let (Some((one, _)), Some((other, _))) = (chosen, modes.next()) {
            return Err(format!("--{one} and --{other} exclude each other"));
        }
        let mode = chosen.map_or(Cases, |(_, mode)| *mode);
        let unmeant = |(name, meant): &&(&str, &[Mode])| self.has(name) && !meant.contains(&mode);
        if let Some((name, meant)) = MEANT.iter().find(unmeant) {
            return Err(match chosen {
                Some((mode, _)) => format!("--{name} means nothing with --{mode}"),
                None => {
                    let with = MODES.iter().filter(|(_, mode)| meant.contains(mode));
                    let with: Vec<_> = with.map(|(mode, _)| format!("--{mode}")).collect();
                    format!("--{name} means nothing without {}", with.join(" or "))
                }
            });
        }
        if self.large && self.sample.is_some() {
            return Err("--sample means nothing with --large".into());
        }
        let missing = |(name, by): &&(&str, &[Mode])| by.contains(&mode) && !self.has(name);
        match NEEDED.iter().find(missing) {
            Some((name, _)) => Err(format!("no --{name}\n{USAGE}")),
            None => Ok(()),
        }
    }

    /// Each pattern has to be that of a case, and some case has to be left.
    pub fn choose(&self, ids: &[String]) -> Result<(), String> {
        for (name, patterns) in [("only", &self.only), ("except", &self.except)] {
            let strange = |pattern: &&String| !ids.iter().any(|id| matches(pattern, id));
            if let Some(pattern) = patterns.iter().find(strange) {
                return Err(format!("--{name}: {pattern:?} matches no case"));
            }
        }
        let chosen = self.only.is_empty() && self.except.is_empty();
        if chosen || ids.iter().any(|id| self.selects(id)) {
            Ok(())
        } else {
            Err("--only and --except leave no case".into())
        }
    }

    pub fn selects(&self, id: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|p| matches(p, id));
        (self.only.is_empty() || any(&self.only)) && !any(&self.except)
    }
}

/// Print all of it, or what somebody reads, as in `--list | head`.
pub fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e.to_string()),
        _ => Ok(()),
    }
}

fn matches(pattern: &str, id: &str) -> bool {
    if let Some((first, last)) = pattern.split_once("..") {
        // C1 is a rule and C01 a defect: with a 0 in front, all have so many digits.
        let (of, from) = (digits(id), digits(first));
        let other = match from.starts_with('0') {
            true => of.len() != from.len(),
            false => of.starts_with('0'),
        };
        if other {
            return false;
        }
        let range = number(first).zip(number(last)).zip(number(id));
        return range.is_some_and(|(((from, low), (to, high)), (group, n))| {
            group == from && group == to && (low..=high).contains(&n)
        });
    }
    match pattern.strip_suffix('*') {
        Some(start) => id.starts_with(start),
        None => pattern == id,
    }
}

fn digits(id: &str) -> &str {
    let rest = id.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = rest.find(|c: char| !c.is_ascii_digit());
    &rest[..end.unwrap_or(rest.len())]
}

/// The letter of an id and the number after it, without what tells variants apart.
fn number(id: &str) -> Option<(char, u32)> {
    let mut rest = id.chars();
    let group = rest.next()?;
    let digits: String = rest.take_while(char::is_ascii_digit).collect();
    Some((group, digits.parse().ok()?))
}
