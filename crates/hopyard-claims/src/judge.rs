//! From series of values to the points that a rule is about: one figure each, with an interval at any
//! confidence.

use super::called::{compared, words};
use super::demand::pairs;
use super::evidence;
use super::figure::{Figure, Gathered, Point};
use super::groups::{self, Group};
use super::label::said;
use super::lacking::few_cpus;
use super::peak;
use super::premise::Premise;
use super::rule::{Check, Judge};
use super::select::Selection;
use super::shapes;
use super::values::Values;
use crate::assess::last_attempts;
use crate::model::{Base, Cell, Sample, distinct};
use crate::plan;
use crate::store::Run;

/// The points of a run of a plan; `quick`: of those of its cells that a first look is about.
pub(super) fn of_run(
    check: &Check,
    (plan, quick): (&str, Option<&Selection>),
    run: &Run,
) -> Gathered {
    let Some((what, selection)) = check.of_cells() else {
        return Gathered::default();
    };
    let left_out = evidence::left_out(run, &check.named_paths());
    let cpus = run.header.environment.cpus;
    if let Some(untested) = few_cpus(check.cpus, cpus, || left_out.clone()) {
        return Gathered {
            untested,
            ..Gathered::default()
        };
    }
    let cells: Vec<Cell> = run.header.cells.iter().map(|c| c.cell.clone()).collect();
    let mut gathered = Gathered {
        confidence: run.header.confidence,
        ..Gathered::default()
    };
    for why in left_out {
        gathered.note(why);
    }
    let found = pairs(check, &cells);
    if found.is_empty() && gathered.untested.is_empty() {
        gathered.note(format!("the run of plan {plan} has no such cells"));
    }
    let whole = whole(check, plan, quick, run);
    if !matches!(check.judge, Judge::Curve { .. } | Judge::Peak { .. }) {
        gathered.figures = whole.figures;
    }
    if !found.is_empty() && whole.absent > 0 {
        gathered.note(format!(
            "{} of the {} figures that the rule is about are not in this run of plan {plan}",
            whole.absent, whole.figures
        ));
    }
    for why in failures(run, &found) {
        gathered.note(why);
    }
    let values = Values { run, what };
    let premise = check
        .given
        .as_ref()
        .map(|given| Premise::of_run(given, run));
    if let (Some(premise), Judge::Curve { .. } | Judge::Peak { .. }) = (&premise, &check.judge) {
        let members = found
            .iter()
            .flat_map(|(cell, others)| others.iter().chain([cell]));
        if let Err(why) = premise.is_so_of(&members.copied().collect::<Vec<_>>()) {
            return Gathered::untested(why);
        }
    }
    match &check.judge {
        Judge::Curve { shape, to, .. } => {
            let wanted = shapes::Wanted {
                shape: *shape,
                cells: selection,
                to: to.as_deref().and_then(|to| Base::parse(to).ok()),
                at_least: check.at_least,
                published: &check.published,
            };
            shapes::gather(&mut gathered, &found, &wanted, values);
        }
        Judge::Peak { axis, last, .. } => {
            let wanted = peak::Wanted {
                axis,
                last: *last,
                published: &check.published,
            };
            peak::gather(&mut gathered, &found, &wanted, values);
            gathered.what = format!("{}, by {axis}", words(what, &found));
        }
        _ => of_groups(&mut gathered, &found, (check, premise.as_ref()), values),
    }
    if matches!(check.judge, Judge::Curve { .. } | Judge::Peak { .. }) {
        let all = found
            .iter()
            .flat_map(|(own, others)| others.iter().chain([own]));
        let all: Vec<Cell> = all.map(|cell| (*cell).clone()).collect();
        for point in &mut gathered.points {
            point.cells.clone_from(&all);
        }
    }
    gathered
}

/// What a check is about in the whole of its plan.
struct Whole {
    /// Figures, those of paths not counted that the run could not build, which are told by themselves.
    figures: usize,
    /// Those among them of which the run does not have all cells.
    absent: usize,
}

/// A run may have less than its plan: it was made with flags, or for other claims.
fn whole(check: &Check, plan: &str, quick: Option<&Selection>, run: &Run) -> Whole {
    let header = &run.header;
    let has = |path: &str| header.cells.iter().any(|one| one.cell.path == path);
    let named = check.named_paths();
    let is_told = |path: &str| {
        let left_out = header.left_out.iter().any(|(name, _)| name == path);
        left_out || named.iter().any(|name| name == path)
    };
    let planned = plan::find(plan).ok().and_then(|mut plan| {
        plan.leave_out(|path| (!has(path) && is_told(path)).then(String::new));
        let has_parts = !plan.parts.is_empty();
        has_parts.then(|| plan::expand(&plan).ok())?
    });
    // A plan of which nothing is known here is what its run has.
    let mut planned = planned.map_or_else(Vec::new, |plan| plan.cells);
    planned.retain(|cell| quick.is_none_or(|quick| quick.allows(cell)));
    let wanted = pairs(check, &planned);
    let groups = Group::all(check, &wanted);
    let is_here = |cell: &Cell| header.cells.iter().any(|one| one.cell == *cell);
    let absent = groups.iter().filter(|group| !group.cells().all(is_here));
    Whole {
        figures: groups.len(),
        absent: absent.count(),
    }
}

/// Cells of which some windows failed: what is left of them is not all that the rule is about.
fn failures(run: &Run, found: &[(&Cell, Vec<&Cell>)]) -> Vec<String> {
    let cells = found
        .iter()
        .flat_map(|(own, others)| others.iter().chain([own]));
    let samples = last_attempts(&run.samples);
    let of_cell = |cell: &Cell| {
        let at = run.header.cells.iter().position(|one| one.cell == *cell)?;
        let own: Vec<&Sample> = samples.iter().copied().filter(|s| s.cell == at).collect();
        let causes: Vec<&String> = own.iter().filter_map(|sample| sample.failure()).collect();
        // Of one that has nothing at all it is told where its values are asked for.
        let first = causes.first().filter(|_| causes.len() < own.len())?;
        Some(format!(
            "{}: {} of {} windows failed: {first}",
            cell.path,
            causes.len(),
            own.len()
        ))
    };
    distinct(cells.filter_map(|cell| of_cell(cell)))
}

/// The points of groups of cells.
fn of_groups(
    gathered: &mut Gathered,
    found: &[(&Cell, Vec<&Cell>)],
    (check, premise): (&Check, Option<&Premise>),
    values: Values<'_>,
) {
    let Values { run, what } = values;
    let all = Group::all(check, found);
    let mut measured: Vec<(&Group<'_>, Figure)> = Vec::new();
    for (group, name) in all
        .iter()
        .zip(groups::names(&all.iter().collect::<Vec<_>>(), false))
    {
        let cells: Vec<&Cell> = group.cells().collect();
        let is_so = premise.map_or(Ok(()), |premise| premise.is_so_of(&cells));
        match is_so.and_then(|()| group.figure(check, &values)) {
            Ok(figure) => measured.push((group, figure)),
            Err(why) if group.mean_over().is_empty() || name.is_empty() => gathered.note(why),
            Err(why) => gathered.note(format!("{name}: {why}")),
        }
    }
    let of: Vec<&Group<'_>> = measured.iter().map(|(group, _)| *group).collect();
    let base = check.of_base().map(|base| words(base, found));
    let over_base = base.map_or_else(String::new, |base| format!(" over {base}"));
    gathered.what = compared(&(words(what, found) + &over_base), check, &of);
    if matches!(check.judge, Judge::Level { .. }) {
        gathered.quantity = of.first().map(|group| what.name(group.cell().load));
    }
    let several = matches!(&check.judge, Judge::Ratio { to, .. } if to.len() > 1);
    let names = groups::names(&of, several);
    let points = measured
        .into_iter()
        .zip(names)
        .map(|((group, figure), at)| Point {
            at: said(&[&at, &figure.remark().unwrap_or_default()]),
            cells: group.cells().cloned().collect(),
            published: group.published(check, run, what),
            figure,
        });
    gathered.points = points.collect();
}
