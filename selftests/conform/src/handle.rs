// SPDX-License-Identifier: GPL-2.0
//! A file by the handles that NFS versions 3 and 4 have for it.

use std::ops::Deref;

/// No RFC has a server take a handle of one version for the other. By itself it is that of
/// version 3.
#[derive(Clone, Debug, Default)]
pub struct Handle {
    three: Vec<u8>,
    /// Empty if the server does not have version 4.
    pub four: Vec<u8>,
}

impl Handle {
    pub fn new(three: Vec<u8>, four: Vec<u8>) -> Self {
        Self { three, four }
    }

    /// Whether this is the file's handle, of either version.
    pub fn is(&self, handle: &[u8]) -> bool {
        !handle.is_empty() && (handle == self.three || handle == self.four)
    }

    /// Whether one of them is somewhere in these bytes.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        let mut both = [&self.three, &self.four].into_iter();
        both.any(|one| !one.is_empty() && bytes.windows(one.len()).any(|part| part == one))
    }
}

impl Deref for Handle {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.three
    }
}
