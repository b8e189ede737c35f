//! What has to be so for a part of a rule to be tested at all.

use serde::Deserialize;

use super::numbers;
use crate::bounds::Bounds;
use crate::evidence::{self, What};
use crate::model::{BoundPosition, FOR_A_VERDICT};
use crate::select::Selection;
use crate::stats::{self, Samples};
use crate::store::Run;

/// A premise: each of these cells lies within the bounds. A rule about what happens at a limit says nothing of machines that do not
/// get to it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// What of them.
    pub quantity: What,
    /// Cells of the plan of the check.
    pub cells: Selection,
    /// Least that is within the premise.
    pub at_least: Option<f64>,
    /// Most that is within it.
    pub at_most: Option<f64>,
    /// What a reader has to know where it is not so.
    pub otherwise: String,
}

impl Given {
    /// Can it be?
    pub(super) fn sound(&self) -> Result<(), String> {
        if (self.at_least, self.at_most) == (None, None) {
            return Err("`given` has no bound: set `at_least`, `at_most` or both".to_owned());
        }
        numbers(self.at_least, self.at_most)
    }

    /// Is it so by this run?
    ///
    /// # Errors
    /// It is not, or that is not shown, and why.
    pub(crate) fn is_so(&self, run: &Run) -> Result<(), String> {
        let meant = run
            .header
            .cells
            .iter()
            .enumerate()
            .filter(|(_, planned)| self.cells.has(&planned.cell));
        let bounds = Bounds::new(self.at_least, self.at_most);
        let mut any = false;
        for (at, planned) in meant {
            any = true;
            let series = evidence::series(run, at, &self.quantity)?;
            let values: Vec<f64> = series.into_values().collect();
            let samples = Samples::new(&values).ok();
            let interval = samples.and_then(|s| stats::mean_interval(&s, run.header.confidence));
            let is_inside = interval.as_ref().is_some_and(|interval| {
                interval.n >= FOR_A_VERDICT as usize
                    && bounds.lies(interval) == BoundPosition::Inside
            });
            if !is_inside {
                let name = self.quantity.name(planned.cell.load);
                let words = crate::report::claims::words(&name);
                let seen = interval.map_or_else(
                    || "is not known".to_owned(),
                    |interval| {
                        format!(
                            "is {}",
                            crate::report::claims::quoted(Some(&name), &interval)
                        )
                    },
                );
                return Err(format!("{} ({words} {seen})", self.otherwise));
            }
        }
        if any {
            Ok(())
        } else {
            Err(format!("{} (that was not measured)", self.otherwise))
        }
    }
}
