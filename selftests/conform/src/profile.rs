// SPDX-License-Identifier: GPL-2.0
//! Where a given server is known to differ from the RFCs.

use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The server that this describes.
    #[serde(default)]
    pub server: String,
    #[serde(default)]
    pub differs: Vec<Difference>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Ids of cases.
    pub ids: Vec<String>,
    /// Why, for the reader.
    pub reason: String,
    /// The case is not run: it would take the server down.
    #[serde(default)]
    pub skip: bool,
}

impl Profile {
    pub fn load(path: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        toml::from_str(&text).map_err(|e| format!("{path}: {e}"))
    }

    fn find(&self, id: &str) -> Option<&Difference> {
        self.differs.iter().find(|d| d.ids.iter().any(|i| i == id))
    }

    pub fn reason(&self, id: &str) -> Option<&str> {
        self.find(id).map(|d| d.reason.as_str())
    }

    pub fn skips(&self, id: &str) -> bool {
        self.find(id).is_some_and(|d| d.skip)
    }

    pub fn ids(&self) -> impl Iterator<Item = &String> {
        self.differs.iter().flat_map(|d| &d.ids)
    }
}
