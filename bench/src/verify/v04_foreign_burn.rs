//! V4: the CPU time of a foreign process is separated from the load's, and the load costs the same with and without it.
//!
//! The load is TCP_RR with both ends on the last CPU; the burner runs on the first, so they do not compete for a CPU. A
//! loop of fixed work on the load's CPU shows whether the machine makes that CPU slower while another is busy (shared
//! core, cache, clock), which no meter can subtract.

use std::time::Duration;

use hopyard::model::{Cell, LoadKind, Measurement, Placement};
use hopyard::stats::{self, Estimate, Verdict as Judgement};
use hopyard_net::{clock, cpu};
use rand::seq::SliceRandom;

use crate::bench::{Bench, undisturbed, wait_until};
use crate::burner::{Burner, Plan};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V4",
    title: "a foreign process burns 25 % of the CPU that the load leaves free",
    only_when_named: false,
    run,
};

const DUTY: f64 = 0.25;
const CONFIDENCE: f64 = 0.95;
/// As a share of one CPU.
const FOREIGN_TOLERANCE: f64 = 0.01;
const DEMAND_TOLERANCE: f64 = 0.02;
const LOAD: LoadKind = LoadKind::TcpRr;

/// One block: the same cell without and with the burner.
struct Block {
    /// CPU ns per transaction.
    demand: [f64; 2],
    throughput: [f64; 2],
    /// Time for a fixed amount of work on the load's CPU, ns.
    fixed_work: [f64; 2],
    /// Foreign share of one CPU without the burner.
    others: f64,
    /// Foreign share of one CPU with the burner, and the burner's own report.
    foreign: f64,
    burnt: f64,
}

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let (first, last) = bench.two_cpus()?;
    let sampler = bench.sampler(500, 100)?;
    let quiet_cores = sampler.quiet_cores()?;
    let cell = cells::veth(LOAD, Placement::Same);
    let mut rng = bench.rng(4);
    let mut blocks = Vec::new();
    for _ in 0..bench.pick(20, 8) {
        let mut order = [false, true];
        order.shuffle(&mut rng);
        let mut block = Block {
            demand: [0.0; 2],
            throughput: [0.0; 2],
            fixed_work: [0.0; 2],
            others: 0.0,
            foreign: 0.0,
            burnt: 0.0,
        };
        for burning in order {
            let mut burner = burning.then(|| start(first)).transpose()?;
            // No limit of foreign CPU time: it is what is judged.
            let m = undisturbed(&sampler, &cell, quiet_cores, f64::INFINITY)?;
            let at = usize::from(burning);
            block.demand[at] = cells::demand_ns(LOAD, &m);
            block.throughput[at] = cells::throughput(LOAD, &m);
            block.fixed_work[at] = fixed_work_ns(last)?;
            match &mut burner {
                None => block.others = foreign(&m),
                Some(burner) => {
                    block.foreign = foreign(&m);
                    block.burnt = burner.stop()?.share();
                }
            }
        }
        blocks.push(block);
    }
    rows(&cell, &blocks)
}

/// Starts a burner and waits until it burns.
fn start(cpu: usize) -> Result<Burner, Failure> {
    let plan = Plan::from_now(cpu, (DUTY, DUTY), Duration::ZERO);
    let burner = Burner::start(&plan)?;
    wait_until(plan.start_ns)?;
    Ok(burner)
}

fn foreign(m: &Measurement) -> f64 {
    m.cpu.foreign_ns / m.cpu.elapsed_ns
}

/// CPU ns of a fixed amount of arithmetic on a CPU, by the thread's own clock.
fn fixed_work_ns(on: usize) -> Result<f64, Failure> {
    const STEPS: u32 = 20_000_000;
    let worker = std::thread::spawn(move || -> hopyard_net::Result<u64> {
        cpu::pin_current_thread(&[on])?;
        let began = clock::thread_cpu_ns();
        let mut x = std::hint::black_box(1u64);
        for _ in 0..STEPS {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        std::hint::black_box(x);
        Ok(clock::thread_cpu_ns() - began)
    });
    let spent = worker
        .join()
        .map_err(|_| Failure::Burner("'s reference loop panicked".to_owned()))??;
    Ok(spent as f64)
}

fn rows(cell: &Cell, blocks: &[Block]) -> Result<Vec<Row>, Failure> {
    let column = |of: fn(&Block) -> f64| -> Vec<f64> { blocks.iter().map(of).collect() };
    let excess = column(|b| b.foreign - b.others - b.burnt);
    let samples = stats::Samples::try_from(excess).map_err(|_| Failure::NoFigure("V4"))?;
    let excess =
        stats::mean_interval(&samples, CONFIDENCE).ok_or(Failure::NoFigure("foreign CPU"))?;
    let burnt = stats::mean(&column(|b| b.burnt)).unwrap_or(0.0);
    let compared = |with: fn(&Block) -> f64, without: fn(&Block) -> f64| {
        stats::compare(&column(with), &column(without), CONFIDENCE)
            .ok_or(Failure::NoFigure("service demand"))
    };
    let demand = compared(|b| b.demand[1], |b| b.demand[0])?;
    let throughput = compared(|b| b.throughput[1], |b| b.throughput[0])?.ratio;
    let work = compared(|b| b.fixed_work[1], |b| b.fixed_work[0])?.ratio;
    let judged = stats::judge(std::slice::from_ref(&demand), DEMAND_TOLERANCE, CONFIDENCE);
    let unchanged = judged
        .first()
        .is_some_and(|j| j.verdict == Judgement::Equivalent);
    let n = blocks.len();
    let what = |what: &str| format!("{cell}, both ends on one CPU, {n} blocks: {what}");
    Ok(vec![
        Row {
            id: "V4",
            what: what("foreign CPU"),
            promised: format!(
                "{:.2} % of a CPU by its own clock ± 1 % of a CPU",
                100.0 * burnt
            ),
            seen: format!(
                "{:.2} %, off by {:+.2} % ({:+.2} to {:+.2} %)",
                100.0 * (burnt + excess.value),
                100.0 * excess.value,
                100.0 * excess.low,
                100.0 * excess.high
            ),
            // Other programs make the interval wide: their use differs from window to window. One that is far
            // wider than the tolerance shows nothing.
            verdict: if half_width(&excess) > 2.0 * FOREIGN_TOLERANCE {
                Verdict::Failed("the interval is too wide to tell".to_owned())
            } else {
                Verdict::of(excess.value.abs() <= FOREIGN_TOLERANCE)
            },
        },
        Row {
            id: "V4",
            what: what("service demand with the burn / without"),
            promised: "1 ± 2 %, shown by two one-sided tests at 95 %".to_owned(),
            seen: ratio(&demand.ratio),
            verdict: Verdict::of(unchanged),
        },
        Row {
            id: "V4",
            what: what("throughput, and a loop of fixed work on the load's CPU"),
            promised: String::new(),
            seen: format!(
                "throughput {}; CPU time of the loop {}",
                ratio(&throughput),
                ratio(&work)
            ),
            verdict: Verdict::Stated,
        },
    ])
}

fn half_width(e: &Estimate) -> f64 {
    (e.high - e.low) / 2.0
}

fn ratio(e: &Estimate) -> String {
    format!("{:.4} ({:.4} to {:.4})", e.value, e.low, e.high)
}
