//! From series of values to the points that a rule is about: one figure each, with an interval at any
//! confidence.

use super::demand::pairs;
use super::evidence::{self, What};
use super::figure::{Figure, Gathered, Point};
use super::groups::{self, Group};
use super::peak;
use super::rule::{Check, Judge};
use super::shapes;
use crate::model::{Base, Cell};
use crate::store::Run;

/// The paths that a check names: of its cells, and of what they are compared with.
pub(super) fn named_paths(check: &Check) -> Vec<String> {
    let cells = check.of_cells().map(|(_, cells)| cells.paths().to_vec());
    let bases = check.bases().into_iter().filter_map(|base| match base {
        Base::Path(path) => Some(path.to_owned()),
        _ => None,
    });
    cells.into_iter().flatten().chain(bases).collect()
}

/// The points of a run.
pub(super) fn of_run(check: &Check, plan: &str, run: &Run) -> Gathered {
    let Some((what, selection)) = check.of_cells() else {
        return Gathered::default();
    };
    let cpus = run.header.environment.cpus;
    if let Some(least) = check.cpus.filter(|least| *least > cpus) {
        return Gathered::untested(format!(
            "it is about {least} CPUs or more, and this machine has {cpus}"
        ));
    }
    if let Some(Err(why)) = check.given.as_ref().map(|given| given.is_so(run)) {
        return Gathered::untested(why);
    }
    let cells: Vec<Cell> = run.header.cells.iter().map(|c| c.cell.clone()).collect();
    let mut gathered = Gathered {
        confidence: run.header.confidence,
        ..Gathered::default()
    };
    for why in evidence::left_out(run, &named_paths(check)) {
        gathered.note(why);
    }
    let found = pairs(check, &cells);
    if found.is_empty() && gathered.untested.is_empty() {
        gathered.note(format!("the run of plan {plan} has no such cells"));
    }
    if let Judge::Curve { shape, to, .. } = &check.judge {
        let wanted = shapes::Wanted {
            shape: *shape,
            what,
            cells: selection,
            to: to.as_deref().and_then(|to| Base::parse(to).ok()),
            published: &check.published,
        };
        shapes::gather(&mut gathered, run, &wanted);
        return gathered;
    }
    let series = |cell: &Cell| {
        let at = cells.iter().position(|c| c == cell).unwrap_or_default();
        evidence::series(run, at, what)
    };
    if let Judge::Peak { axis, last, .. } = &check.judge {
        let wanted = peak::Wanted {
            axis,
            last: *last,
            what,
            published: &check.published,
        };
        peak::gather(&mut gathered, run, &found, &wanted, series);
        gathered.what = format!("{}, by {axis}", words(what, &found));
        return gathered;
    }
    let all = Group::all(check, &found);
    let mut measured: Vec<(&Group<'_>, Figure)> = Vec::new();
    for (group, name) in all
        .iter()
        .zip(groups::names(&all.iter().collect::<Vec<_>>(), false))
    {
        match group.figure(check, &series) {
            Ok(figure) => measured.push((group, figure)),
            Err(why) if group.mean_over().is_empty() || name.is_empty() => gathered.note(why),
            Err(why) => gathered.note(format!("{name}: {why}")),
        }
    }
    let of: Vec<&Group<'_>> = measured.iter().map(|(group, _)| *group).collect();
    gathered.what = compared(&words(what, &found), check, &of);
    if matches!(check.judge, Judge::Level { .. }) {
        gathered.quantity = of.first().map(|group| what.name(group.cell().load));
    }
    let several = matches!(&check.judge, Judge::Ratio { to, .. } if to.len() > 1);
    let names = groups::names(&of, several);
    let points = measured
        .into_iter()
        .zip(names)
        .map(|((group, figure), at)| Point {
            at,
            figure,
            published: group.published(check, run, what),
        });
    gathered.points = points.collect();
    gathered
}

/// `goodput, veth-route / native` where all pairs differ in the same, else `goodput over veth`; and what a mean is over.
fn compared(words: &str, check: &Check, groups: &[&Group<'_>]) -> String {
    let mut all: Vec<String> = Vec::new();
    for versus in groups.iter().flat_map(|group| group.versus()) {
        if !all.contains(&versus) {
            all.push(versus);
        }
    }
    let mut text = match (&check.judge, all.as_slice()) {
        (_, [one]) => format!("{words}, {one}"),
        (Judge::Ratio { to, .. }, [_, ..]) if to.len() == 1 => format!("{words} over {}", to[0]),
        (Judge::Share { without, base, .. }, _) => {
            format!("share of {words} above {base} that {without} lacks")
        }
        (Judge::Corrected { to, less, .. }, _) => {
            format!("{words} over {to}, without what they differ by at {less}")
        }
        _ => words.to_owned(),
    };
    if !check.mean_over.is_empty() {
        let values = groups::common_mean(groups).filter(|values| !values.is_empty());
        let values = values.unwrap_or_else(|| check.mean_over.join(", ").replace('_', " "));
        text.push_str(&format!(", geometric mean over {values}"));
    }
    text
}

fn words(what: &What, found: &[(&Cell, Vec<&Cell>)]) -> String {
    let mut names: Vec<String> = Vec::new();
    for (cell, _) in found {
        let name = crate::report::claims::words(&what.name(cell.load));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" or ")
}
