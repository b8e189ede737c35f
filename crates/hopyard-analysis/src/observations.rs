//! A run as one tidy table.

use std::collections::BTreeSet;

use super::last_attempts;
use super::quantities::QUANTITIES;
use crate::model::stored::Run;
use crate::model::{Observation, Outcome};

/// Every sample in the order of the run, including those of repeated blocks.
#[must_use]
pub fn observations(run: &Run) -> Vec<Observation> {
    let counted = last_attempts(&run.samples).into_iter();
    let counted: BTreeSet<(u32, u32)> = counted.map(|s| (s.block, s.attempt)).collect();
    let tolerance = run.header.cpu_tolerance();
    run.samples
        .iter()
        .filter_map(|sample| {
            let cell = run.header.cells.get(sample.cell)?.cell.clone();
            let (measured, cause) = match &sample.outcome {
                Outcome::Measured(measured) => (Some(measured), None),
                Outcome::Failed { cause } => (None, Some(cause.clone())),
            };
            let quantities = QUANTITIES.iter().filter(|q| q.applies(cell.load));
            let value =
                |q: &super::Quantity| Some((q.name, q.value(measured?, cell.load, tolerance)?));
            Some(Observation {
                values: quantities.filter_map(value).collect(),
                block: sample.block,
                attempt: sample.attempt,
                order: sample.order,
                started_ns: sample.started_ns,
                took_ns: sample.took_ns,
                counted: counted.contains(&(sample.block, sample.attempt)),
                cause,
                window_ns: measured.map(|m| m.window_ns),
                way_proved: measured.map(|m| m.way.proved),
                cell,
            })
        })
        .collect()
}
