//! One plan under several kernels: what works where, and what else differs.

use std::collections::BTreeMap;

use super::{assess, diff, main_figure};
use crate::model::stored::Run;
use crate::model::{
    CellReport, CellStatus, Environment, KERNELS_SCHEMA, KernelFinding, KernelRun, KernelsReport,
    KernelsRow, Peer, RunReport, Works,
};

/// A kernel and its run.
#[derive(Debug)]
pub struct KernelAsked {
    /// The name it was given.
    pub asked: String,
    /// Where its run is.
    pub directory: String,
    /// Why it ended early, or why nothing was measured.
    pub failure: Option<String>,
    /// What was measured.
    pub run: Option<Run>,
}

/// The runs of one plan side by side.
#[must_use]
pub fn side_by_side(kernels: &[KernelAsked]) -> KernelsReport {
    let reports: Vec<Option<RunReport>> = kernels
        .iter()
        .map(|kernel| kernel.run.as_ref().map(assess))
        .collect();
    let rows = places(kernels, &reports);
    KernelsReport {
        schema: KERNELS_SCHEMA.to_owned(),
        rows: rows
            .into_iter()
            .map(|(path, peer)| KernelsRow {
                findings: kernels
                    .iter()
                    .zip(&reports)
                    .map(|(kernel, report)| finding(kernel, report.as_ref(), &path, peer))
                    .collect(),
                path,
                peer,
            })
            .collect(),
        kernels: kernels
            .iter()
            .map(|kernel| summary(kernel, kernels))
            .collect(),
        differences: differences(kernels),
    }
}

fn summary(kernel: &KernelAsked, all: &[KernelAsked]) -> KernelRun {
    let environment = kernel.run.as_ref().map(|run| &run.header.environment);
    KernelRun {
        name: name(kernel, all),
        asked: kernel.asked.clone(),
        release: release(kernel).map(str::to_owned),
        is_emulated: environment.is_some_and(Environment::is_emulated),
        directory: kernel.directory.clone(),
        failure: kernel.failure.clone(),
    }
}

fn release(kernel: &KernelAsked) -> Option<&str> {
    let run = kernel.run.as_ref()?;
    Some(&run.header.environment.kernel_release)
}

/// Two builds may have the same release, so the given name is added.
fn name(kernel: &KernelAsked, all: &[KernelAsked]) -> String {
    let Some(own) = release(kernel) else {
        return kernel.asked.clone();
    };
    let same = all.iter().filter(|other| release(other) == Some(own));
    if same.count() > 1 {
        format!("{} ({own})", kernel.asked)
    } else {
        own.to_owned()
    }
}

/// Every path and peer that a kernel has, in the order of the plan, then those that none can build.
fn places(kernels: &[KernelAsked], reports: &[Option<RunReport>]) -> Vec<(String, Option<Peer>)> {
    let mut places: Vec<(String, Option<Peer>)> = Vec::new();
    let mut add = |place: (String, Option<Peer>)| {
        if !places.contains(&place) {
            places.push(place);
        }
    };
    for report in reports.iter().flatten() {
        for cell in &report.cells {
            add((cell.path.clone(), Some(cell.peer)));
        }
    }
    let left_out = kernels.iter().filter_map(|kernel| kernel.run.as_ref());
    for (path, _) in left_out.flat_map(|run| &run.header.left_out) {
        let is_known = reports
            .iter()
            .flatten()
            .any(|report| report.cells.iter().any(|cell| cell.path == *path));
        if !is_known {
            add((path.clone(), None));
        }
    }
    places
}

fn finding(
    kernel: &KernelAsked,
    report: Option<&RunReport>,
    path: &str,
    peer: Option<Peer>,
) -> KernelFinding {
    let unknown = |works, cause: Option<String>| KernelFinding {
        works,
        cause,
        figures: BTreeMap::new(),
    };
    let (Some(run), Some(report)) = (&kernel.run, report) else {
        return unknown(Works::Unknown, kernel.failure.clone());
    };
    let mut left_out = run.header.left_out.iter();
    if let Some((_, why)) = left_out.find(|(name, _)| name == path) {
        return unknown(Works::CannotBuild, Some(why.clone()));
    }
    let own = |cell: &&CellReport| cell.path == path && Some(cell.peer) == peer;
    let cells: Vec<&CellReport> = report.cells.iter().filter(own).collect();
    let Some(worst) = cells.iter().max_by_key(|cell| works(cell)) else {
        return unknown(Works::Unknown, None);
    };
    let is_emulated = run.header.environment.is_emulated();
    let is_only =
        |cell: &CellReport| cells.iter().filter(|other| other.load == cell.load).count() == 1;
    let told = cells.iter().filter(|cell| !is_emulated && is_only(cell));
    // A rate that was searched for is another quantity than what stands at the head of the table.
    let figures = told.filter(|cell| cell.axes.search.is_none() && !cell.is_unproved());
    let figures = figures.filter_map(|cell| {
        let estimate = cell.estimates.get(main_figure(cell.load, &cell.axes))?;
        Some((cell.load, estimate.clone()))
    });
    KernelFinding {
        works: works(worst),
        cause: worst.cause.clone(),
        figures: figures.collect(),
    }
}

fn works(cell: &CellReport) -> Works {
    match cell.status {
        CellStatus::Ok if cell.way.proved => Works::Proved,
        CellStatus::Ok => Works::OtherWay,
        CellStatus::Unsupported => Works::CannotBuild,
        CellStatus::Failed => Works::Failed,
    }
}

/// What differs from the first kernel that has a run. If runs cannot be compared, they differ in what works, which is
/// in the rows.
fn differences(kernels: &[KernelAsked]) -> BTreeMap<String, Vec<crate::model::Difference>> {
    let mut measured = kernels
        .iter()
        .filter_map(|kernel| Some((kernel, kernel.run.as_ref()?)));
    let Some((_, first)) = measured.next() else {
        return BTreeMap::new();
    };
    let of = |(kernel, run): (&KernelAsked, &Run)| {
        (name(kernel, kernels), diff::facts_that_differ(first, run))
    };
    measured.map(of).collect()
}
