// SPDX-License-Identifier: GPL-2.0
//! The command line.

use std::net::{IpAddr, SocketAddr};

use lexopt::prelude::*;

const USAGE: &str = "\
usage: rpcrdma-conform --server ADDRESS --export PATH [OPTION...]
       rpcrdma-conform --list
       rpcrdma-conform --fake MUTANT --server ADDRESS --port N

  --port N          the server's RPC-over-RDMA port (20049)
  --tcp-port N      its NFS port for TCP (2049): files are made and checked there
  --only IDS        cases: ids with * for any ending, separated by commas
  --except IDS      all but these
  --profile FILE    where this server is known to differ (TOML)
  --json FILE       the evidence: bytes sent and received, completions, events
  --seed N          decides everything that is random (1)
  --fuzz N          instead: N messages with one to three mutations each
  --fuzz-from I     begin with message I of the seed (0)
  --corpus FOLDER   only write those messages to files, for other fuzzers
  --patience N      units after which silence is a hang (5000)
  --fake MUTANT     be a server on that address that misbehaves in this way and
                    hands what it does not spoil to the NFS server over TCP
  --list            print the cases: id, section, accepted outcomes, what is sent
";

pub struct Options {
    pub server: Option<IpAddr>,
    pub port: u16,
    pub tcp_port: u16,
    pub export: String,
    pub only: Vec<String>,
    pub except: Vec<String>,
    pub profile: Option<String>,
    pub json: Option<String>,
    pub seed: u64,
    pub list: bool,
    pub fake: Option<String>,
    pub fuzz: Option<u64>,
    pub fuzz_from: u64,
    pub corpus: Option<String>,
    pub patience: u32,
}

impl Options {
    pub fn parse() -> Result<Self, String> {
        Self::read(lexopt::Parser::from_env()).map_err(|e| format!("{e}\n{USAGE}"))
    }

    fn read(mut parser: lexopt::Parser) -> Result<Self, lexopt::Error> {
        let mut this = Self {
            server: None,
            port: 20049,
            tcp_port: 2049,
            export: "/".into(),
            only: Vec::new(),
            except: Vec::new(),
            profile: None,
            json: None,
            seed: 1,
            list: false,
            fake: None,
            fuzz: None,
            fuzz_from: 0,
            corpus: None,
            patience: 5000,
        };
        let ids = |text: String| text.split(',').map(str::to_string).collect::<Vec<_>>();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("server") => this.server = Some(parser.value()?.parse()?),
                Long("port") => this.port = parser.value()?.parse()?,
                Long("tcp-port") => this.tcp_port = parser.value()?.parse()?,
                Long("export") => this.export = parser.value()?.string()?,
                Long("only") => this.only.extend(ids(parser.value()?.string()?)),
                Long("except") => this.except.extend(ids(parser.value()?.string()?)),
                Long("profile") => this.profile = Some(parser.value()?.string()?),
                Long("json") => this.json = Some(parser.value()?.string()?),
                Long("seed") => this.seed = parser.value()?.parse()?,
                Long("fuzz") => this.fuzz = Some(parser.value()?.parse()?),
                Long("fuzz-from") => this.fuzz_from = parser.value()?.parse()?,
                Long("corpus") => this.corpus = Some(parser.value()?.string()?),
                Long("patience") => this.patience = parser.value()?.parse()?,
                Long("fake") => this.fake = Some(parser.value()?.string()?),
                Long("list") => this.list = true,
                Long("help") | Short('h') => {
                    print!("{USAGE}");
                    std::process::exit(0);
                }
                _ => return Err(argument.unexpected()),
            }
        }
        Ok(this)
    }

    pub fn address(&self) -> Result<SocketAddr, String> {
        let server = self.server.ok_or_else(|| format!("no --server\n{USAGE}"))?;
        Ok(SocketAddr::new(server, self.port))
    }

    pub fn selects(&self, id: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|p| matches(p, id));
        (self.only.is_empty() || any(&self.only)) && !any(&self.except)
    }
}

fn matches(pattern: &str, id: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => id.starts_with(start),
        None => pattern == id,
    }
}
