//! What happens to real runs: figures that vary, blocks that are repeated, samples that fail, paths that do not count, turns.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::synthetic::BLOCKS;
use super::*;
use crate::model::{
    Counted, CpuUse, Datapath, DatapathKind, Disturbance, EndsOn, GuestUsed, MachineUse,
    Measurement, OPEN_VSWITCH, Turn,
};

pub(super) fn chance(rng: &mut ChaCha8Rng, of: f64) -> bool {
    rng.random::<f64>() < of
}

/// A factor of about 1.
pub(super) fn nearly(rng: &mut ChaCha8Rng, spread: f64) -> f64 {
    1.0 + spread * (2.0 * rng.random::<f64>() - 1.0)
}

pub(super) fn any_path(run: &Run, rng: &mut ChaCha8Rng) -> String {
    let cells = &run.header.cells;
    cells[rng.random_range(0..cells.len())].cell.path.clone()
}

/// What happens to real runs, each with some probability.
pub(super) fn spoil(run: &mut Run, rng: &mut ChaCha8Rng) {
    run.header.seed = rng.random();
    run.header.blocks_max = BLOCKS;
    if chance(rng, 0.2) {
        run.header.confidence = [0.9, 0.99, 0.999][rng.random_range(0..3)];
    }
    for sample in &mut run.samples {
        if let Outcome::Measured(m) = &mut sample.outcome {
            vary(m, rng);
        }
    }
    if run.header.plan == "planetlab-containers-2007" && chance(rng, 0.3) {
        bend(run);
    }
    if chance(rng, 0.6) {
        repeat_a_block(run, rng);
    }
    if chance(rng, 0.6) {
        fail_some(run, rng);
    }
    if chance(rng, 0.1) {
        let left = rng.random_range(5..8);
        run.samples.retain(|sample| sample.block < left);
    }
    if chance(rng, 0.2) {
        leave_out_a_path(run, rng);
    }
    // A copy, so that the random numbers of everything else stay the same.
    let aside = &mut rng.clone();
    if chance(aside, 0.12) {
        lead_a_path_astray(run, aside);
    }
    if chance(aside, 0.2) {
        unsettle_some(run, aside);
    }
    if chance(aside, 0.4) {
        take_turns(run, aside);
    }
    if chance(aside, 0.3) {
        part_ends(run, aside);
    }
}

/// Puts each end on a machine of its own. Their shares of the CPU time differ between cells, and in some windows one of them is not known.
fn part_ends(run: &mut Run, rng: &mut ChaCha8Rng) {
    let shares: Vec<f64> = run
        .header
        .cells
        .iter()
        .map(|_| 0.2 + 0.7 * rng.random::<f64>())
        .collect();
    for sample in &mut run.samples {
        let share = shares[sample.cell];
        let Outcome::Measured(m) = &mut sample.outcome else {
            continue;
        };
        let of = |share: f64| {
            let mut cpu = m.cpu;
            cpu.busy_ns -= (1.0 - share) * cpu.net().middle_ns();
            cpu.workers_ns = None;
            cpu
        };
        let (client, server) = (of(share), of(1.0 - share));
        let known = [!chance(rng, 0.02), !chance(rng, 0.02)];
        m.cpu.is_partial = known.contains(&false);
        let both = [(EndsOn::Client, client), (EndsOn::Server, server)];
        let machines = both.into_iter().zip(known);
        m.machines = machines
            .map(|((ends, cpu), known)| MachineUse {
                ends,
                cpu: known.then_some(cpu),
                unknown: None,
            })
            .collect();
    }
}

/// Figures of a window: its length is not that of the CPUs' readings, and of some the CPU time is known only nearly, or not at all.
fn vary(m: &mut Measurement, rng: &mut ChaCha8Rng) {
    let scaled = |count: u64, factor: f64| (count as f64 * factor).round() as u64;
    m.window_ns = scaled(m.window_ns, nearly(rng, 0.001));
    let factor = nearly(rng, 0.0005);
    for counted in [&mut m.received, &mut m.sent] {
        counted.bytes = scaled(counted.bytes, factor);
        counted.messages = scaled(counted.messages, factor);
        counted.transactions = scaled(counted.transactions, factor);
    }
    m.cpu.busy_ns *= nearly(rng, 0.0005);
    let net = m.cpu.net().middle_ns();
    if chance(rng, 0.2) {
        m.cpu.steal_ns = 0.005 * net.abs();
    }
    if chance(rng, 0.02) {
        m.cpu.steal_ns = 0.3 * net.abs();
    }
    if chance(rng, 0.2) {
        m.cpu.baseline_most_ns = Some(m.cpu.baseline_ns + 0.002 * net.abs());
    }
    m.cpu.busy_is_exact = chance(rng, 0.3);
    if chance(rng, 0.2) {
        m.cpu.workers_ns = Some(net * nearly(rng, 0.005));
    }
    if chance(rng, 0.02) {
        m.cpu.closure = 0.9;
    }
    if let Some(series) = m
        .arrivals
        .as_mut()
        .and_then(|arrivals| arrivals.series.as_mut())
    {
        // As many intervals as a window of ten minutes has.
        let every_fifth = series.intervals.iter().skip(4).step_by(5).cloned();
        series.intervals = every_fifth.collect();
        series.interval_ns *= 5;
        series.before_ns = u64::from(chance(rng, 0.01));
    }
}

/// Jitter of containers that bends before that of native senders does and is higher throughout (PL8): what two rules ask of the
/// same figures.
fn bend(run: &mut Run) {
    for sample in &mut run.samples {
        let axes = &run.header.cells[sample.cell].cell.axes;
        let Outcome::Measured(m) = &mut sample.outcome else {
            continue;
        };
        let n = f64::from(axes.flows);
        let of = |at: f64| 1e6 * (100.0 + n + 4.0 * (n - at).max(0.0));
        let is_own = axes
            .containers
            .is_some_and(|kind| kind.to_string() == "own");
        let jitter = if is_own { 1.08 * of(16.0) } else { of(20.0) };
        if let Some(arrivals) = &mut m.arrivals {
            let side = 1.0 + 0.0005 * f64::from((sample.block * 7 + sample.order * 3) % 11);
            arrivals.interarrival_sd_ns = Some(jitter * side);
        }
    }
}

/// One block was measured again as a whole, and begun once more.
fn repeat_a_block(run: &mut Run, rng: &mut ChaCha8Rng) {
    let block = rng.random_range(0..BLOCKS);
    let first: Vec<_> = run
        .samples
        .iter()
        .filter(|sample| sample.block == block)
        .cloned()
        .collect();
    for sample in run
        .samples
        .iter_mut()
        .filter(|sample| sample.block == block)
    {
        sample.attempt = 1;
    }
    for window in run
        .profiles
        .iter_mut()
        .filter(|window| window.block == block)
    {
        window.attempt = 1;
    }
    let begun = rng.random_range(0..first.len());
    for (at, sample) in first.into_iter().enumerate() {
        for attempt in [0, 2] {
            let mut again = sample.clone();
            again.attempt = attempt;
            if let Outcome::Measured(m) = &mut again.outcome {
                m.received.bytes *= 2;
                m.cpu.busy_ns *= 3.0;
            }
            if attempt == 0 || at < begun {
                run.samples.push(again);
            }
        }
    }
}

/// Some samples of a path, in half of the runs: a claim about a cell of which one failed cannot hold.
fn fail_some(run: &mut Run, rng: &mut ChaCha8Rng) {
    if chance(rng, 0.5) {
        return;
    }
    let path = any_path(run, rng);
    let cells = &run.header.cells;
    for sample in &mut run.samples {
        if cells[sample.cell].cell.path == path && chance(rng, 0.02) {
            sample.outcome = Outcome::Failed {
                cause: "it failed".to_owned(),
            };
        }
    }
}

/// A path whose traffic went another way in one block.
fn lead_a_path_astray(run: &mut Run, rng: &mut ChaCha8Rng) {
    let (path, block) = (any_path(run, rng), rng.random_range(0..3));
    for sample in run.samples.iter_mut().filter(|s| s.block == block) {
        if let Outcome::Measured(m) = &mut sample.outcome
            && run.header.cells[sample.cell].cell.path == path
        {
            m.way.proved = false;
        }
    }
}

/// Some windows in which jitter did not settle.
fn unsettle_some(run: &mut Run, rng: &mut ChaCha8Rng) {
    for sample in &mut run.samples {
        if let Outcome::Measured(m) = &mut sample.outcome
            && let Some(arrivals) = &mut m.arrivals
            && chance(rng, 0.02)
        {
            match &mut arrivals.series {
                // In its last interval it was outside once more.
                Some(series) if sample.block % 2 == 0 => {
                    if let Some(last) = series.intervals.last_mut() {
                        last.interarrival_sd_ns = last.interarrival_sd_ns.map(|sd| 3.0 * sd);
                    }
                }
                series => *series = None,
            }
        }
    }
}

/// Rounds of turns of a window.
const ROUNDS: u32 = 5;

/// Windows are sums of turns: a few rounds lack one, some turns were disturbed, and of those of a round some were taken twice.
fn take_turns(run: &mut Run, rng: &mut ChaCha8Rng) {
    for sample in &mut run.samples {
        let Outcome::Measured(m) = &mut sample.outcome else {
            continue;
        };
        for round in 0..ROUNDS {
            let turns = match rng.random::<f64>() {
                few if few < 0.1 => 0,
                one if one < 0.8 => 1,
                _ => 2,
            };
            for _ in 0..turns {
                let turn = turn_of(m, round, rng);
                m.turns.push(turn);
            }
        }
    }
}

fn turn_of(m: &Measurement, round: u32, rng: &mut ChaCha8Rng) -> Turn {
    let even = 1.0 / f64::from(ROUNDS);
    let part = even * nearly(rng, 0.002);
    let scaled = |count: u64| (count as f64 * part) as u64;
    let counted = |all: Counted| Counted {
        bytes: scaled(all.bytes),
        messages: scaled(all.messages),
        transactions: scaled(all.transactions),
    };
    Turn {
        round,
        window_ns: m.window_ns / u64::from(ROUNDS),
        received: counted(m.received),
        sent: counted(m.sent),
        cpu: CpuUse {
            elapsed_ns: m.cpu.elapsed_ns * even,
            busy_ns: m.cpu.busy_ns * even,
            steal_ns: m.cpu.steal_ns * even,
            workers_ns: m.cpu.workers_ns.map(|ns| ns * even),
            foreign_ns: m.cpu.foreign_ns * even,
            controller_ns: m.cpu.controller_ns * even,
            baseline_ns: m.cpu.baseline_ns * even,
            baseline_most_ns: m.cpu.baseline_most_ns.map(|ns| ns * even),
            ..m.cpu
        },
        disturbance: chance(rng, 0.3).then_some(Disturbance::Late),
    }
}

/// A path that this host could not build, or whose figures do not count.
fn leave_out_a_path(run: &mut Run, rng: &mut ChaCha8Rng) {
    let path = any_path(run, rng);
    let how = rng.random_range(0..4);
    for at in 0..run.header.cells.len() {
        if run.header.cells[at].cell.path != path {
            continue;
        }
        if how == 0 {
            run.header.cells[at].unsupported = Some("not on this host".to_owned());
            run.samples.retain(|sample| sample.cell != at);
            run.profiles.retain(|window| window.cell != at);
        }
        for sample in run.samples.iter_mut().filter(|sample| sample.cell == at) {
            if let Outcome::Measured(m) = &mut sample.outcome {
                if how < 3 {
                    m.datapath = Some(Datapath {
                        switch: OPEN_VSWITCH.to_owned(),
                        version: String::new(),
                        kind: DatapathKind::Userspace,
                        hook: None,
                    });
                } else {
                    m.guest = Some(GuestUsed {
                        kernel: "6".to_owned(),
                        cpus: 1,
                        emulated: true,
                    });
                }
            }
        }
    }
}
