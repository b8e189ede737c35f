//! Evidence by chance: every plan of every report, aimed at some verdict for each claim and then spoilt as real runs are, by blocks that
//! were measured again, samples that failed, CPU time that is not known, and cells that no rule asks for.

use std::path::Path;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::oracle::Part;
use super::spoiled::{any_path, chance, nearly, spoil};
use super::synthetic::{Aim, Aimed, BLOCKS, World};
use super::*;
use crate::guest::Guest;
use crate::model::{AXES, Axis, FOR_A_VERDICT};
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
        if chance(&mut rng, 0.5) {
            see_hardly_any(&mut run, &mut rng);
        }
        if has_guest && chance(&mut rng, 0.5) {
            keep_in_guest(&mut run, &place, &mut rng);
        }
        if chance(&mut rng, 0.5) {
            keep_later(&mut run, &place, at, &mut rng);
        }
        keep(&run, &place.of_plan(&run.header.plan));
    }
}

/// The last blocks are of a later run, which has some of the cells, in another order.
fn keep_later(run: &mut Run, place: &kept::Place, at: usize, rng: &mut ChaCha8Rng) {
    // Enough for a verdict are left.
    let from = rng.random_range(FOR_A_VERDICT..BLOCKS);
    let mut cells: Vec<usize> = (0..run.header.cells.len()).collect();
    cells.retain(|_| chance(rng, 0.8));
    cells.shuffle(rng);
    let mut later = run.clone();
    keep_cells(&mut later, &cells);
    later.samples.retain(|sample| sample.block >= from);
    later.profiles.retain(|window| window.block >= from);
    later.samples.iter_mut().for_each(|one| one.block -= from);
    later.profiles.iter_mut().for_each(|one| one.block -= from);
    keep(&later, &place.of_further(at, "X1"));
    run.samples.retain(|sample| sample.block < from);
    run.profiles.retain(|window| window.block < from);
}

/// A run has these cells alone, in this order.
pub(super) fn keep_cells(run: &mut Run, cells: &[usize]) {
    let new = |old: usize| cells.iter().position(|at| *at == old);
    let planned = cells.iter().map(|at| run.header.cells[*at].clone());
    run.header.cells = planned.collect();
    run.samples.retain(|sample| cells.contains(&sample.cell));
    run.profiles.retain(|window| cells.contains(&window.cell));
    for sample in &mut run.samples {
        sample.cell = new(sample.cell).unwrap();
    }
    for window in &mut run.profiles {
        window.cell = new(window.cell).unwrap();
    }
}

/// Profiles of one path have only the program itself, but for a window or none.
fn see_hardly_any(run: &mut Run, rng: &mut ChaCha8Rng) {
    if run.profiles.is_empty() {
        return;
    }
    let any = &run.profiles[rng.random_range(0..run.profiles.len())];
    let path = run.header.cells[any.cell].cell.path.clone();
    let but = chance(rng, 0.5).then_some(any.block);
    for window in &mut run.profiles {
        let is_of_path = run.header.cells[window.cell].cell.path == path;
        if is_of_path && Some(window.block) != but {
            let all = window.stacks.iter().map(|stack| stack.samples).sum();
            window.stacks.drain(..window.stacks.len() - 1);
            window.stacks[0].samples = all;
        }
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
    let others = run.header.cells.iter().enumerate();
    let others = others.filter(|(_, planned)| planned.cell.path != path);
    let others: Vec<usize> = others.map(|(at, _)| at).collect();
    keep_cells(run, &others);
    let why = "this kernel has none".to_owned();
    run.header.left_out.push((path, why));
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
