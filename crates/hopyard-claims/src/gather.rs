//! What evidence has for a check: of the run here, and of a guest where this machine lacks a path.

use super::Chosen;
use super::evidence::{self, Evidence};
use super::figure::Gathered;
use super::judge;
use super::lacking::few_cpus;
use super::rule::Check;
use super::select::Selection;
use crate::model::distinct;
use crate::report::claims::quoted;
use crate::store::Run;

/// The points of a check that is about cells of a plan: of the run here, and of one in a guest where this machine lacks a path.
pub(super) fn gather(chosen: Chosen<'_>, check: &Check, evidence: &Evidence) -> Gathered {
    let plan = chosen.plan_of(check);
    let quick = chosen.report.quick.get(plan);
    let quick = quick.filter(|_| evidence.first_looks.contains(plan));
    let mut gathered = match evidence.of_plan(plan) {
        Ok(run) => of_own_run(judge::of_run(check, (plan, quick), run), run),
        Err(why) => Gathered {
            untested: few_by_other_runs(check, evidence).unwrap_or_else(|| vec![why]),
            ..Gathered::default()
        },
    };
    add(check, (plan, quick), evidence, &mut gathered);
    gathered
}

/// The whole run may be that of an emulated guest (`hopyard claims --kernel`).
fn of_own_run(gathered: Gathered, run: &Run) -> Gathered {
    match run.header.environment.is_emulated() && !gathered.points.is_empty() {
        true => Gathered::untested(shape("an emulated guest", &gathered)),
        false => gathered,
    }
}

/// Why a check whose plan was not run cannot be tested on this machine at all, as runs of other plans show. They show the paths that it
/// lacks too.
fn few_by_other_runs(check: &Check, evidence: &Evidence) -> Option<Vec<String>> {
    let headers = evidence.runs.iter().map(|run| &run.header);
    let cpus = headers
        .clone()
        .map(|header| header.environment.cpus)
        .max()?;
    few_cpus(check.cpus, cpus, || {
        let named = check.named_paths();
        let left_out = headers.flat_map(|header| &header.left_out);
        let left_out = left_out.filter(|(path, _)| named.contains(path));
        distinct(left_out.map(|(path, why)| format!("{path}: {why}")))
    })
}

/// Adds to what was gathered here what the guest has of paths that this machine lacks.
fn add(
    check: &Check,
    (plan, quick): (&str, Option<&Selection>),
    evidence: &Evidence,
    gathered: &mut Gathered,
) {
    let Some(beside) = &evidence.beside else {
        return;
    };
    let Some(run) = beside.runs.iter().find(|run| run.header.plan == plan) else {
        if let Some(why) = beside.guest.not_run.get(plan) {
            gathered.note(format!("in {}: {why}", beside.guest.described()));
        }
        return;
    };
    let here = evidence.of_plan(plan).ok();
    let is_here = |path: &str| {
        here.is_some_and(|run| run.header.cells.iter().any(|one| one.cell.path == path))
    };
    let lacking = match here {
        Some(run) => evidence::left_out(run, &check.named_paths()),
        None => gathered.untested.clone(),
    };
    for part in check.of_paths(&|path| !is_here(path)) {
        let there = judge::of_run(&part, (plan, quick), run);
        if there.points.is_empty() {
            let why = there.untested.join("; ");
            gathered.note(format!("in {}: {why}", beside.guest.described()));
        } else if run.header.environment.is_emulated() {
            gathered.note(shape(&beside.guest.described(), &there));
        } else {
            gathered.untested.retain(|why| !lacking.contains(why));
            gathered.take(there, &format!("in {}", beside.guest.described()));
        }
    }
}

/// What an emulated guest has to say: `in a guest with Linux 6.1.0, emulated, whose figures have a shape and no size: goodput is …`.
fn shape(guest: &str, there: &Gathered) -> String {
    let each = there.points.iter().map(|point| {
        let measured = point.figure.interval(there.confidence);
        let said = measured.map_or_else(
            || point.figure.unknown(),
            |measured| quoted(there.quantity.as_deref(), &measured),
        );
        match point.at.as_str() {
            "" => said,
            at => format!("{said} {at}"),
        }
    });
    format!(
        "in {guest}, whose figures have a shape and no size: {} {}",
        there.what,
        each.collect::<Vec<_>>().join(", ")
    )
}
