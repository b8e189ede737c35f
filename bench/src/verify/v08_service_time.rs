//! V8: a responder that works a known time longer is seen to answer that much later.

use std::time::Duration;

use hopyard::model::{LoadKind, Measurement, Placement};
use hopyard::stats::{self, Estimate, Samples};
use rand::seq::SliceRandom;

use crate::bench::{Bench, undisturbed};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) struct ServiceTime;

const SPINS_US: [f64; 3] = [0.0, 10.0, 100.0];
const CONFIDENCE: f64 = 0.95;

impl Experiment for ServiceTime {
    fn id(&self) -> &'static str {
        "V8"
    }

    fn title(&self) -> &'static str {
        "the responder of tcp_rr spins a self-timed 10 and 100 µs"
    }

    fn run(&self, bench: &Bench) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        for placement in [Placement::Same, Placement::Split] {
            if placement == Placement::Split && bench.two_cpus().is_err() {
                continue;
            }
            rows.extend(shifts(bench, placement)?);
        }
        Ok(rows)
    }
}

fn shifts(bench: &Bench, placement: Placement) -> Result<Vec<Row>, Failure> {
    let mut sampler = bench.sampler(300, 100)?;
    let cell = cells::veth(LoadKind::TcpRr, placement);
    let mut rng = bench.rng(8);
    // Per spin: (median, mean) of every block, µs.
    let mut blocks: [Vec<(f64, f64)>; 3] = Default::default();
    for _ in 0..bench.pick(16, 6) {
        let mut order: Vec<usize> = (0..SPINS_US.len()).collect();
        order.shuffle(&mut rng);
        for index in order {
            sampler.service_time = Duration::from_secs_f64(SPINS_US[index] / 1e6);
            let m = undisturbed(&sampler, &cell, 0.0, 0.0)?;
            blocks[index].push(central_us(&m).ok_or(Failure::NoFigure("tcp_rr"))?);
        }
    }
    let [base, spun @ ..] = &blocks;
    SPINS_US[1..]
        .iter()
        .zip(spun)
        .map(|(spin_us, spun)| row(placement, *spin_us, base, spun))
        .collect()
}

fn central_us(m: &Measurement) -> Option<(f64, f64)> {
    Some((
        cells::latency_us(m, 0.5)?,
        m.latency.as_ref()?.mean_ns / 1e3,
    ))
}

fn row(
    placement: Placement,
    spin_us: f64,
    base: &[(f64, f64)],
    spun: &[(f64, f64)],
) -> Result<Row, Failure> {
    let shift = |of: fn(&(f64, f64)) -> f64| -> Result<Estimate, Failure> {
        let differences: Vec<f64> = spun.iter().zip(base).map(|(s, b)| of(s) - of(b)).collect();
        Samples::try_from(differences)
            .ok()
            .and_then(|d| stats::mean_interval(&d, CONFIDENCE))
            .ok_or(Failure::NoFigure("a shift of latency"))
    };
    let (median, mean) = (shift(|b| b.0)?, shift(|b| b.1)?);
    let tolerance_us = (0.01 * spin_us).max(0.5);
    let base_us = stats::mean(&base.iter().map(|b| b.0).collect::<Vec<_>>()).unwrap_or(0.0);
    // Over two CPUs the wake-ups are part of the round trip, and a responder that stays awake longer
    // changes how its client sleeps: nothing is promised there.
    let promised = placement == Placement::Same;
    Ok(Row {
        id: "V8",
        what: format!(
            "tcp_rr, placement {placement}, {spin_us:.0} µs more, median {base_us:.1} µs without, {} blocks",
            base.len()
        ),
        promised: if promised {
            format!("median {spin_us:+.1} ± {tolerance_us:.1} µs")
        } else {
            String::new()
        },
        seen: format!(
            "median {:+.2} µs ({:+.2} to {:+.2}), mean {:+.2} µs ({:+.2} to {:+.2})",
            median.value, median.low, median.high, mean.value, mean.low, mean.high
        ),
        verdict: if promised {
            Verdict::of((median.value - spin_us).abs() <= tolerance_us)
        } else {
            Verdict::Stated
        },
    })
}
