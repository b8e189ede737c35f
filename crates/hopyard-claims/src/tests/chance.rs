//! Evidence by chance: every plan of every report, aimed at some verdict for each claim and then spoilt as real runs are, by blocks that
//! were measured again, samples that failed, CPU time that is not known, and cells that no rule asks for.

use std::path::Path;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::oracle::Part;
use super::synthetic::{Aim, Aimed, BLOCKS, World};
use super::*;
use crate::guest::Guest;
use crate::model::{AXES, Axis, Datapath, DatapathKind, GuestUsed, Measurement, OPEN_VSWITCH};
use crate::store::{PlannedCell, Record, Writer};

/// All evidence of one seed.
pub(super) fn write(seed: u64, directory: &Path) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut evidence = aimed(seed, &mut rng);
    fail_some_deeds(&mut evidence, &mut rng);
    let mut asked = kept::Asked::new(&[], false);
    asked.done = std::mem::take(&mut evidence.done);
    asked.benched = std::mem::take(&mut evidence.benched);
    let guest = asked.done.iter().filter(|(_, done)| done.is_err());
    let guest = guest.map(|(name, _)| (name.clone(), passing()));
    asked.guest = chance(&mut rng, 0.5).then(|| Guest {
        release: "6".to_owned(),
        emulated: false,
        done: guest.collect(),
        ..Guest::default()
    });
    let has_guest = asked.guest.is_some();
    let place = kept::Place::create(directory, asked).unwrap();
    let runs = evidence.runs.len();
    for (at, mut run) in evidence.runs.into_iter().enumerate() {
        spoil(&mut run, &mut rng);
        // Another axis for each run of each seed.
        add_other_cells(&mut run, other_axis(seed as usize * runs + at), &mut rng);
        if has_guest && chance(&mut rng, 0.5) {
            keep_in_guest(&mut run, &place, &mut rng);
        }
        keep(&run, &place.of_plan(&run.header.plan));
    }
}

fn passing() -> bench::Done {
    Ok(bench::FunctionalCheck {
        passed: true,
        seen: "it did".to_owned(),
    })
}

fn keep(run: &Run, directory: &Path) {
    let mut writer = Writer::create(directory, &run.header).unwrap();
    run.samples
        .iter()
        .for_each(|sample| writer.append(sample).unwrap());
    run.profiles
        .iter()
        .for_each(|window| writer.append_profile(window).unwrap());
    writer.finish(crate::store::End::Complete).unwrap();
}

/// A guest has the whole run, and this host's kernel one path less.
fn keep_in_guest(run: &mut Run, place: &kept::Place, rng: &mut ChaCha8Rng) {
    let own = run.header.environment.cpu_model.clone();
    if chance(rng, 0.5) {
        run.header.environment.cpu_model = "QEMU TCG CPU version 2.5+".to_owned();
    }
    keep(run, &place.of_plan_in_guest(&run.header.plan));
    run.header.environment.cpu_model = own;
    let path = any_path(run, rng);
    let mut left = Vec::new();
    for (at, planned) in std::mem::take(&mut run.header.cells)
        .into_iter()
        .enumerate()
    {
        if planned.cell.path != path {
            left.push(at);
            run.header.cells.push(planned);
        }
    }
    let new = |old: usize| left.iter().position(|at| *at == old);
    run.samples.retain(|sample| left.contains(&sample.cell));
    run.profiles.retain(|window| left.contains(&window.cell));
    for sample in &mut run.samples {
        sample.cell = new(sample.cell).unwrap();
    }
    for window in &mut run.profiles {
        window.cell = new(window.cell).unwrap();
    }
    let why = "this kernel has none".to_owned();
    run.header.left_out.push((path, why));
}

fn any_path(run: &Run, rng: &mut ChaCha8Rng) -> String {
    let cells = &run.header.cells;
    cells[rng.random_range(0..cells.len())].cell.path.clone()
}

/// Every claim aimed at something, in random order: of two that ask for the same cells the later one gets what it is aimed at. The last
/// of each report, another one for each seed, has all that it asks for.
fn aimed(seed: u64, rng: &mut ChaCha8Rng) -> Evidence {
    let mut all: Vec<(Chosen<'_>, bool)> = Vec::new();
    for report in reports().unwrap() {
        let claims: Vec<&Claim> = report
            .claims
            .iter()
            .filter(|claim| !claim.checks.is_empty())
            .collect();
        let last = claims[seed as usize % claims.len()];
        all.extend(claims.into_iter().map(|claim| {
            let chosen = Chosen {
                report,
                claim,
                by_id: true,
            };
            (chosen, claim.id == last.id)
        }));
    }
    all.shuffle(rng);
    all.sort_by_key(|(_, is_last)| *is_last);
    let mut world = World::default();
    for (chosen, is_last) in all {
        let parts = Part::all(chosen);
        let aim = [Aim::Inside, Aim::Outside, Aim::Across][rng.random_range(0..3)];
        let one = rng.random_range(0..parts.len());
        for (at, part) in parts.iter().enumerate() {
            let from = rng.random_range(0..part.points.len().max(1));
            let (aim, from) = if at == one && !is_last {
                (aim, from)
            } else {
                (Aim::Inside, 0)
            };
            world.aim(Aimed { part, aim, from });
        }
    }
    world.evidence()
}

/// Some things cannot be tried on a host.
fn fail_some_deeds(evidence: &mut Evidence, rng: &mut ChaCha8Rng) {
    let why = || "not on this host".to_owned();
    for done in evidence.done.values_mut() {
        if chance(rng, 0.1) {
            *done = Err(why());
        }
    }
    for timed in evidence.benched.values_mut() {
        match timed {
            _ if chance(rng, 0.1) => *timed = Err(why()),
            Ok(timed) => timed
                .values
                .iter_mut()
                .for_each(|value| *value *= nearly(rng, 0.001)),
            Err(_) => {}
        }
    }
}

fn chance(rng: &mut ChaCha8Rng, of: f64) -> bool {
    rng.random::<f64>() < of
}

/// A factor of about 1.
fn nearly(rng: &mut ChaCha8Rng, spread: f64) -> f64 {
    1.0 + spread * (2.0 * rng.random::<f64>() - 1.0)
}

/// What happens to real runs, each with some probability.
fn spoil(run: &mut Run, rng: &mut ChaCha8Rng) {
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

/// Axes by which runs have further cells: all but those that make another kind of run.
fn other_axes() -> Vec<&'static Axis> {
    let kinds = ["flows", "setting", "search"];
    let others = AXES.iter().filter(|axis| !kinds.contains(&axis.name));
    others.collect()
}

fn other_axis(number: usize) -> &'static Axis {
    let axes = other_axes();
    axes[number % axes.len()]
}

/// Has some run of the worlds below this seed further cells by each axis?
pub(super) fn have_every_axis(seeds: u64) -> bool {
    let of_report = |report: &Report| {
        let checks = report.claims.iter().flat_map(|claim| &claim.checks);
        let plan = |check: &Check| check.plan.clone().unwrap_or_else(|| report.plan.clone());
        let plans = checks.filter(|check| check.of_cells().is_some()).map(plan);
        plans.collect::<std::collections::BTreeSet<_>>().len()
    };
    let runs: usize = reports().unwrap().iter().map(of_report).sum();
    seeds as usize * runs >= other_axes().len()
}

/// Cells like those of the plan but for one axis, with other figures.
fn add_other_cells(run: &mut Run, axis: &Axis, rng: &mut ChaCha8Rng) {
    let cells: Vec<PlannedCell> = run.header.cells.clone();
    let factor = 0.5 + rng.random::<f64>();
    for (at, planned) in cells.iter().enumerate() {
        let mut other = planned.clone();
        (axis.set)(&mut other.cell.axes, axis.other).unwrap();
        if chance(rng, 0.3)
            || run
                .header
                .cells
                .iter()
                .any(|known| known.cell == other.cell)
        {
            continue;
        }
        let place = run.header.cells.len();
        run.header.cells.push(other);
        let mut samples: Vec<_> = run
            .samples
            .iter()
            .filter(|sample| sample.cell == at)
            .cloned()
            .collect();
        for sample in &mut samples {
            sample.cell = place;
            if let Outcome::Measured(m) = &mut sample.outcome {
                m.received.bytes = (m.received.bytes as f64 * factor) as u64;
                m.cpu.busy_ns *= factor;
            }
        }
        run.samples.extend(samples);
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

fn fail_some(run: &mut Run, rng: &mut ChaCha8Rng) {
    for sample in &mut run.samples {
        if chance(rng, 0.01) {
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
            arrivals.series = None;
        }
    }
}

/// A path that this host could not build, or whose figures do not count.
fn leave_out_a_path(run: &mut Run, rng: &mut ChaCha8Rng) {
    let path = any_path(run, rng);
    let how = rng.random_range(0..3);
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
                if how == 1 {
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
