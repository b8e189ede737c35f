//! Measurements as repeated runs of two sides, compared by the code of `hopyard diff --fail-on`.

use hopyard::assess::diff::{Ask, diff};
use hopyard::measure::Sampler;
use hopyard::meter::environment;
use hopyard::model::{Cell, Measurement, Outcome, Sample};
use hopyard::stats::Verdict;
use hopyard::store::{End, Header, PlannedCell, Run, SCHEMA};

use crate::experiment::Failure;

/// Measurements that make a run.
const BLOCKS_OF_A_RUN: usize = 2;

/// The result of a comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    /// Whether any quantity is called different.
    pub(crate) different: bool,
    /// Whether a gate that allows no loss fails.
    pub(crate) gate_failed: bool,
}

/// Compares two sides of one cell, with each two measurements as a run of its own, without a margin that could hide an
/// alarm.
pub(crate) fn compare(
    sampler: &Sampler,
    cell: &Cell,
    confidence: f64,
    sides: &[Vec<Measurement>; 2],
) -> Result<Said, Failure> {
    let [a, b] = [("a", &sides[0]), ("b", &sides[1])].map(|(name, measured)| {
        let runs = measured.chunks(BLOCKS_OF_A_RUN).enumerate();
        runs.map(|(nth, own)| run(&format!("{name}{nth}"), sampler, cell, confidence, own))
            .collect::<Vec<_>>()
    });
    let ask = Ask {
        relative: false,
        fail_on: Some(0.0),
    };
    let report = diff(&a, &b, &[], &ask)?;
    let compared = || {
        let cells = report.cells.iter();
        cells.flat_map(|cell| cell.comparisons.values())
    };
    if compared().all(|one| one.verdict.is_none()) {
        return Err(Failure::NoFigure("a comparison of repeated runs"));
    }
    Ok(Said {
        different: compared().any(|one| one.verdict == Some(Verdict::Different)),
        gate_failed: report.gate.is_some_and(|gate| gate.failed),
    })
}

/// A run of one cell, a block for each measurement.
fn run(id: &str, sampler: &Sampler, cell: &Cell, confidence: f64, measured: &[Measurement]) -> Run {
    let samples: Vec<Sample> = (0..)
        .zip(measured)
        .map(|(block, measurement)| Sample {
            block,
            attempt: 0,
            cell: 0,
            order: block,
            started_ns: 0,
            took_ns: 0,
            outcome: Outcome::Measured(Box::new(measurement.clone())),
        })
        .collect();
    let blocks = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    let header = Header {
        id: id.to_owned(),
        window_ns: measured.first().map_or(0, |m| m.window_ns),
        blocks_min: blocks,
        blocks_max: blocks,
        confidence,
        ..header(sampler, std::slice::from_ref(cell))
    };
    Run {
        header,
        samples,
        profiles: Vec::new(),
        end: Some(End::Complete),
    }
}

/// The header of a run of these cells, whatever its blocks are.
pub(crate) fn header(sampler: &Sampler, cells: &[Cell]) -> Header {
    let planned = |cell: &Cell| PlannedCell {
        cell: cell.clone(),
        unsupported: None,
        filter_sees: None,
        chains: None,
        rules_instead: None,
        offers: None,
        ceiling_per_s: None,
    };
    Header {
        schema: SCHEMA.to_owned(),
        id: "verify".to_owned(),
        plan: "verify".to_owned(),
        seed: 0,
        started: String::new(),
        window_ns: 0,
        warm_up_ns: 0,
        profile_window_ns: None,
        blocks_min: 0,
        blocks_max: 0,
        half_width: 0.0,
        confidence: 0.95,
        margin: 0.0,
        base: None,
        base_asked: false,
        limit_asked: false,
        needs: Vec::new(),
        time_limit_ns: None,
        profile: false,
        decide: None,
        turn_ns: None,
        shortest_turn_ns: None,
        left_out: Vec::new(),
        traces: Vec::new(),
        published: Vec::new(),
        offloads: None,
        settings: None,
        endpoints: None,
        fail_on: None,
        cells: cells.iter().map(planned).collect(),
        environment: environment::capture(&sampler.meter),
    }
}
