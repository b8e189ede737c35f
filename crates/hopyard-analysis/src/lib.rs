//! From raw samples to a report: estimates, verdicts and warnings, always from what is stored.

mod base;
mod cells;
pub mod curves;
pub mod diff;
mod gate;
pub mod kernels;
mod latency;
mod observations;
mod offloads;
mod profile;
mod quantities;
mod recommendation;
mod rounds;
mod settling;
mod simulation;
mod so_far;
pub mod subsystems;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod verdicts;
mod warnings;

use std::collections::{BTreeMap, BTreeSet};

use hopyard_model::{self as model, units};
use hopyard_stats as stats;
use quantities::decides_width;

use model::stored::{End, Header, Run};
use model::{
    CellReport, FOR_A_VERDICT, Feature, GIVEN_UP_AFTER, Measurement, ProfileWindow, RunReport,
    RunSummary, Sample,
};
use stats::Estimate;
use units::seconds;

pub use base::{base_of, bases, check_base, check_gate};
pub use cells::CLOSURE;
pub use observations::observations;
pub use offloads::offload_changes;
pub use quantities::{QUANTITIES, Quantity, cost, main_figure, quantity};
pub use rounds::{paired, rounds_worth};
pub use settling::{outside_until_s, time_s as settling_time_s};
pub use simulation::{Bursts, TurnsSetup, simulate_turns};
pub use so_far::{SoFar, so_far};

/// Makes the whole document of a run, with a recommendation for the needs that were given with the run.
#[must_use]
pub fn assess(run: &Run) -> RunReport {
    assess_for(run, &run.header.needs)
}

/// Makes the whole document of a run, with a recommendation for other needs.
#[must_use]
pub fn assess_for(run: &Run, needs: &[Feature]) -> RunReport {
    let header = &run.header;
    let blocks = last_attempts(&run.samples);
    let mut cells = cells::assess(header, &blocks);
    let quick_look = complete_blocks(header, &blocks) < FOR_A_VERDICT;
    let contrasts = offloads::contrasts(header);
    let verdicts::Table { answers, gate } =
        verdicts::fill(header, &blocks, &mut cells, &contrasts, quick_look);
    if let Some(hz) = header.environment.cpu_hz {
        per_ghz(&mut cells, hz);
    }
    profile::fill(header, &run.profiles, &blocks, &mut cells);
    let is_known = |cell: &CellReport| {
        let main = main_figure(cell.load, &cell.axes);
        cell.status == model::CellStatus::Unsupported || cell.estimates.contains_key(main)
    };
    let half_width_reached = settled(header, &blocks) && cells.iter().all(is_known);
    let summary = RunSummary {
        id: header.id.clone(),
        plan: header.plan.clone(),
        seed: header.seed,
        started: header.started.clone(),
        base: header.base.clone(),
        blocks: complete_blocks(header, &blocks),
        window_s: seconds(header.window_ns),
        warm_up_s: seconds(header.warm_up_ns),
        measured_s: measured_s(&run.samples),
        confidence: header.confidence,
        margin: header.margin,
        half_width: header.half_width,
        half_width_reached,
        quick_look,
        complete: matches!(run.end, Some(End::Complete | End::TimeLimit)),
        elsewhere: cells::elsewhere(&blocks),
        turns: rounds::report(header, &blocks),
        settings: header.settings.clone(),
        traces: header.traces.clone(),
        environment: header.environment.clone(),
    };
    let offloads = offloads::report(header, &summary, &cells, contrasts, answers);
    let curves = curves::report(header, &blocks);
    let warnings = warnings::all(run, &summary, &cells, &blocks);
    let evidence = recommendation::Evidence {
        header,
        samples: &blocks,
        cells: &cells,
        summary: &summary,
        warnings: &warnings,
    };
    let recommendation = recommendation::recommend(&evidence, needs);
    RunReport {
        schema: "hopyard/run/1".to_owned(),
        run: summary,
        published: header.published.clone(),
        offloads,
        recommendation,
        cells,
        curves,
        gate,
        warnings,
    }
}

/// Efficiency relative to the CPU frequency, which no sample contains; absent if the frequency is not fixed.
pub const PER_GHZ: &str = "efficiency_bps_per_ghz";

/// Efficiency in bit/s per busy GHz, if the frequency is known.
fn per_ghz(cells: &mut [CellReport], hz: f64) {
    let ghz = hz / 1e9;
    for cell in cells {
        if let Some(per_core) = cell.estimates.get("efficiency_bps_per_core") {
            let per_ghz = Estimate {
                value: per_core.value / ghz,
                low: per_core.low / ghz,
                high: per_core.high / ghz,
                ..*per_core
            };
            cell.estimates.insert(PER_GHZ.to_owned(), per_ghz);
        }
    }
}

/// The path that connects nothing.
const NATIVE: &str = "native";
/// Paths of Unix sockets, which carry no packets.
const UNIX: [&str; 2] = ["unix", "unix-seqpacket"];

/// Whether every cell's main figure and cost has the wanted width.
///
/// It checks only the width, because stopping on significance would falsify the verdicts. If too few samples have a
/// cost, because their CPU time is not known, it does not have the width: other blocks may have it.
#[must_use]
pub fn settled(header: &Header, samples: &[&Sample]) -> bool {
    let tolerance = header.cpu_tolerance();
    let mut estimates = Vec::new();
    for index in 0..header.cells.len() {
        let measured = cells::measured(samples, index);
        let cell = &header.cells[index].cell;
        let load = cell.load;
        for quantity in QUANTITIES
            .iter()
            .filter(|q| decides_width(q.name, load, &cell.axes))
        {
            let estimate = quantity.estimate(&measured, load, tolerance, header.confidence);
            let unknown = |m: &&Measurement| m.cpu.net_ns(tolerance).is_none();
            let waits = measured.iter().any(unknown) && !cpu_is_given_up(&measured);
            if estimate.is_none() && quantity.needs_cpu() && waits {
                return false;
            }
            estimates.extend(estimate);
        }
    }
    stats::settled_width(&estimates, header.half_width)
}

/// Whether a run no longer waits for the CPU time of a cell: after some windows its machine could read it in none. In a container, or
/// where it may not visit its CPUs, it never can.
fn cpu_is_given_up(measured: &[&Measurement]) -> bool {
    measured.len() >= GIVEN_UP_AFTER as usize && measured.iter().all(|m| m.cpu.is_partial)
}

/// The smallest differences that a run could have shown so far, one for each comparison of a main figure or its cost,
/// in rising order; infinite if it could not be compared yet.
#[must_use]
pub fn detectable(header: &Header, samples: &[&Sample]) -> Vec<f64> {
    let compared = so_far(header, samples);
    let mut all: Vec<f64> = compared.iter().flat_map(SoFar::detectable).collect();
    all.sort_unstable_by(f64::total_cmp);
    all
}

/// The smallest differences that comparisons could have shown so far, of all that `--decide` waits for, those that a gate guards included;
/// infinite where there are too few blocks for a verdict. What can get no verdict any more is not waited for.
#[must_use]
pub fn decided(header: &Header, samples: &[&Sample]) -> Vec<f64> {
    let mut compared = so_far(header, samples);
    compared.retain(|one| so_far::is_waited_for(samples, [one.cell, one.base]));
    compared.iter().flat_map(SoFar::decided).collect()
}

/// The samples of the last complete attempt at each block.
///
/// A block is repeated only after a complete attempt, so an attempt with fewer samples was interrupted. Using it would
/// leave cells without a pair.
#[must_use]
pub fn last_attempts(samples: &[Sample]) -> Vec<&Sample> {
    let mut sizes: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for sample in samples {
        *sizes.entry((sample.block, sample.attempt)).or_default() += 1;
    }
    let mut counts: BTreeMap<u32, (usize, u32)> = BTreeMap::new();
    for ((block, attempt), size) in sizes {
        let best = counts.entry(block).or_default();
        *best = (size, attempt).max(*best);
    }
    let counted = |s: &&Sample| counts.get(&s.block).is_some_and(|c| c.1 == s.attempt);
    samples.iter().filter(counted).collect()
}

/// The windows of profiles that were taken in the attempts of [`last_attempts`].
#[must_use]
pub fn counted_windows<'a>(
    samples: &[Sample],
    windows: &'a [ProfileWindow],
) -> Vec<&'a ProfileWindow> {
    let samples = last_attempts(samples).into_iter();
    let counted: BTreeSet<(u32, u32)> = samples.map(|s| (s.block, s.attempt)).collect();
    let is_counted = |window: &&ProfileWindow| counted.contains(&(window.block, window.attempt));
    windows.iter().filter(is_counted).collect()
}

/// Blocks in which every cell that can be measured was visited.
fn complete_blocks(header: &Header, samples: &[&Sample]) -> u32 {
    let wanted = header
        .cells
        .iter()
        .filter(|c| c.unsupported.is_none())
        .count();
    let last = samples.iter().map(|s| s.block).max().map_or(0, |b| b + 1);
    let complete = (0..last)
        .filter(|block| {
            wanted > 0 && samples.iter().filter(|s| s.block == *block).count() >= wanted
        })
        .count();
    u32::try_from(complete).unwrap_or(u32::MAX)
}

/// From the start of the first sample to the end of the last one.
fn measured_s(samples: &[Sample]) -> Option<f64> {
    let first = samples.iter().map(|s| s.started_ns).min()?;
    let ends = samples
        .iter()
        .map(|s| s.started_ns.saturating_add(s.took_ns));
    Some(seconds(ends.max()?.saturating_sub(first)))
}
