//! The shortcut of a description: the steps to it, and what keeps them from being taken.

use super::ShortcutSpec;
use super::devices::Sought;
use super::plan::{Change, Plan, stays};
use super::problem::Problem;
use crate::error::{Error, Result};
use crate::joining::open_cgroup;
use crate::shortcut::{NewShortcut, SelfTest, Shortcut, test_shortcut};
use crate::switch::Switch;

/// Looks whether the step to a shortcut can be taken. The self-test comes last, since it takes a second or two.
pub(super) fn check(plan: &mut Plan) -> Result<()> {
    let wanted = plan.changes.iter().find_map(|change| match change {
        Change::Shortcut { wanted, .. } => Some(wanted.clone()),
        _ => None,
    });
    let Some(wanted) = wanted else {
        return Ok(());
    };
    let path = &wanted.cgroup;
    let opened = if path.exists() {
        open_cgroup("", path).map(drop).map_err(Sought::from)
    } else {
        let why = format!("there is no control group `{}`", path.display());
        Err(Sought::Missing(why))
    };
    if let Err(sought) = opened {
        plan.problems
            .push(Problem::of_device(None, "shortcut.cgroup", sought));
    }
    if !plan.problems.is_empty() {
        return Ok(());
    }
    let test = test_shortcut()?;
    let why = match test.check("", &wanted.accept) {
        Ok(()) => {
            plan.tested = Some(test);
            return Ok(());
        }
        Err(Error::Invalid { why, .. }) => why,
        Err(Error::ShortcutLacks { why, lost, .. }) => format!(
            "on this kernel joined sockets lack something: {why}; where no program of the control group uses that, \
             accept {lost}"
        ),
        Err(error) => return Err(error),
    };
    plan.problems
        .push(Problem::new(None, "shortcut.accept", why));
    Ok(())
}

/// Takes the step.
pub(super) fn set(
    mut switch: Switch,
    wanted: &ShortcutSpec,
    was: Option<&Shortcut>,
    tested: Option<&SelfTest>,
) -> Result<()> {
    let new = NewShortcut {
        cgroup: &wanted.cgroup,
        accept: &wanted.accept,
    };
    match (was, tested) {
        (Some(was), Some(test)) if stays(wanted, was) => {
            switch.accept_for_shortcut(&wanted.accept, test)
        }
        (_, Some(test)) => switch.set_tested_shortcut(&new, test),
        (_, None) => switch.set_shortcut(&new),
    }
}
