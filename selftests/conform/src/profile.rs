// SPDX-License-Identifier: GPL-2.0
//! Where a given server is known to differ from the RFCs.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    case::Case,
    explain::UNEXPLAINED,
    outcome::{Accept, Outcome},
};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The server that this describes.
    #[serde(default)]
    pub server: String,
    #[serde(default)]
    pub differs: Vec<Difference>,
    #[serde(default)]
    pub narrow: Vec<Narrow>,
}

/// Where the RFCs leave a choice, and this server's is known: any other is a regression.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Narrow {
    /// Ids of cases.
    pub ids: Vec<String>,
    /// Outcomes, by their names.
    pub accepts: Vec<String>,
    /// Why, for the reader.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Ids of cases.
    pub ids: Vec<String>,
    /// What is seen then: each failure of the case has one of these in it.
    #[serde(default)]
    pub seen: Vec<String>,
    /// Why, for the reader.
    pub reason: String,
    /// The case is not run: it would take the server down.
    #[serde(default)]
    pub skip: bool,
    /// What is seen may be that nothing explains the server's bytes, or where it wrote.
    #[serde(default)]
    pub unexplained: bool,
}

impl Profile {
    pub fn load(path: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        let this: Self = toml::from_str(&text).map_err(|e| format!("{path}: {e}"))?;
        match this.differs.iter().find(|d| d.skip != d.seen.is_empty()) {
            Some(odd) => Err(format!(
                "{path}: {}: what is seen has to be named, unless it is skipped",
                odd.ids.join(", ")
            )),
            None => Ok(this),
        }
    }

    /// Leave of what cases accept only what this server is known to answer.
    pub fn narrow(&self, cases: &mut [Case]) -> Result<(), String> {
        for entry in &self.narrow {
            let names: Vec<_> = entry.accepts.iter().map(String::as_str).collect();
            let known = |case: &&mut Case| entry.ids.contains(&case.id);
            for case in cases.iter_mut().filter(known) {
                case.accept = Accept::of(&names)
                    .filter(|accept| case.accept.contains(*accept))
                    .ok_or_else(|| {
                        format!(
                            "the profile narrows {} to {names:?} ({}): there are {}",
                            case.id, entry.reason, case.accept
                        )
                    })?;
            }
        }
        Ok(())
    }

    fn find(&self, id: &str) -> Option<&Difference> {
        self.differs.iter().find(|d| d.ids.iter().any(|i| i == id))
    }

    pub fn reason(&self, id: &str) -> Option<&str> {
        self.find(id).map(|d| d.reason.as_str())
    }

    /// Why a case is not to be run.
    pub fn skips(&self, id: &str) -> Option<&str> {
        self.find(id).filter(|d| d.skip).map(|d| d.reason.as_str())
    }

    /// Why a case fails in this way, if that is known and may be.
    pub fn excuses(&self, id: &str, failures: &[Failure]) -> Option<&str> {
        let known = self.find(id)?;
        let may_be = |f: &Failure| f.may_be() && (known.unexplained || !f.unexplained());
        let named = |f: &Failure| may_be(f) && known.seen.iter().any(|s| f.text.contains(s));
        failures.iter().all(named).then_some(known.reason.as_str())
    }

    pub fn ids(&self) -> impl Iterator<Item = &String> {
        let narrowed = self.narrow.iter().flat_map(|n| &n.ids);
        self.differs.iter().flat_map(|d| &d.ids).chain(narrowed)
    }
}

/// One thing that is wrong after a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub text: String,
    /// The case was the last thing that this server, or its connections, stood.
    pub fatal: bool,
    /// What was waited for last never came.
    pub hang: bool,
}

impl Failure {
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            fatal: false,
            hang: false,
        }
    }

    pub fn fatal(text: String) -> Self {
        Self {
            fatal: true,
            ..Self::new(text)
        }
    }

    pub fn hung(self, hang: bool) -> Self {
        Self { hang, ..self }
    }

    /// Whether a profile may say that a server is so. Silence and what harms others may not be so
    /// anywhere.
    pub fn may_be(&self) -> bool {
        // Some cases wait by themselves, and only say so.
        !self.fatal && !self.hang && !self.text.contains(Outcome::Hang.name())
    }

    /// Bytes that nothing explains, or memory that was written: a profile has to admit that as such.
    pub fn unexplained(&self) -> bool {
        self.text.contains(UNEXPLAINED)
    }
}

/// Entries for failures that no profile excuses yet, as TOML.
pub fn entries(failed: &[(String, Vec<Failure>)]) -> String {
    let mut by_text: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
    for (id, failures) in failed
        .iter()
        .filter(|(_, f)| f.iter().all(|f| f.may_be() && !f.unexplained()))
    {
        let texts = failures.iter().map(|f| f.text.as_str()).collect();
        by_text.entry(texts).or_default().push(id);
    }
    let mut out = String::new();
    for (texts, ids) in by_text {
        // Strings of Rust that have no odd characters are TOML's, too.
        out.push_str(&format!(
            "[[differs]]\nids = {ids:?}\nseen = {texts:?}\nreason = \"\"\n\n"
        ));
    }
    out
}
