//! What a guest with another kernel said, and its runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bench::{Done, FunctionalCheck};
use crate::run::guest::protocol::Tried;
use crate::store::Run;

/// Where the runs are, in a directory of claims.
pub(super) const DIRECTORY: &str = "guest";
/// What a guest said, as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Guest {
    /// The release of its kernel.
    pub release: String,
    /// Was its CPU emulated?
    pub emulated: bool,
    /// Deeds by name.
    #[serde(default)]
    pub done: BTreeMap<String, Done>,
    /// Why a plan could not be run there.
    #[serde(default)]
    pub not_run: BTreeMap<String, String>,
}

impl Guest {
    /// In words: `a guest with Linux 6.1.0, emulated`.
    pub(super) fn described(&self) -> String {
        let how = if self.emulated { ", emulated" } else { "" };
        format!("a guest with Linux {}{how}", self.release)
    }

    /// Takes note of what came of deeds.
    pub fn add(&mut self, deeds: BTreeMap<String, Tried>) {
        let done = |tried: Tried| match tried.passed {
            Some(passed) => Ok(FunctionalCheck {
                passed,
                seen: tried.seen,
            }),
            None => Err(tried.seen),
        };
        let deeds = deeds.into_iter().map(|(name, tried)| (name, done(tried)));
        self.done.extend(deeds);
    }
}

/// A guest with its runs.
#[derive(Debug, Default)]
pub struct Beside {
    pub guest: Guest,
    pub runs: Vec<Run>,
}
