//! What directories hold.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Error, Place};
use crate::Evidence;
use crate::model::Environment;
use crate::plan;
use crate::store::{self, Run};

/// What something is called, and the machine that it was made on.
type Made<'a> = (String, &'a Environment);

pub(super) fn of_run(run: &Run) -> Made<'_> {
    (format!("run {}", run.header.id), &run.header.environment)
}

fn of_all(evidence: &Evidence) -> impl Iterator<Item = Made<'_>> {
    let machine = evidence.machine.as_ref();
    let deeds = machine.map(|machine| ("deeds and benches".to_owned(), machine));
    evidence.runs.iter().map(of_run).chain(deeds)
}

/// Verdicts are about one machine and kernel.
pub(super) fn of_one_machine<'a>(made: impl IntoIterator<Item = Made<'a>>) -> Result<(), Error> {
    let mut others = made.into_iter();
    let Some((first, machine)) = others.next() else {
        return Ok(());
    };
    for (other, of_other) in others {
        if let Some((what, of_a, of_b)) = machine.differs_from(of_other) {
            return Err(Error::Machines {
                a: first,
                b: other,
                what,
                of_a,
                of_b,
            });
        }
    }
    Ok(())
}

/// A run. Rules ask for a confidence, that of their plan, so its intervals are at least of that, whatever it was measured with.
fn load(directory: &Path) -> Result<Run, Error> {
    let mut run = store::load(directory)?;
    if let Ok(plan) = plan::find(&run.header.plan) {
        run.header.confidence = run.header.confidence.max(plan.confidence);
    }
    Ok(run)
}

/// The runs of a directory: it is one, or holds some.
pub(super) fn runs(directory: &Path) -> Result<Vec<Run>, Error> {
    if directory.join("run.json").exists() {
        return Ok(vec![load(directory)?]);
    }
    let unreadable = |source| Error::Read {
        file: directory.to_owned(),
        source,
    };
    let mut below = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        below.push(entry.map_err(unreadable)?.path());
    }
    // Names begin with the time: of two runs of a plan the older comes first.
    below.sort();
    let mut runs = Vec::new();
    for below in below {
        if below.join("run.json").exists() {
            runs.push(load(&below)?);
        }
    }
    runs.sort_by(|a, b| a.header.plan.cmp(&b.header.plan));
    Ok(runs)
}

/// Adds to runs what was measured later of some of their cells, as further blocks; the first such block by plan.
pub(super) fn add_further(
    runs: &mut [Run],
    directory: &Path,
) -> Result<BTreeMap<String, u32>, Error> {
    let mut first = BTreeMap::new();
    if !directory.exists() {
        return Ok(first);
    }
    for later in self::runs(directory)? {
        if let Some(run) = runs
            .iter_mut()
            .find(|run| run.header.plan == later.header.plan)
        {
            of_one_machine([of_run(run), of_run(&later)])?;
            let block = append(run, later);
            first.entry(run.header.plan.clone()).or_insert(block);
        }
    }
    Ok(first)
}

/// Appends the blocks of a later run of the same plan, and says which is the first. Its cells are some of those of the first run.
fn append(run: &mut Run, later: Run) -> u32 {
    let after = |blocks: &mut dyn Iterator<Item = u32>| blocks.max().map_or(0, |last| last + 1);
    let first = after(&mut run.samples.iter().map(|sample| sample.block));
    let began = run.samples.iter().map(|s| s.started_ns + s.took_ns).max();
    let planned = &run.header.cells;
    let cells: Vec<Option<usize>> = later
        .header
        .cells
        .iter()
        .map(|one| planned.iter().position(|known| known.cell == one.cell))
        .collect();
    for mut sample in later.samples {
        let Some(cell) = cells[sample.cell] else {
            continue;
        };
        sample.block += first;
        sample.cell = cell;
        sample.order = u32::try_from(run.samples.len()).unwrap_or(u32::MAX);
        sample.started_ns += began.unwrap_or(0);
        run.samples.push(sample);
    }
    for mut window in later.profiles {
        let Some(cell) = cells[window.cell] else {
            continue;
        };
        window.block += first;
        window.cell = cell;
        run.profiles.push(window);
    }
    run.header.blocks_max = after(&mut run.samples.iter().map(|sample| sample.block));
    first
}

/// What directories hold that runs or claims were kept in. Of two runs of a plan the first counts.
///
/// # Errors
/// One of them holds neither, or is damaged; or runs of several machines.
pub fn evidence_from(directories: &[PathBuf]) -> Result<Evidence, Error> {
    let mut evidence = Evidence::default();
    for directory in directories {
        let found = match Place::open(directory) {
            Ok(place) => place.evidence()?,
            Err(Error::Nothing(_)) => {
                let runs = runs(directory)?;
                if runs.is_empty() {
                    return Err(Error::Nothing(directory.clone()));
                }
                Evidence {
                    runs,
                    ..Evidence::default()
                }
            }
            Err(error) => return Err(error),
        };
        of_one_machine(of_all(&evidence).chain(of_all(&found)))?;
        evidence.add(found);
    }
    Ok(evidence)
}
