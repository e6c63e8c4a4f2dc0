// SPDX-License-Identifier: GPL-2.0
//! One case of the suite.

use std::{fmt, time::Duration};

use crate::{
    bench::{due, Bench},
    explain::Seen,
    message::Message,
    outcome::{Accept, Outcome},
};

pub type Run = Box<dyn Fn(&mut Bench<'_>) -> Result<Seen, String>>;

pub struct Case {
    pub id: String,
    /// Section of the specification that says so.
    pub rfc: &'static str,
    /// What is sent.
    pub sends: String,
    /// Every outcome that is right.
    pub accept: Accept,
    /// Hooks (or options) without which it cannot be run.
    pub needs: &'static [&'static str],
    pub run: Run,
}

impl Case {
    pub fn needs(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    pub fn deadline(&self, patience: u32) -> Deadline {
        Deadline {
            answer: due(self.accept, patience),
            probe: patience,
        }
    }
}

/// When silence is over, in units: a message of the case has no answer, and then a probe has none.
#[derive(Clone, Copy)]
pub struct Deadline {
    pub answer: u32,
    pub probe: u32,
}

impl Deadline {
    pub fn total(self, unit: Duration) -> Duration {
        unit * (self.answer + self.probe)
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.answer, self.probe)
    }
}

/// A case that sends one message.
pub fn one(
    id: impl Into<String>,
    rfc: &'static str,
    sends: impl Into<String>,
    accept: Accept,
    message: impl Fn(&mut Bench<'_>) -> Result<Message, String> + 'static,
) -> Case {
    full(id, rfc, sends, accept, move |bench| {
        let message = message(bench)?;
        bench.ask(&message)
    })
}

/// A case that does anything; an error is a failure whatever the outcome.
pub fn full(
    id: impl Into<String>,
    rfc: &'static str,
    sends: impl Into<String>,
    accept: Accept,
    run: impl Fn(&mut Bench<'_>) -> Result<Seen, String> + 'static,
) -> Case {
    Case {
        id: id.into(),
        rfc,
        sends: sends.into(),
        accept,
        needs: &[],
        run: Box::new(run),
    }
}

/// What only prepares a case failed: that says nothing of what the case looks at.
pub fn setup<T>(prepared: Result<T, String>) -> Result<T, String> {
    prepared.map_err(|text| match text.starts_with(SETUP) {
        true => text,
        false => format!("{SETUP}{text}"),
    })
}

/// `make conform-selftest` does not count such a failure.
const SETUP: &str = "setup: ";

/// What a case returns if the server lacks what it is about.
pub fn skip(why: impl Into<String>) -> Seen {
    Seen {
        note: why.into(),
        ..Seen::only(Outcome::Skip)
    }
}

/// For use in cases: fail with a text unless it holds.
pub fn check(holds: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(text())
    }
}
