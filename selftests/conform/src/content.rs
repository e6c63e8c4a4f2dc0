// SPDX-License-Identifier: GPL-2.0
//! What READ and READLINK have to return of the suite's own files.

use crate::{
    explain::{unexplained, Seen},
    frame::{Segment, Words},
    outcome::Outcome,
    rpc::{arguments, Kind},
    world::{long_target, pattern, World, BIG, LINK, SMALL},
};

/// A READ, or a READLINK: that has no range.
struct Asked<'a> {
    handle: &'a [u8],
    range: Option<(u64, u32)>,
}

/// What is asked for in this order, up to what could change it.
fn asked(kind: Kind, call: &[u8]) -> Vec<Asked<'_>> {
    let mut all = Vec::new();
    let Some(mut words) = arguments(call) else {
        return all;
    };
    // What cannot be read asks for nothing more.
    let _ = match kind {
        Kind::Read | Kind::Readlink => words.opaque().and_then(|handle| {
            let range = match kind {
                Kind::Read => Some((words.long()?, words.word()?)),
                _ => None,
            };
            all.push(Asked { handle, range });
            Ok(())
        }),
        Kind::Compound(_) => operations(&mut words, &mut all),
        _ => Ok(()),
    };
    all
}

fn operations<'a>(words: &mut Words<'a>, all: &mut Vec<Asked<'a>>) -> Result<(), String> {
    words.opaque()?;
    words.word()?;
    let mut handle: &[u8] = &[];
    for _ in 0..words.word()? {
        match words.word()? {
            9 => {
                let count = words.word()? as usize;
                words.take(count.saturating_mul(4))?;
            }
            22 => handle = words.opaque()?,
            25 => {
                words.take(16)?;
                let range = Some((words.long()?, words.word()?));
                all.push(Asked { handle, range });
            }
            27 => all.push(Asked {
                handle,
                range: None,
            }),
            _ => break,
        }
    }
    Ok(())
}

/// Two segments that name the same memory: the later Write hides the earlier.
fn overlap(segments: &[&Segment]) -> bool {
    let end = |s: &Segment| s.offset.saturating_add(s.length.into());
    segments.iter().enumerate().any(|(i, a)| {
        let mut others = segments[i + 1..].iter();
        others.any(|b| a.offset < end(b) && b.offset < end(a))
    })
}

impl World {
    /// Data in a reply to this call are those of the file or link, if it is one of the suite's.
    pub fn compare_data(&self, seen: &Seen, kind: Kind, call: &[u8]) -> Result<(), String> {
        let used: Vec<_> = seen.lists.echoed().flatten().collect();
        let used: Vec<_> = used.into_iter().filter(|s| s.length > 0).collect();
        if seen.outcome != Outcome::Ok || overlap(&used) {
            return Ok(());
        }
        for (asked, item) in asked(kind, call).iter().zip(&seen.results.items) {
            let Some(whole) = self.whole(asked) else {
                continue;
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
