//! Steps to the shortcut of a description.

use std::collections::BTreeSet;

use super::Change;
use crate::apply::{Present, ShortcutSpec, SwitchSpec};
use crate::shortcut::{Loss, Shortcut};

/// The first step: what the description does not have goes before ports change.
pub(super) fn end(wanted: &SwitchSpec, present: &Present) -> Option<Change> {
    let was = present.shortcut.clone()?;
    let is_wanted = wanted.shortcut.is_some();
    (!is_wanted).then_some(Change::NoShortcut { was })
}

/// The last step: all ports are there by then.
pub(super) fn begin(wanted: &SwitchSpec, present: &Present) -> Option<Change> {
    let wanted = wanted.shortcut.as_ref()?;
    let was = present.shortcut.as_ref();
    let is_it = was
        .is_some_and(|was| stays(wanted, was) && sorted(&was.accepted) == sorted(&wanted.accept));
    (!is_it).then(|| Change::Shortcut {
        wanted: wanted.clone(),
        was: was.cloned(),
    })
}

/// Is its control group the one that is wanted?
pub(in crate::apply) fn stays(wanted: &ShortcutSpec, was: &Shortcut) -> bool {
    was.has_cgroup && was.cgroup == wanted.cgroup
}

fn sorted(losses: &[Loss]) -> BTreeSet<Loss> {
    losses.iter().copied().collect()
}
