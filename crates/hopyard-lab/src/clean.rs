//! Finding and removing what an interrupted lab left.
//!
//! Namespaces of a lab end with its processes. What can stay behind a SIGKILL is a part of a kind in [`KINDS`],
//! and a kept lab that was never finished. All of them are named by the id of their lab, which tells whether its
//! builder lives. What cannot be judged is named and left alone.

use std::collections::BTreeSet;

use super::keep::Survey;
use super::kinds::KINDS;
use super::part::{HOLDS, Kind, Names};
use super::{Error, Result, keep};
use crate::owner::{Life, Owner};

/// What was found, and what became of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// A sentence for each thing removed.
    pub removed: Vec<String>,
    /// A sentence for each thing that would not go.
    pub problems: Vec<String>,
    /// A sentence for each thing that was left alone because it cannot be judged from here.
    pub left_alone: Vec<String>,
}

impl Cleaned {
    fn note(&mut self, removed: String, problems: Vec<String>) {
        if problems.is_empty() {
            self.removed.push(removed);
        }
        self.problems.extend(problems);
    }

    fn unfinished_labs(&mut self, survey: &Survey) {
        for lab in &survey.unfinished {
            let removed = format!("unfinished lab `{}`", lab.name);
            self.note(removed, keep::remove(&lab.name, Some(lab.seen)));
        }
    }

    fn foreign_labs(&mut self, survey: &Survey, force: bool) {
        for foreign in &survey.foreign {
            if force {
                let removed = format!("lab `{}`, which is {}", foreign.name, foreign.why);
                self.note(removed, keep::remove(&foreign.name, Some(foreign.seen)));
            } else {
                self.left_alone.push(format!(
                    "{foreign}: left alone; take it down with the version that built it, or with \
                     `hopyard clean --force`"
                ));
            }
        }
    }

    fn parts(&mut self, left: Vec<(&'static dyn Kind, String)>) {
        for (kind, name) in left {
            let undone = kind.left(name).undo();
            self.removed.extend(undone.removed);
            self.problems.extend(undone.problems);
        }
    }
}

/// Removes everything whose owner is dead. Labs that live, and kept labs that are whole, stay; so do kept labs that
/// this version does not understand, unless `force`.
///
/// # Errors
/// The places where leftovers would be cannot be read.
pub fn clean(force: bool) -> Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    // First: what a lab.json names is no leftover.
    let survey = keep::survey()?;
    cleaned.unfinished_labs(&survey);
    cleaned.foreign_labs(&survey, force);
    let found = Abandoned::find()?;
    cleaned.parts(found.left);
    for what in found.closed {
        cleaned.left_alone.push(format!(
            "only root can see the {what} of interrupted labs: run `hopyard clean` as root to remove them too"
        ));
    }
    let hidden: BTreeSet<String> = found.hidden.into_iter().chain(survey.hidden).collect();
    for lab in hidden {
        cleaned.left_alone.push(format!(
            "lab {lab} was built in another PID namespace, whose processes cannot be seen from here: left \
             alone; run `hopyard clean` there, or as root outside of all containers"
        ));
    }
    Ok(cleaned)
}

/// Takes a kept lab down; of one that was never finished, everything that its builder left.
///
/// # Errors
/// There is none of that name, processes still run in it (unless `force`), or something could not be
/// removed; everything else is gone then.
pub fn down(name: &str, force: bool) -> Result<()> {
    let taken = keep::take_down(name, force)?;
    let mut problems = taken.problems;
    if let Some(builder) = taken.builder {
        problems.extend(after(builder)?.problems);
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Error::Kept(problems.join("; ")))
    }
}

/// Removes what is left of the labs of one builder that has ended, without those that are kept.
fn after(builder: Owner) -> Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    let mut left = Abandoned::find()?.left;
    left.retain(|(kind, name)| kind.lab(name).is_some_and(|lab| lab.owner == builder));
    cleaned.parts(left);
    Ok(cleaned)
}

/// Something that [`clean`] would remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its name, mostly the id of its lab.
    pub name: String,
    /// What it does to figures and to this machine.
    pub effect: &'static str,
}

/// What [`clean`] would remove, of what whoever asks may see.
///
/// # Errors
/// The places where leftovers would be cannot be read.
pub fn find() -> Result<Vec<Leftover>> {
    let leftover = |name, effect| Leftover { name, effect };
    let left = Abandoned::find()?.left.into_iter();
    let mut all: Vec<Leftover> = left
        .map(|(kind, name)| leftover(name, kind.effect()))
        .collect();
    let unfinished = keep::survey()?.unfinished.into_iter();
    all.extend(unfinished.map(|lab| leftover(lab.name, HOLDS)));
    Ok(all)
}

/// What belongs to labs whose builder is dead and which are not kept.
#[derive(Default)]
struct Abandoned {
    left: Vec<(&'static dyn Kind, String)>,
    /// Ids of labs whose builder cannot be seen.
    hidden: Vec<String>,
    /// What only root may look for.
    closed: Vec<&'static str>,
}

impl Abandoned {
    fn find() -> Result<Self> {
        let mut found = Self::default();
        for kind in KINDS {
            match kind.names()? {
                Names::Of(names) => found.of_the_dead(kind, names),
                Names::Closed(what) => found.closed.push(what),
            }
        }
        // In this order: a lab that is kept meanwhile has a builder that lives.
        let kept = keep::States::read()?;
        found
            .left
            .retain(|(kind, name)| !(kind.is_kept() && kept.may_have(name)));
        Ok(found)
    }

    /// Takes note of those that are of labs whose builder is dead, and of builders that cannot be seen.
    fn of_the_dead(&mut self, kind: &'static dyn Kind, names: Vec<String>) {
        for name in names {
            let Some(lab) = kind.lab(&name) else { continue };
            match lab.owner.life() {
                Life::Gone => self.left.push((kind, name)),
                Life::Hidden => self.hidden.push(lab.to_string()),
                Life::Lives => {}
            }
        }
    }
}
