//! Two sides of repeated runs compared cell by cell.
//!
//! Runs are made one after the other, so nothing pairs their samples, and a machine that is faster on the second day
//! looks like a change in every cell. So the unit of replication is the run: a side is several runs of one thing, a run
//! has one figure of a cell, and intervals and verdicts come from the scatter of these figures between runs of one
//! thing. If that scatter is not known, there is no verdict.

mod apart;
mod facts;
mod runs;
mod table;
#[cfg(test)]
mod tests;
mod warnings;

use crate::model::stored::Run;
use crate::model::{Cell, DiffReport, Difference, LeftOut, RunSummary};

use runs::{Assessed, Group, Groups, group};
use table::Table;

/// Options of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ask {
    /// Compare ratios to the base of each run.
    pub relative: bool,
    /// Fail if a cell is worse by more than this share.
    pub fail_on: Option<f64>,
}

/// Why runs cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A side without runs.
    #[error("there are no runs of {0} to compare")]
    NoRuns(&'static str),
    /// A run is named twice.
    #[error("run `{0}` is named twice: name each run once")]
    SameRun(String),
    /// Repeats that show no scatter.
    #[error(
        "--repeats with run `{0}` alone: it takes at least two runs of one thing to see how much they differ"
    )]
    LoneRepeat(String),
    /// The runs have no common cell.
    #[error("the runs have no cell in common: {0}")]
    NothingInCommon(
        /// The nearest cells, their difference, and what to do.
        String,
    ),
    /// Common cells, none of which can be compared; the reason for the first.
    #[error("no cell can be compared: {0}")]
    NoFigures(String),
}

/// Facts that differ between two runs of one plan, whether or not their figures can be compared.
#[must_use]
pub(crate) fn facts_that_differ(a: &Run, b: &Run) -> Vec<Difference> {
    let side = |run| group(std::slice::from_ref(run));
    facts::differences(&[side(a), side(b)])
}

/// Compares the runs of `b` with those of `a`, each of them repeats of one thing. `repeats` are groups of runs of one
/// thing each. They show how much such runs differ if the sides have too few runs for that.
///
/// # Errors
/// A run is named twice, or there is nothing to compare.
pub fn diff(a: &[Run], b: &[Run], repeats: &[Vec<Run>], ask: &Ask) -> Result<DiffReport, Refused> {
    refuse_unfit(a, b, repeats)?;
    let groups = Groups {
        sides: [group(a), group(b)],
        repeats: repeats.iter().map(|runs| group(runs)).collect(),
    };
    refuse_apart(&groups.sides)?;
    let headers = || groups.sides.iter().flatten().map(|run| run.header);
    let confidence = headers().map(|h| h.confidence).fold(0.0, f64::max);
    let margin = headers().map(|h| h.margin).fold(f64::INFINITY, f64::min);
    let mut table = Table::of(&groups, ask.relative, confidence);
    if table.is_empty() {
        return Err(Refused::NoFigures(first_cause(&table.left_out)));
    }
    let gate = table.judge(ask.fail_on, margin, confidence);
    let differences = facts::differences(&groups.sides);
    let warnings = warnings::all(&groups, &table, gate.as_ref());
    let summaries = |group: Group<'_>| -> Vec<RunSummary> {
        group.into_iter().map(|run| run.report.run).collect()
    };
    let Table {
        cells, left_out, ..
    } = table;
    let [a, b] = groups.sides.map(summaries);
    Ok(DiffReport {
        schema: "hopyard/diff/2".to_owned(),
        a,
        b,
        repeats: groups.repeats.into_iter().map(summaries).collect(),
        differences,
        relative: ask.relative,
        confidence,
        margin,
        cells,
        left_out,
        gate,
        warnings,
    })
}

/// Refuses sides without runs, groups of one run, and a run named twice (a copy of a run is the same run).
fn refuse_unfit(a: &[Run], b: &[Run], repeats: &[Vec<Run>]) -> Result<(), Refused> {
    for (name, side) in [("A", a), ("B", b)] {
        if side.is_empty() {
            return Err(Refused::NoRuns(name));
        }
    }
    for group in repeats {
        match &group[..] {
            [] => return Err(Refused::NoRuns("--repeats")),
            [lone] => return Err(Refused::LoneRepeat(lone.header.id.clone())),
            _ => {}
        }
    }
    let identity = |run: &Run| {
        let header = &run.header;
        let host = header.environment.hostname.clone();
        (header.id.clone(), header.seed, header.started.clone(), host)
    };
    let mut known = Vec::new();
    for run in a.iter().chain(b).chain(repeats.iter().flatten()) {
        let identity = identity(run);
        if known.contains(&identity) {
            return Err(Refused::SameRun(run.header.id.clone()));
        }
        known.push(identity);
    }
    Ok(())
}

fn refuse_apart(sides: &[Group<'_>; 2]) -> Result<(), Refused> {
    let [a, b] = sides.each_ref().map(|side| {
        let cells = side.iter().flat_map(Assessed::cells);
        cells.cloned().collect::<Vec<Cell>>()
    });
    if a.iter().any(|cell| b.contains(cell)) {
        return Ok(());
    }
    Err(Refused::NothingInCommon(apart::why(&a, &b)))
}

fn first_cause(left_out: &[LeftOut]) -> String {
    left_out.first().map_or_else(
        || "there are no samples".to_owned(),
        |out| format!("{}: {}", out.cell, out.cause),
    )
}
