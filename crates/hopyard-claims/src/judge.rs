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
use crate::model::{Base, Cell};
use crate::plan;
use crate::store::Run;

/// The points of a run of a plan. `quick`: the cells that a first look is limited to.
pub(super) fn of_run(
    check: &Check,
    (plan, quick): (&str, Option<&Selection>),
    run: &Run,
) -> Gathered {
    let Some((what, selection)) = check.of_cells() else {
        return Gathered::default();
    };
    let asked = what;
    let what = &asked.in_run(run);
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
        is_diluted: asked.is_local() && what.is_local(),
        ..Gathered::default()
    };
    for why in left_out {
        gathered.note(why);
    }
    let found = pairs(check, &cells);
    if found.is_empty() && gathered.untested.is_empty() {
        gathered.note(format!("the run of plan {plan} has no such cells"));
    }
    // A curve or a peak is a figure of all cells.
    let is_of_all = matches!(check.judge, Judge::Curve { .. } | Judge::Peak { .. });
    let whole = whole(check, plan, quick, run);
    if !is_of_all {
        gathered.figures = whole.figures;
    }
    if !found.is_empty() && whole.absent > 0 {
        gathered.note(format!(
            "{} of the {} figures that the rule is about are not in this run of plan {plan}",
            whole.absent, whole.figures
        ));
    }
    let values = Values { run, what };
    let about = all_cells(&found);
    for cell in &about {
        if let Some(why) = evidence::some_failed(run, values.place(cell)) {
            gathered.note(why);
        }
    }
    let premise = check
        .given
        .as_ref()
        .map(|given| Premise::of_run(given, run));
    if let Some(premise) = premise.as_ref().filter(|_| is_of_all)
        && let Err(why) = premise.is_so_of(&about)
    {
        return Gathered::untested(why);
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
    if is_of_all {
        let all: Vec<Cell> = about.into_iter().cloned().collect();
        for point in &mut gathered.points {
            point.cells.clone_from(&all);
        }
    }
    gathered
}

/// What a check is about in the whole of its plan.
struct Whole {
    /// Figures, without those of paths that the run could not build: these are reported separately.
    figures: usize,
    /// Those of them that lack a cell in the run.
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
    // Of a plan that this version does not know, nothing is missed.
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

/// All cells that were found, with what each is compared with.
fn all_cells<'a>(found: &[(&'a Cell, Vec<&'a Cell>)]) -> Vec<&'a Cell> {
    let cells = found
        .iter()
        .flat_map(|(own, others)| others.iter().chain([own]));
    cells.copied().collect()
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
