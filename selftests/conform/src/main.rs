// SPDX-License-Identifier: GPL-2.0
//! Raw RPC-over-RDMA version 1 against any NFS server: does it follow RFC 8166,
//! 8167, 8267 and 8797, does it survive hostile headers, does it leak nothing?

mod answers;
mod bench;
mod callback;
mod case;
mod cases;
mod cm;
mod connection;
mod content;
mod corpus;
mod decode;
mod evidence;
mod explain;
mod fake;
mod frame;
mod fuzz;
mod gss;
mod handle;
mod memory;
mod message;
mod mutate;
mod nfs3;
mod nfs4;
mod options;
mod outcome;
mod private;
mod profile;
mod results;
mod rng;
mod rpc;
mod runner;
mod send;
mod sweep;
mod tcp;
mod window;
mod world;

use std::process::ExitCode;

use case::Case;
use options::Options;
use profile::Profile;

fn main() -> ExitCode {
    if let Some(code) = cases::helper() {
        return code;
    }
    match Options::parse().and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(text) => {
            eprintln!("rpcrdma-conform: {text}");
            ExitCode::from(2)
        }
    }
}

fn run(options: Options) -> Result<bool, String> {
    options.check()?;
    if let Some(path) = &options.decode_json {
        options::print(&decode::file(path, &options)?)?;
        return Ok(true);
    }
    let profile = options
        .profile
        .as_deref()
        .map_or(Ok(Profile::default()), Profile::load)?;
    let mut cases = cases::all();
    if let Some(stranger) = profile.ids().find(|id| !cases.iter().any(|c| &c.id == *id)) {
        return Err(format!("the profile names {stranger}, which is no case"));
    }
    profile.narrow(&mut cases)?;
    let ids: Vec<_> = cases.iter().map(|c| c.id.clone()).collect();
    options.choose(&ids)?;
    cases.retain(|c| options.selects(&c.id));
    if options.list {
        options::print(&cases.iter().map(|c| line(c, &options)).collect::<String>())?;
        return Ok(true);
    }
    let server = options.address()?;
    if let Some(mutant) = &options.fake {
        return fake::serve(
            server,
            std::net::SocketAddr::new(server.ip(), options.tcp_port),
            mutant,
        );
    }
    // What cannot be written is found out before anything is made on the server.
    if let Some(path) = &options.json {
        evidence::create(path)?;
    }
    if let Some(folder) = &options.corpus {
        corpus::create(folder)?;
    }
    println!("TAP version 13");
    println!(
        "# server {server}, seed {}, profile {:?}",
        options.seed, profile.server
    );
    if let Some(count) = options.fuzz {
        return fuzz::run(server, &options, count);
    }
    let mut world = world::World::new(server, &options, 0)?;
    if let Err(text) = world.open_control() {
        world.clean();
        return Err(format!("NFS over RDMA at {server} (--port): {text}"));
    }
    let unit = world.unit;
    println!("# unit {:.1} ms", unit.as_secs_f64() * 1e3);
    if options.sweep {
        // A server that fails in M079 does not take such calls at all.
        let good = sweep::run(&mut world, &options, profile.reason("M079").is_none());
        world.clean();
        return good;
    }
    let described = profile.server.clone();
    let mut runner = runner::Runner::new(&mut world, profile, options.repeat, options.decode);
    let good = runner.run(&cases);
    println!(
        "# {} cases, {} failed, {} known to differ, {} listed but passed, {} skipped",
        cases.len(),
        runner.failed,
        runner.known,
        runner.surprises.len(),
        runner.skipped.len()
    );
    let report = serde_json::json!({
        "server": server.to_string(), "seed": options.seed, "profile": described,
        "unit_milliseconds": unit.as_secs_f64() * 1e3, "patience": options.patience,
        "cases": runner.report, "skipped": runner.skipped,
    });
    world.clean();
    if let Some(path) = &options.json {
        evidence::write(path, &report)?;
    }
    if let Some(folder) = &options.corpus {
        corpus::write(folder, &report["cases"])?;
    }
    Ok(good)
}

/// One of `--list`.
fn line(case: &Case, options: &Options) -> String {
    let needs = match case.needs {
        [] => String::new(),
        all => format!(" (needs {})", all.join(", ")),
    };
    let (accept, deadline) = (
        case.accept.to_string(),
        case.deadline(options.patience).to_string(),
    );
    format!(
        "{:<10} {:<22} {accept:<24} {deadline:<9} {}{needs}\n",
        case.id, case.rfc, case.sends
    )
}
