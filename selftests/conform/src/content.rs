// SPDX-License-Identifier: GPL-2.0
//! What READ and READLINK have to return of the suite's own files.

use crate::{
    explain::{unexplained, Seen},
    frame::Words,
    outcome::Outcome,
    rpc::{arguments, Kind},
    world::{long_target, pattern, World, BIG, LINK, SMALL},
};

/// A READ, or a READLINK: that has no range.
struct Asked<'a> {
    handle: &'a [u8],
    range: Option<(u64, u32)>,
}

/// What is asked for first, if nothing in front of it could change that.
fn asked(kind: Kind, call: &[u8]) -> Option<Asked<'_>> {
    let mut words = arguments(call)?;
    match kind {
        Kind::Read => {
            let handle = words.opaque().ok()?;
            let range = Some((words.long().ok()?, words.word().ok()?));
            Some(Asked { handle, range })
        }
        Kind::Readlink => Some(Asked {
            handle: words.opaque().ok()?,
            range: None,
        }),
        Kind::Compound(_) => operation(&mut words),
        _ => None,
    }
}

fn operation<'a>(words: &mut Words<'a>) -> Option<Asked<'a>> {
    words.opaque().ok()?;
    words.word().ok()?;
    let mut handle: &[u8] = &[];
    for _ in 0..words.word().ok()? {
        match words.word().ok()? {
            9 => {
                let count = words.word().ok()? as usize;
                words.take(count.saturating_mul(4)).ok()?;
            }
            22 => handle = words.opaque().ok()?,
            25 => {
                words.take(16).ok()?;
                let range = Some((words.long().ok()?, words.word().ok()?));
                return Some(Asked { handle, range });
            }
            27 => {
                return Some(Asked {
                    handle,
                    range: None,
                })
            }
            _ => return None,
        }
    }
    None
}

impl World {
    /// Data in a reply to this call are those of the file or link, if it is one of the suite's. Only the
    /// first are looked at: nfsd gives a second READ in a COMPOUND other data, over TCP, too.
    pub fn compare_data(&self, seen: &Seen, kind: Kind, call: &[u8]) -> Result<(), String> {
        if seen.outcome != Outcome::Ok || seen.lists.overlap() {
            return Ok(());
        }
        if let Some((asked, item)) = asked(kind, call).zip(seen.results.items.first()) {
            let Some(whole) = self.whole(&asked) else {
                return Ok(());
            };
            // A READ may give less than there is.
            let right = match asked.range {
                Some(_) => whole.starts_with(&item.data),
                None => whole == item.data,
            };
            if !right {
                let text = format!("{} bytes are not those of the file", item.data.len());
                return Err(unexplained(text));
            }
        }
        Ok(())
    }

    /// All that the server may return, if that is known.
    fn whole(&self, asked: &Asked<'_>) -> Option<Vec<u8>> {
        let files = &self.files;
        let Some((offset, count)) = asked.range else {
            return match asked.handle {
                handle if files.link.is(handle) => Some(LINK.to_vec()),
                handle if files.long_link.is(handle) => Some(long_target()),
                _ => None,
            };
        };
        let size = match asked.handle {
            handle if files.big.is(handle) => BIG,
            handle if files.small.is(handle) => SMALL,
            _ => return None,
        };
        let offset = usize::try_from(offset).unwrap_or(size).min(size);
        Some(pattern(offset, (count as usize).min(size - offset)))
    }
}
