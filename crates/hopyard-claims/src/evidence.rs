//! What was measured, as far as rules ask for it: series of values by block.

use std::collections::{BTreeMap, BTreeSet};

use super::bench::{Benched, Done, FunctionalCheck};
use super::guest::Beside;
use super::profiles::{profile_share, softirq_by_profile};
use super::what::What;
use crate::assess::last_attempts;
use crate::model::stored::by_reason;
use crate::model::{
    Cell, DatapathKind, Environment, Measurement, OPEN_VSWITCH, Sample, WarningCode,
};
use crate::store::Run;

/// Values by block.
pub(super) type Series = BTreeMap<u32, f64>;

/// What claims are judged by.
#[derive(Debug, Default)]
pub struct Evidence {
    /// What each directory of claims was asked for: ids and reports, none for all.
    pub asked: Vec<Vec<String>>,
    /// Plans whose runs are of a first look.
    pub first_looks: BTreeSet<String>,
    /// Runs, at most one for each plan.
    pub runs: Vec<Run>,
    /// The first block by plan that was measured for a claim that was undecided.
    pub first_further: BTreeMap<String, u32>,
    /// Why a plan could not be run.
    pub not_run: BTreeMap<String, String>,
    /// The machine of what was done and measured beside the plans, if it is known.
    pub machine: Option<Environment>,
    /// What was done in throw-away labs.
    pub done: BTreeMap<String, Done>,
    /// What was measured beside the plans.
    pub benched: BTreeMap<String, Benched>,
    /// What a guest has of what this machine's kernel lacks.
    pub beside: Option<Beside>,
}

impl Evidence {
    /// The deed as it was done here, or else in the guest.
    pub(super) fn deed(&self, name: &str) -> Option<Done> {
        let here = self.done.get(name);
        let guest = self.beside.as_ref().map(|beside| &beside.guest);
        let there = guest.and_then(|guest| Some((guest, guest.done.get(name)?)));
        match (here, there) {
            (None | Some(Err(_)), Some((guest, Ok(done)))) => Some(Ok(FunctionalCheck {
                passed: done.passed,
                seen: format!("{} (in {})", done.seen, guest.described()),
            })),
            (Some(Err(here)), Some((guest, Err(there)))) if here != there => {
                Some(Err(format!("{here}; in {}: {there}", guest.described())))
            }
            (here, _) => here.cloned(),
        }
    }

    /// Adds what was found elsewhere. Of two runs of a plan the first counts, and so with all else.
    pub(super) fn add(&mut self, found: Self) {
        for run in found.runs {
            let plan = &run.header.plan;
            if self.of_plan(plan).is_ok() {
                continue;
            }
            if found.first_looks.contains(plan) {
                self.first_looks.insert(plan.clone());
            }
            if let Some(block) = found.first_further.get(plan) {
                self.first_further.insert(plan.clone(), *block);
            }
            self.runs.push(run);
        }
        self.asked.extend(found.asked);
        keep_first(&mut self.not_run, found.not_run);
        self.machine = self.machine.take().or(found.machine);
        keep_first(&mut self.done, found.done);
        keep_first(&mut self.benched, found.benched);
        self.beside = self.beside.take().or(found.beside);
    }

    /// The run of a plan.
    ///
    /// # Errors
    /// There is none, and why.
    pub(super) fn of_plan(&self, plan: &str) -> Result<&Run, String> {
        let run = self.runs.iter().find(|run| run.header.plan == plan);
        run.ok_or_else(|| match self.not_run.get(plan) {
            Some(why) => why.clone(),
            None => format!("plan {plan} was not run"),
        })
    }
}

fn keep_first<T>(known: &mut BTreeMap<String, T>, found: BTreeMap<String, T>) {
    for (name, one) in found {
        known.entry(name).or_insert(one);
    }
}

/// Why paths that a rule names are not in a run: each reason with all its paths.
pub(super) fn left_out(run: &Run, paths: &[String]) -> Vec<String> {
    let named = |name: &String| paths.is_empty() || paths.contains(name);
    let mut left_out = run.header.left_out.clone();
    left_out.retain(|(name, _)| named(name));
    let said = |(why, names): &(&str, Vec<&str>)| format!("{}: {why}", names.join(", "));
    let has = |path: &String| run.header.cells.iter().any(|one| one.cell.path == *path);
    let is_known = |path: &String| run.header.left_out.iter().any(|(name, _)| name == path);
    let never = paths.iter().filter(|path| !has(path) && !is_known(path));
    let never: Vec<&str> = never.map(String::as_str).collect();
    let plan = &run.header.plan;
    let never =
        (!never.is_empty()).then(|| format!("{}: not in the run of plan {plan}", never.join(", ")));
    by_reason(&left_out).iter().map(said).chain(never).collect()
}

/// All samples of a cell, failed ones too.
fn samples(run: &Run, cell: usize) -> Vec<&Sample> {
    let mut samples = last_attempts(&run.samples);
    samples.retain(|sample| sample.cell == cell);
    samples
}

/// How many windows of a cell failed, and why, if some did and others did not: what is left of it is not all that a rule is about.
pub(super) fn some_failed(run: &Run, cell: usize) -> Option<String> {
    let all = samples(run, cell);
    let causes: Vec<&String> = all.iter().filter_map(|sample| sample.failure()).collect();
    // If all of them failed, `counting` gives the cause.
    let first = causes.first().filter(|_| causes.len() < all.len())?;
    Some(format!(
        "{}: {} of {} windows failed: {first}",
        run.header.cells[cell].cell.path,
        causes.len(),
        all.len()
    ))
}

/// The samples of a cell of a run that are evidence of it.
///
/// # Errors
/// It has none, and why: it could not be built, its traffic went another way, or a stand-in forwarded or ran it that does not count.
pub(super) fn counting(run: &Run, cell: usize) -> Result<Vec<(&Sample, &Measurement)>, String> {
    let planned = &run.header.cells[cell];
    let path = &planned.cell.path;
    if let Some(why) = &planned.unsupported {
        return Err(format!("{path}: {why}"));
    }
    let all = samples(run, cell);
    let own: Vec<(&Sample, &Measurement)> = all
        .iter()
        .filter_map(|sample| Some((*sample, sample.measurement()?)))
        .collect();
    if let (true, Some(cause)) = (own.is_empty(), all.iter().find_map(|one| one.failure())) {
        return Err(format!("{path}: its {} windows failed: {cause}", all.len()));
    }
    let userspace = |m: &Measurement| {
        let datapath = m.datapath.as_ref();
        datapath.is_some_and(|d| d.kind == DatapathKind::Userspace && d.switch == OPEN_VSWITCH)
    };
    if own.iter().any(|(_, m)| userspace(m)) {
        return Err(format!(
            "{path}: forwarded in userspace for want of the openvswitch module, which does not count"
        ));
    }
    if own
        .iter()
        .any(|(_, m)| m.guest.as_ref().is_some_and(|guest| guest.emulated))
    {
        return Err(format!(
            "{path}: the guest was emulated for want of KVM, and its figures have a shape and no size"
        ));
    }
    if let Some((_, astray)) = own.iter().find(|(_, m)| !m.way.proved) {
        return Err(format!(
            "{path}: its path proof failed ({})",
            astray.way.problems.first().map_or("", String::as_str)
        ));
    }
    Ok(own)
}

/// The values of a cell of a run.
///
/// # Errors
/// There are none, and why.
pub(super) fn series(run: &Run, cell: usize, what: &What) -> Result<Series, String> {
    let own = counting(run, cell)?;
    let Cell { path, load, .. } = &run.header.cells[cell].cell;
    let tolerance = run.header.cpu_tolerance();
    let value = |(sample, m): &(&Sample, &Measurement)| {
        let value = match what {
            What::ProfileShare(names) => profile_share(run, sample, names, 0),
            What::CostShare(names) => What::Cost
                .value(m, *load, tolerance)
                .zip(profile_share(run, sample, names, 0))
                .map(|(cost, share)| cost * share),
            What::SoftirqRatio => what
                .value(m, *load, tolerance)
                .or_else(|| softirq_by_profile(run, sample, m)),
            what => what.value(m, *load, tolerance),
        };
        Some((sample.block, value?))
    };
    let series: Series = own.iter().filter_map(value).collect();
    if matches!(what, What::SettlingTime) && !series.is_empty() && series.len() < own.len() {
        // The mean of the others would be too small (docs/curves.md).
        return Err(format!(
            "{path}: jitter did not settle in {} of {} windows",
            own.len() - series.len(),
            own.len()
        ));
    }
    if series.is_empty() {
        let why = if own.is_empty() {
            "it was never measured"
        } else {
            what.absence()
        };
        return Err(format!("{path}: {why}"));
    }
    Ok(series)
}

/// What the run's plan has of a report for a cell.
pub(super) fn published(run: &Run, cell: &Cell, what: &What) -> Option<f64> {
    let names = what.published_names(cell.load);
    names.iter().find_map(|name| {
        let tables = run.header.published.iter().filter(|p| p.quantity == *name);
        let mut figures = tables.flat_map(|table| &table.figures);
        let of_cell = figures.find(|f| f.is_of((&cell.path, cell.peer, cell.load), &cell.axes));
        of_cell.map(|figure| figure.value)
    })
}

/// Is a warning about what every run of claims has, or what verdicts say themselves?
pub(super) fn expected(code: WarningCode) -> bool {
    matches!(
        code,
        WarningCode::Width
            | WarningCode::CongestionControl
            | WarningCode::Closure
            | WarningCode::LeftOut
            | WarningCode::QuickLook
            | WarningCode::Datapath
    )
}
