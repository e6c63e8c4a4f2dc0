// SPDX-License-Identifier: GPL-2.0
//! What comes back on a connection.

use crate::{explain::Seen, outcome::Outcome};

/// What next_message() found.
pub enum Next {
    Message(Vec<u8>),
    Silence,
    Closed,
    Broken(String),
}

/// Replies to several messages.
pub struct Answers {
    pub seen: Vec<Vec<Seen>>,
    pub count: usize,
    pub end: Option<Outcome>,
}
