// SPDX-License-Identifier: GPL-2.0
//! All of a run: threads, and what they have found.

use std::{
    net::SocketAddr,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use serde_json::json;

use super::{Fuzzer, Tally};
use crate::{evidence, options::Options, world::World};

/// `--fuzz`: messages from `--fuzz-from` on, shared out between `--jobs` threads with
/// connections and files of their own. False if one fails the oracle.
pub fn run(server: SocketAddr, options: &Options, count: u64) -> Result<bool, String> {
    let begin = Instant::now();
    let stop = AtomicBool::new(false);
    let share = count.div_ceil(options.jobs.into());
    let results: Result<Vec<_>, _> = thread::scope(|scope| {
        let start = |part| {
            let from = u64::from(part) * share;
            let range = options.fuzz_from + from..options.fuzz_from + count.min(from + share);
            let stop = &stop;
            scope.spawn(move || {
                let tally = part_of(server, options, part, range, stop);
                let over = tally.as_ref().is_ok_and(|t| t.failures.is_empty());
                stop.fetch_or(!over, Ordering::Relaxed);
                tally
            })
        };
        let threads: Vec<_> = (0..options.jobs).map(start).collect();
        let joined = threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Ok(failed("a thread panicked"))));
        joined.collect()
    });
    let mut all = Tally::default();
    for mut result in results? {
        all.closed += result.closed;
        all.failures.append(&mut result.failures);
        for (name, n) in result.counts {
            *all.counts.entry(name).or_default() += n;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let judged: u64 = all.counts.values().sum();
    let rate = judged as f64 / seconds;
    println!("1..1");
    for (number, failure) in all.failures.iter().enumerate() {
        // Several threads may each have found something.
        let verdict = if number == 0 { "not ok 1 -" } else { "# also:" };
        let reason = failure["reason"].as_str().unwrap_or_default();
        println!("{verdict} {reason}");
        if let Some(again) = failure["again"].as_str() {
            println!("# again: {again}");
        }
        let sent = failure["sent"].as_array();
        sent.into_iter()
            .flatten()
            .for_each(|bytes| println!("# sent {bytes}"));
    }
    if all.failures.is_empty() {
        println!("ok 1 - {count} mutated messages of seed {}", options.seed);
    }
    let counts: Vec<_> = all.counts.iter().map(|(k, n)| format!("{k} {n}")).collect();
    println!(
        "# {}; {} connections closed; {rate:.0} a second",
        counts.join(", "),
        all.closed
    );
    if let Some(path) = &options.json {
        let report = json!({
            "server": server.to_string(), "seed": options.seed, "from": options.fuzz_from, "count": count,
            "judged": judged, "seconds": seconds, "rate": rate,
            "outcomes": all.counts, "connections_closed": all.closed, "failures": all.failures,
        });
        evidence::write(path, &report)?;
    }
    Ok(all.failures.is_empty())
}

fn failed(text: &str) -> Tally {
    Tally {
        failures: vec![json!({ "reason": text })],
        ..Tally::default()
    }
}

fn part_of(
    server: SocketAddr,
    options: &Options,
    part: u32,
    range: Range<u64>,
    stop: &AtomicBool,
) -> Result<Tally, String> {
    let mut world = World::new(server, options, part)?;
    if let Err(text) = world.open_control() {
        world.clean();
        return Err(text);
    }
    let mut fuzzer = Fuzzer::new(&mut world, options.seed)?;
    if let Err(text) = fuzzer.run(range, stop) {
        let failure = fuzzer.failure(&text);
        fuzzer.tally.failures.push(failure);
    }
    let tally = fuzzer.tally;
    if tally.failures.is_empty() {
        world.clean();
    }
    Ok(tally)
}
