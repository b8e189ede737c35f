//! V8: a responder that works a known time longer is measured to answer that much later.
//!
//! After a pause, a path is slower than when it is used back to back, probably because other programs and the core's
//! other thread have used its caches. That is a property of the path and not an error of the figure. So the promise is
//! about the shift against a requester that works as long between two round trips: then both paths rested equally long.
//! The shift against round trips back to back, which includes the effect of the pause, is only reported.

use std::time::Duration;

use hopyard::model::{LoadKind, Measurement, Placement};
use hopyard::stats::{self, Estimate, Samples};
use rand::seq::SliceRandom;

use crate::bench::{Bench, undisturbed};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V8",
    title: "the responder of tcp_rr spins a self-timed 10 and 100 µs",
    only_when_named: false,
    run,
};

const SPINS_US: [u32; 2] = [10, 100];
const CONFIDENCE: f64 = 0.95;

/// Who works, and how long, µs.
#[derive(Clone, Copy, PartialEq)]
enum Arm {
    BackToBack,
    /// The responder, inside the round trip.
    Responder(u32),
    /// The requester, between two round trips.
    Requester(u32),
}

/// One arm's blocks.
struct Blocks {
    arm: Arm,
    median_us: Vec<f64>,
    mean_us: Vec<f64>,
}

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for placement in [Placement::Same, Placement::Split] {
        if placement == Placement::Split && bench.two_cpus().is_err() {
            continue;
        }
        let arms = blocks(bench, placement)?;
        for spin_us in SPINS_US {
            for base in [Arm::BackToBack, Arm::Requester(spin_us)] {
                rows.push(row(placement, spin_us, base, &arms)?);
            }
        }
    }
    Ok(rows)
}

/// Every arm once a block, in random order.
fn blocks(bench: &Bench, placement: Placement) -> Result<Vec<Blocks>, Failure> {
    let cell = cells::veth(LoadKind::TcpRr, placement);
    let mut sampler = bench.sampler(300, 100)?;
    let mut rng = bench.rng(8);
    let arms = SPINS_US.map(|us| [Arm::Responder(us), Arm::Requester(us)]);
    let mut blocks: Vec<Blocks> = std::iter::once(Arm::BackToBack)
        .chain(arms.into_iter().flatten())
        .map(|arm| Blocks {
            arm,
            median_us: Vec::new(),
            mean_us: Vec::new(),
        })
        .collect();
    for _ in 0..bench.pick(16, 6) {
        let mut order: Vec<usize> = (0..blocks.len()).collect();
        order.shuffle(&mut rng);
        for index in order {
            let (service_us, pause_us) = match blocks[index].arm {
                Arm::BackToBack => (0, 0),
                Arm::Responder(us) => (us, 0),
                Arm::Requester(us) => (0, us),
            };
            sampler.service_time = Duration::from_micros(service_us.into());
            sampler.pause = Duration::from_micros(pause_us.into());
            let m = undisturbed(&sampler, &cell, 0.0, 0.0)?;
            let (median, mean) = central_us(&m).ok_or(Failure::NoFigure("tcp_rr"))?;
            blocks[index].median_us.push(median);
            blocks[index].mean_us.push(mean);
        }
    }
    Ok(blocks)
}

fn central_us(m: &Measurement) -> Option<(f64, f64)> {
    Some((
        cells::latency_us(m, 0.5)?,
        m.latency.as_ref()?.mean_ns / 1e3,
    ))
}

fn of(arms: &[Blocks], arm: Arm) -> Result<&Blocks, Failure> {
    arms.iter()
        .find(|blocks| blocks.arm == arm)
        .ok_or(Failure::NoFigure("a shift of latency"))
}

/// By how much the blocks of one arm exceed those of another, µs.
fn shift(spun: &[f64], base: &[f64]) -> Result<Estimate, Failure> {
    let differences: Vec<f64> = spun.iter().zip(base).map(|(s, b)| s - b).collect();
    Samples::try_from(differences)
        .ok()
        .and_then(|d| stats::mean_interval(&d, CONFIDENCE))
        .ok_or(Failure::NoFigure("a shift of latency"))
}

fn row(placement: Placement, spin_us: u32, base: Arm, arms: &[Blocks]) -> Result<Row, Failure> {
    let (spun, against) = (of(arms, Arm::Responder(spin_us))?, of(arms, base)?);
    let median = shift(&spun.median_us, &against.median_us)?;
    let mean = shift(&spun.mean_us, &against.mean_us)?;
    let base_us = stats::mean(&against.median_us).unwrap_or(0.0);
    let spin = f64::from(spin_us);
    let tolerance_us = (0.01 * spin).max(0.5);
    // Between two CPUs the wake-ups are part of the round trip, and a responder that stays awake longer changes how its
    // client sleeps: nothing is promised there.
    let promised = placement == Placement::Same && base == Arm::Requester(spin_us);
    let without = match base {
        Arm::BackToBack => "back to back",
        _ => "the requester pausing as long",
    };
    Ok(Row {
        id: "V8",
        what: format!(
            "tcp_rr, placement {placement}, {spin_us} µs more than {without} (median {base_us:.1} µs), {} blocks",
            spun.median_us.len()
        ),
        promised: if promised {
            format!("median {spin:+.1} ± {tolerance_us:.1} µs")
        } else {
            String::new()
        },
        seen: format!(
            "median {:+.2} µs ({:+.2} to {:+.2}), mean {:+.2} µs ({:+.2} to {:+.2})",
            median.value, median.low, median.high, mean.value, mean.low, mean.high
        ),
        verdict: if promised {
            Verdict::of((median.value - spin).abs() <= tolerance_us)
        } else {
            Verdict::Stated
        },
    })
}
