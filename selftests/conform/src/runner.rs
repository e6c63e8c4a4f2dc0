// SPDX-License-Identifier: GPL-2.0
//! Runs cases with the oracle around each, and reports.

use std::{io::Write, time::Instant};

use serde_json::{json, Value};

use crate::{
    bench::Bench,
    case::Case,
    connection::{Connection, Options},
    outcome::Outcome,
    profile::Profile,
    rpc::Call,
    world::World,
};

/// How a case ended.
pub struct Verdict {
    pub seen: String,
    pub reason: Option<String>,
    pub evidence: Vec<Value>,
}

pub struct Runner<'a> {
    pub world: &'a mut World,
    pub profile: Profile,
    pub report: Vec<Value>,
    pub failed: usize,
    pub known: usize,
    pub skipped: usize,
    pub surprises: Vec<String>,
    /// How often each case is run.
    repeat: u32,
    fresh: Option<Connection>,
}

impl<'a> Runner<'a> {
    pub fn new(world: &'a mut World, profile: Profile, repeat: u32) -> Self {
        Self {
            world,
            profile,
            report: Vec::new(),
            failed: 0,
            known: 0,
            skipped: 0,
            surprises: Vec::new(),
            repeat,
            fresh: None,
        }
    }

    /// Run one case and everything that has to hold after it.
    pub fn judge(&mut self, case: &Case) -> Verdict {
        let mut bench = Bench::new(self.world, case.accept, self.fresh.take());
        // A reply that a case did not think of must not end the others.
        let run = std::panic::AssertUnwindSafe(|| (case.run)(&mut bench));
        let result =
            std::panic::catch_unwind(run).unwrap_or_else(|_| Err("the case panicked".into()));
        let mut reasons = Vec::new();
        let seen = match &result {
            Ok(seen) => {
                if !case.accept.has(seen.outcome) {
                    reasons.push(format!("{}, accepted: {}", seen.describe(), case.accept));
                }
                seen.describe()
            }
            Err(text) => {
                reasons.push(text.clone());
                "VIOLATION".to_string()
            }
        };
        if let Err(text) = bench.finish() {
            reasons.push(text);
        }
        let evidence = std::mem::take(&mut bench.evidence);
        drop(bench);
        if let Err(text) = self.world.check_control() {
            reasons.push(text);
            if let Err(text) = self.world.open_control() {
                reasons.push(format!("a new control connection: {text}"));
            }
        }
        match self.renew() {
            Ok(fresh) => self.fresh = Some(fresh),
            Err(text) => reasons.push(format!("a new connection after the case: {text}")),
        }
        Verdict {
            seen,
            reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
            evidence,
        }
    }

    /// A new connection that answers: the next case's.
    fn renew(&mut self) -> Result<Connection, String> {
        let mut fresh = self.world.connect(&Options::default())?;
        self.world.exchange(&mut fresh, Call::null())?;
        Ok(fresh)
    }

    /// All of them, as TAP. False if something is wrong that the profile does not name.
    pub fn run(&mut self, cases: &[Case]) -> bool {
        println!("1..{}", cases.len());
        for (number, case) in cases.iter().enumerate() {
            if let Some(need) = case.needs.iter().find(|n| self.world.lacks(n)) {
                let line = format!("{} - {} {}", number + 1, case.id, case.sends);
                println!("ok {line} # SKIP needs {need}");
                self.skipped += 1;
                continue;
            }
            let begin = Instant::now();
            let mut verdict = self.judge(case);
            for _ in 1..self.repeat {
                if verdict.reason.is_some() || self.world.control.is_none() {
                    break;
                }
                verdict = self.judge(case);
            }
            let millis = begin.elapsed().as_millis() as u64;
            self.show(number + 1, case, &verdict);
            self.report.push(json!({
                "id": case.id, "section": case.rfc, "sends": case.sends, "accepted": case.accept.to_string(),
                "seen": verdict.seen, "passed": verdict.reason.is_none(), "reason": verdict.reason,
                "milliseconds": millis, "evidence": verdict.evidence,
            }));
            if self.world.control.is_none() {
                println!("Bail out! The server does not answer any more.");
                return false;
            }
        }
        self.failed == 0
    }

    fn show(&mut self, number: usize, case: &Case, verdict: &Verdict) {
        let skipped = verdict.seen.strip_prefix(Outcome::Skip.name());
        if let (None, Some(why)) = (&verdict.reason, skipped) {
            println!("ok {number} - {} {} # SKIP{why}", case.id, case.sends);
            self.skipped += 1;
            return;
        }
        let line =
            format!("{number} - {} {}: {}", case.id, case.sends, verdict.seen).replace('#', "");
        match (&verdict.reason, self.profile.reason(&case.id)) {
            (None, None) => println!("ok {line}"),
            (None, Some(_)) => {
                println!(
                    "ok {line}\n# {} is listed in the profile but passes",
                    case.id
                );
                self.surprises.push(case.id.clone());
            }
            (Some(reason), Some(known)) => {
                println!("not ok {line} # TODO {known}\n# {reason}");
                self.known += 1;
            }
            (Some(reason), None) => {
                println!("not ok {line}\n# {} RFC {}\n# {reason}", case.id, case.rfc);
                self.failed += 1;
            }
        }
        let _ = std::io::stdout().flush();
    }
}
