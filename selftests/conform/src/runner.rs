// SPDX-License-Identifier: GPL-2.0
//! Runs cases with the oracle around each, and reports.

use std::{io::Write, time::Instant};

use serde_json::{json, Value};

use crate::{
    bench::Bench,
    case::{skip, Case},
    connection::{Connection, Options},
    decode,
    outcome::Outcome,
    profile::{entries, Failure, Profile},
    rpc::Call,
    world::World,
};

/// How a case ended.
pub struct Verdict {
    pub seen: String,
    /// What is wrong.
    pub failures: Vec<Failure>,
    pub evidence: Vec<Value>,
}

pub struct Runner<'a> {
    pub world: &'a mut World,
    pub profile: Profile,
    pub report: Vec<Value>,
    pub failed: usize,
    pub known: usize,
    pub skipped: Vec<Value>,
    /// Those that failed, and the profile does not excuse it.
    unlisted: Vec<(String, Vec<Failure>)>,
    pub surprises: Vec<String>,
    /// How often each case is run.
    repeat: u32,
    /// Show what was sent and received.
    decode: bool,
    fresh: Option<Connection>,
}

impl<'a> Runner<'a> {
    pub fn new(world: &'a mut World, profile: Profile, repeat: u32, decode: bool) -> Self {
        Self {
            world,
            profile,
            report: Vec::new(),
            failed: 0,
            known: 0,
            skipped: Vec::new(),
            unlisted: Vec::new(),
            surprises: Vec::new(),
            repeat,
            decode,
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
        let result = match bench.lacks.take() {
            Some(why) if result.is_err() => Ok(skip(why)),
            _ => result,
        };
        let mut failures = Vec::new();
        let seen = match &result {
            Ok(seen) => {
                if !case.accept.has(seen.outcome) {
                    let hang = seen.outcome == Outcome::Hang;
                    failures.push(Failure::new(seen.describe()).hung(hang));
                }
                seen.describe()
            }
            Err(text) => {
                failures.push(Failure::new(text).hung(bench.hung));
                "VIOLATION".to_string()
            }
        };
        bench.hung = false;
        if let Err(text) = bench.finish() {
            failures.push(Failure::new(text).hung(bench.hung));
        }
        let evidence = std::mem::take(&mut bench.evidence);
        drop(bench);
        if let Err(text) = self.world.check_control() {
            failures.push(Failure::fatal(text));
            if let Err(text) = self.world.open_control() {
                failures.push(Failure::fatal(format!("a new control connection: {text}")));
            }
        }
        match self.renew() {
            Ok(fresh) => self.fresh = Some(fresh),
            Err(text) => failures.push(Failure::fatal(format!(
                "a new connection after the case: {text}"
            ))),
        }
        Verdict {
            seen,
            failures,
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
            if let Some(why) = self.skips(case) {
                let line = format!("{} - {} {}", number + 1, case.id, case.sends);
                println!("ok {line} # SKIP {why}");
                self.skipped.push(json!({ "id": case.id, "reason": why }));
                continue;
            }
            let begin = Instant::now();
            let mut verdict = self.judge(case);
            for _ in 1..self.repeat {
                if !self.passes(case, &verdict) || self.world.control.is_none() {
                    break;
                }
                let next = self.judge(case);
                // What is excused once stays to be shown.
                if verdict.failures.is_empty() || !self.passes(case, &next) {
                    verdict = next;
                }
            }
            let millis = begin.elapsed().as_millis() as u64;
            // What the server lacks shows only when it is asked.
            let lacks = verdict.seen.strip_prefix(Outcome::Skip.name());
            if let Some(why) = lacks.filter(|_| verdict.failures.is_empty()) {
                println!("ok {} - {} {} # SKIP{why}", number + 1, case.id, case.sends);
                self.skipped
                    .push(json!({ "id": case.id, "reason": why.trim() }));
                continue;
            }
            self.show(number + 1, case, &verdict);
            if self.decode {
                let lines = verdict.evidence.iter().flat_map(decode::step);
                lines.for_each(|line| println!("# {line}"));
            }
            self.record(case, verdict, millis);
            if self.world.control.is_none() {
                println!("Bail out! The server does not answer any more.");
                return false;
            }
        }
        self.suggest();
        self.failed == 0
    }

    fn record(&mut self, case: &Case, verdict: Verdict, millis: u64) {
        let passed = verdict.failures.is_empty();
        let excused = self.profile.excuses(&case.id, &verdict.failures);
        let deadline = case.deadline(self.world.patience);
        self.report.push(json!({
            "id": case.id, "section": case.rfc, "sends": case.sends, "accepted": case.accept.to_string(),
            "seen": verdict.seen, "passed": passed, "reason": verdict.reason(case),
            "excused": excused.filter(|_| !passed),
            "deadline": {
                "answer_units": deadline.answer, "probe_units": deadline.probe,
                "seconds": deadline.total(self.world.unit).as_secs_f64(),
            },
            "milliseconds": millis, "evidence": verdict.evidence,
        }));
    }

    /// Why a case is not run.
    fn skips(&self, case: &Case) -> Option<String> {
        let lacking = case.needs.iter().find(|n| self.world.lacks(n));
        let known = self.profile.skips(&case.id);
        lacking
            .map(|need| format!("needs {need}"))
            .or_else(|| known.map(|reason| format!("profile: {reason}")))
    }

    fn passes(&self, case: &Case, verdict: &Verdict) -> bool {
        verdict.failures.is_empty() || self.profile.excuses(&case.id, &verdict.failures).is_some()
    }

    /// What a profile would have to say of the failures it does not name.
    fn suggest(&self) {
        let text = entries(&self.unlisted);
        if !text.is_empty() {
            println!(
                "# A profile of a server that is so has these (parts of \"seen\" are enough):"
            );
            text.lines().for_each(|line| println!("#   {line}"));
        }
    }

    fn show(&mut self, number: usize, case: &Case, verdict: &Verdict) {
        let line =
            format!("{number} - {} {}: {}", case.id, case.sends, verdict.seen).replace('#', "");
        let reason = verdict.reason(case).unwrap_or_default();
        let listed = self.profile.reason(&case.id).is_some();
        match self.profile.excuses(&case.id, &verdict.failures) {
            _ if verdict.failures.is_empty() => {
                println!("ok {line}");
                if listed {
                    println!("# {} is listed in the profile but passes", case.id);
                    self.surprises.push(case.id.clone());
                }
            }
            Some(known) => {
                println!("not ok {line} # TODO {known}\n# {reason}");
                self.known += 1;
            }
            None => {
                println!("not ok {line}\n# {} RFC {}\n# {reason}", case.id, case.rfc);
                if !verdict.failures.iter().all(Failure::may_be) {
                    println!("# no profile excuses that");
                } else if verdict.failures.iter().any(Failure::unexplained) {
                    println!("# no profile excuses that unless it says so: unexplained = true");
                } else if listed {
                    println!("# the profile names other things that are seen");
                }
                self.failed += 1;
                let failed = (case.id.clone(), verdict.failures.clone());
                self.unlisted.push(failed);
            }
        }
        let _ = std::io::stdout().flush();
    }
}

impl Verdict {
    /// All that is wrong, in one line.
    fn reason(&self, case: &Case) -> Option<String> {
        let texts: Vec<_> = self.failures.iter().map(|f| f.text.as_str()).collect();
        let mut all = texts.join("; ");
        // The first is the outcome, if that is what is wrong.
        if texts.first() == Some(&self.seen.as_str()) {
            all.insert_str(self.seen.len(), &format!(", accepted: {}", case.accept));
        }
        (!texts.is_empty()).then_some(all)
    }
}
