//! A table of kernel functions for each profiled cell: samples, share, total; as profilers print it, and as the report
//! of 2006 printed it for a bridge and a direct path.

use std::collections::BTreeMap;

use super::document::{Block, Cell, Column, Part, Row, Table};
use super::exports::text::page;
use super::flame;
use crate::assess::counted_windows;
use crate::assess::subsystems::{Place, place, plain_name, subsystems};
use crate::model::ProfileWindow;
use crate::model::stored::Run;
use crate::units::float;

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run has no profiles.
    #[error(
        "the run has no profiles to count functions in: take them with `hopyard run --profile`"
    )]
    None,
    /// There is no subsystem with that name.
    #[error("no subsystem is called `{name}`; there are {}", choices())]
    Unknown {
        /// The given name.
        name: String,
    },
}

/// The functions of the named subsystems, for each cell with a profile; without names, of those that connect devices.
/// Text for a terminal.
///
/// # Errors
/// The run has no profiles, or there is no subsystem with such a name.
pub fn text(run: &Run, named: &[String]) -> Result<String, Error> {
    let wanted = wanted(named)?;
    let cells = 0..run.header.cells.len();
    let counted = counted_windows(&run.samples, &run.profiles);
    let blocks: Vec<Block> = cells
        .filter_map(|cell| {
            let windows = counted.iter().copied().filter(|window| window.cell == cell);
            let counts = Counts::over(windows, &wanted)?;
            Some(counts.blocks(flame::title(run, cell), &wanted))
        })
        .flatten()
        .collect();
    if blocks.is_empty() {
        return Err(Error::None);
    }
    Ok(page(blocks))
}

fn choices() -> String {
    let names: Vec<&str> = subsystems().iter().map(|s| s.name.as_str()).collect();
    names.join(", ")
}

pub(super) fn wanted(named: &[String]) -> Result<Vec<&'static str>, Error> {
    if named.is_empty() {
        let switching = subsystems().iter().filter(|s| s.switches);
        return Ok(switching.map(|s| s.name.as_str()).collect());
    }
    let known = |name: &String| {
        let found = subsystems().iter().find(|s| s.name == *name);
        found
            .map(|s| s.name.as_str())
            .ok_or_else(|| Error::Unknown { name: name.clone() })
    };
    named.iter().map(known).collect()
}

/// Samples of a cell's windows, combined.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) busy: u64,
    /// Of the selected subsystems.
    pub(super) functions: BTreeMap<String, u64>,
}

impl Counts {
    /// `None` if the windows have no busy samples.
    pub(super) fn over<'a>(
        windows: impl Iterator<Item = &'a ProfileWindow>,
        wanted: &[&str],
    ) -> Option<Self> {
        let mut counts = Self::default();
        for window in windows {
            for (stack, samples) in window.stacks() {
                let Place::Busy {
                    subsystem,
                    function,
                } = place(&stack)
                else {
                    continue;
                };
                counts.busy = counts.busy.saturating_add(samples);
                if wanted.contains(&subsystem) {
                    let seen = counts
                        .functions
                        .entry(plain_name(function).to_owned())
                        .or_default();
                    *seen = seen.saturating_add(samples);
                }
            }
        }
        (counts.busy > 0).then_some(counts)
    }

    fn blocks(self, title: String, wanted: &[&str]) -> [Block; 3] {
        let busy = self.busy;
        let total = self.functions.values().sum();
        let mut functions: Vec<(String, u64)> = self.functions.into_iter().collect();
        functions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut rows: Vec<Row> = functions
            .into_iter()
            .map(|(name, samples)| Row::Cells(row(name, samples, busy)))
            .collect();
        rows.push(Row::Sum(row("TOTAL".to_owned(), total, busy)));
        [
            Block::Heading(title),
            Block::Table(Table {
                columns: vec![
                    Column::left(&["function"]),
                    Column::right(&["samples"]),
                    Column::right(&["%"]),
                ],
                keys: 1,
                rows,
            }),
            Block::Notes(vec![format!(
                "Of {busy} samples of busy CPUs; functions of {}.",
                wanted.join(", ")
            )]),
        ]
    }
}

fn row(name: String, samples: u64, busy: u64) -> Vec<Cell> {
    let share = 100.0 * float(samples) / float(busy);
    vec![
        Cell::lone(name),
        Cell(vec![Part::Point(samples.to_string())]),
        Cell(vec![Part::Point(format!("{share:.3}"))]),
    ]
}

#[cfg(test)]
mod tests;
