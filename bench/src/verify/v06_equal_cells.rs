//! V6: equal cells are rarely called different, on a quiet machine and on one whose load rises.

use std::time::Duration;

use hopyard::measure::{QuietCores, Sampler};
use hopyard::model::{Cell, LoadKind, Measurement, Placement};
use hopyard::stats::{self, Order, Setup, Verdict as Judgement};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::bench::{Bench, measure};
use crate::burner::{Burner, Plan};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};
use crate::pair::Share;
use crate::two_runs;

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V6",
    title: "A/A: identical cells compared, quiet and under a rising background load",
    only_when_named: false,
    run,
};

const LOADS: [LoadKind; 3] = [LoadKind::TcpStream, LoadKind::TcpRr, LoadKind::UdpStream];
const BLOCKS: usize = 8;
const WINDOW_MS: u64 = 100;
const WARM_UP_MS: u64 = 40;
const CONFIDENCE: f64 = 0.95;
const PROMISE: f64 = 0.07;
/// The background's share of a CPU at the end of each comparison.
const BACKGROUND: f64 = 0.6;

/// How often equal cells were called different.
#[derive(Debug, Default, Clone, Copy)]
struct Alarms {
    throughput: u64,
    demand: u64,
    /// The same samples as four runs of two blocks on each side: tables of `hopyard diff` with any alarm, and gates
    /// that fail.
    diff: u64,
    gate: u64,
    comparisons: u64,
}

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let (busy_cpu, _) = bench.two_cpus()?;
    let sampler = bench.sampler(WINDOW_MS, WARM_UP_MS)?;
    let quiet_cores = sampler.quiet_cores()?;
    let mut rng = bench.rng(6);
    // (load, with background load?) in random order, equally many of each.
    let mut todo: Vec<(LoadKind, bool)> = LOADS
        .into_iter()
        .flat_map(|load| [(load, false), (load, true)])
        .cycle()
        .take(bench.pick(60, 18))
        .collect();
    todo.shuffle(&mut rng);
    let mut alarms = [Alarms::default(); 2];
    for (done, (load, loaded)) in todo.iter().enumerate() {
        if done % 10 == 0 {
            hopyard::note(format_args!("V6: comparison {done} of {}", todo.len()));
        }
        let cell = cells::veth(*load, Placement::Split);
        let ramp = sampler.estimate(&cell) * u32::try_from(2 * BLOCKS).unwrap_or(u32::MAX);
        let _background = loaded
            .then(|| start_background(busy_cpu, ramp))
            .transpose()?;
        compare(
            &sampler,
            &cell,
            quiet_cores,
            &mut rng,
            &mut alarms[usize::from(*loaded)],
        )?;
    }
    let whens = ["quiet", "background rising to 60 % of a CPU"];
    let mut rows = Vec::new();
    for (when, alarms) in whens.into_iter().zip(&alarms) {
        for (figure, count) in [
            ("throughput", alarms.throughput),
            ("service demand", alarms.demand),
            ("`hopyard diff` of four runs of each", alarms.diff),
            ("its gate, --fail-on 0%", alarms.gate),
        ] {
            rows.push(row(when, figure, count, alarms.comparisons)?);
        }
    }
    rows.extend(simulated(bench)?);
    Ok(rows)
}

fn start_background(cpu: usize, ramp: Duration) -> Result<Burner, Failure> {
    Burner::start(&Plan::from_now(cpu, (0.0, BACKGROUND), ramp))
}

/// One comparison: the same cell twice per block, in random order.
fn compare(
    sampler: &Sampler,
    cell: &Cell,
    quiet_cores: QuietCores,
    rng: &mut ChaCha8Rng,
    alarms: &mut Alarms,
) -> Result<(), Failure> {
    let mut sides: [Vec<Measurement>; 2] = Default::default();
    for _ in 0..BLOCKS {
        let mut order = [0, 1];
        order.shuffle(rng);
        for side in order {
            sides[side].push(measure(sampler, cell, quiet_cores)?);
        }
    }
    alarms.comparisons += 1;
    alarms.throughput += u64::from(different(cell.load, &sides, cells::throughput)?);
    alarms.demand += u64::from(different(cell.load, &sides, cells::demand_ns)?);
    let said = two_runs::compare(sampler, cell, CONFIDENCE, &sides)?;
    alarms.diff += u64::from(said.different);
    alarms.gate += u64::from(said.gate_failed);
    Ok(())
}

/// Judged as a table of its own and without a margin, so that *equivalent* hides no alarm.
fn different(
    load: LoadKind,
    sides: &[Vec<Measurement>; 2],
    figure: fn(LoadKind, &Measurement) -> f64,
) -> Result<bool, Failure> {
    let [a, b] = sides
        .each_ref()
        .map(|side| side.iter().map(|m| figure(load, m)).collect::<Vec<_>>());
    let comparison =
        stats::compare(&a, &b, CONFIDENCE).ok_or(Failure::NoFigure("a pair of equal cells"))?;
    Ok(stats::judge(&[comparison], 0.0, CONFIDENCE)
        .iter()
        .any(|judged| judged.verdict == Judgement::Different))
}

fn row(when: &str, figure: &str, alarms: u64, comparisons: u64) -> Result<Row, Failure> {
    let alarms = Share {
        hits: alarms,
        of: comparisons,
    };
    let share = alarms.estimate()?;
    Ok(Row {
        id: "V6",
        what: format!("veth tcp_stream, tcp_rr, udp_stream, {BLOCKS} blocks, {when}: {figure}"),
        promised: "'different' ≤ 7 %, or not shown to be more".to_owned(),
        seen: format!(
            "{}{}",
            alarms.text()?,
            if share.value > PROMISE {
                "; above 7 %, within chance"
            } else {
                ""
            }
        ),
        verdict: Verdict::of(share.value <= PROMISE || share.low <= PROMISE),
    })
}

/// The same without a kernel, often enough to distinguish 5 % from 7 %.
fn simulated(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let runs = bench.pick(20_000, 2000);
    [
        (2, BLOCKS, 0.0),
        (2, BLOCKS, 0.01),
        (2, 20, 0.01),
        (8, 20, 0.01),
    ]
    .into_iter()
    .map(|(cells, blocks, drift)| {
        let setup = Setup {
            cells,
            blocks,
            noise: 0.03,
            drift,
            order: Order::RandomBlocks,
        };
        let counts = stats::simulate_false_alarms(setup, runs, bench.seed);
        let share = stats::binomial_interval(counts.alarmed, counts.runs, CONFIDENCE)
            .ok_or(Failure::NoFigure("the simulated A/A"))?;
        Ok(Row {
            id: "V6",
            what: format!(
                "simulated: {cells} cells, {blocks} blocks, 3 % noise, {:.0} % drift per run",
                100.0 * drift
            ),
            promised: "tables with any 'different' ≤ 7 %".to_owned(),
            seen: format!(
                "{:.2} % of {} ({:.2} to {:.2} %)",
                100.0 * share.value,
                counts.runs,
                100.0 * share.low,
                100.0 * share.high
            ),
            verdict: Verdict::of(share.value <= PROMISE),
        })
    })
    .collect()
}
