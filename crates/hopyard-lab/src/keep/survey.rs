//! What there is below [`HOME`]: kept labs, labs that were never finished, and what this version does not understand.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::de::IgnoredAny;

use super::{HOME, Kept, STATE, check_name, directory, file_error, state_in};
use crate::Result;
use crate::bounded;
use crate::owner::{LabId, Life, Owner};

/// What there is below [`HOME`].
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Survey {
    /// Kept labs, by name.
    pub whole: Vec<Kept>,
    /// Unfinished labs and drafts whose builder has ended.
    pub unfinished: Vec<Unfinished>,
    /// Owners of unfinished labs whose PID namespace cannot be seen from here.
    pub hidden: Vec<String>,
    /// What this version does not understand.
    pub foreign: Vec<Foreign>,
}

/// A directory below [`HOME`] that was never finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    pub name: String,
    /// Which directory it was.
    pub(crate) seen: Identity,
}

/// A directory below [`HOME`] that this version does not understand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    pub name: String,
    /// Which directory it was.
    pub(crate) seen: Identity,
    /// What is the matter.
    pub why: String,
}

impl std::fmt::Display for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "lab `{}` is {}", self.name, self.why)
    }
}

/// Looks at everything below [`HOME`]. What belongs to a builder that lives is left out.
///
/// # Errors
/// The directory cannot be read.
pub fn survey() -> Result<Survey> {
    let mut survey = Survey::default();
    for name in entries()? {
        // Another one may have the name by the time that this one is removed.
        let Some(seen) = identity(&directory(&name)) else {
            continue;
        };
        let owner = match maker_of_draft(&name) {
            Some(maker) => maker,
            None => match look(&name, seen) {
                Look::Whole(kept) => {
                    survey.whole.push(*kept);
                    continue;
                }
                Look::Foreign(why) => {
                    survey.foreign.push(Foreign { name, seen, why });
                    continue;
                }
                Look::Unfinished(owner) => owner,
                Look::Gone => continue,
            },
        };
        match owner.life() {
            // The builder may have completed the lab since we looked; now nobody changes it any more.
            Life::Gone => match look(&name, seen) {
                Look::Whole(kept) => survey.whole.push(*kept),
                _ => survey.unfinished.push(Unfinished { name, seen }),
            },
            Life::Hidden => survey.hidden.push(owner.to_string()),
            Life::Lives => {}
        }
    }
    Ok(survey)
}

enum Look {
    Whole(Box<Kept>),
    Unfinished(Owner),
    Foreign(String),
    Gone,
}

/// What the directory that was seen holds, which is no draft.
fn look(name: &str, seen: Identity) -> Look {
    let kept = check_name(name).and_then(|()| state_in(&directory(name)));
    // It may have gone away meanwhile, and perhaps another of its name came.
    if identity(&directory(name)) != Some(seen) {
        return Look::Gone;
    }
    match kept {
        Ok(kept) if kept.complete => Look::Whole(Box::new(kept)),
        Ok(kept) => kept.owner.parse().map_or_else(
            |()| {
                Look::Foreign(format!(
                    "unfinished, and this version does not understand its owner `{}`",
                    kept.owner
                ))
            },
            Look::Unfinished,
        ),
        Err(error) => Look::Foreign(format!("not understood: {}", crate::chain(&error))),
    }
}

/// Every kept lab, by name.
///
/// # Errors
/// The directory cannot be read.
pub fn list() -> Result<Vec<Kept>> {
    Ok(survey()?.whole)
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// What each directory below [`HOME`] says of its lab, in whatever version.
pub(crate) struct States(Vec<String>);

impl States {
    /// Reads them.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(crate) fn read() -> Result<Self> {
        let read = |name: String| match bounded::read(&directory(&name).join(STATE)) {
            Ok(text) => Some(String::from_utf8_lossy(&text).into_owned()),
            Err(error) if is_absent(&error) => None,
            // A FIFO, or too large: damaged.
            Err(_) => Some(String::new()),
        };
        Ok(Self(entries()?.into_iter().filter_map(read).collect()))
    }

    /// Does a switch or a daemon of this name belong to a kept lab? Each may that is damaged.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        let is_damaged = |text: &String| serde_json::from_str::<IgnoredAny>(text).is_err();
        let mut texts = self.0.iter();
        texts.any(|text| text.contains(name) || is_damaged(text))
    }
}

/// Device and inode number of a directory.
pub(crate) type Identity = (u64, u64);

/// Which directory has a path just now.
pub(super) fn identity(path: &Path) -> Option<Identity> {
    let there = fs::metadata(path).ok()?;
    Some((there.dev(), there.ino()))
}

fn maker_of_draft(name: &str) -> Option<Owner> {
    let id: LabId = name.strip_prefix('.')?.parse().ok()?;
    Some(id.owner)
}

pub(super) fn names() -> Result<Vec<String>> {
    let mut names = entries()?;
    names.retain(|name| maker_of_draft(name).is_none());
    Ok(names)
}

fn entries() -> Result<Vec<String>> {
    let entries = match fs::read_dir(HOME) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(file_error(format!("read {HOME}"))(e)),
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}
