//! From series of values to the points that a rule is about: one figure each, with an interval at any
//! confidence.

use super::demand::pairs;
use super::evidence::{self, Evidence, What};
use super::groups::{self, Group};
use super::peak;
use super::rule::{Check, Judge};
use super::shapes;
use crate::model::{Base, Cell};
use crate::stats::{self, Estimate, Samples};

/// A figure in the making.
#[derive(Debug, Clone)]
pub(super) enum Figure {
    /// a/b, paired within blocks.
    Ratio { a: Vec<f64>, b: Vec<f64> },
    /// By itself.
    Level(Vec<f64>),
    /// Known with its interval.
    Known(Estimate),
    /// (with − without) / (with − base).
    Share {
        with: Vec<f64>,
        without: Vec<f64>,
        base: Vec<f64>,
    },
}

impl Figure {
    /// The figure with its interval; `None` where there are too few blocks, or a ratio is to nothing.
    pub(super) fn interval(&self, confidence: f64) -> Option<Estimate> {
        match self {
            Self::Ratio { a, b } if a.iter().chain(b).any(|v| *v <= 0.0) => {
                stats::ratio_of_sums(a, b, confidence)
            }
            Self::Ratio { a, b } => stats::paired_ratio(a, b, confidence),
            Self::Known(estimate) => estimate.at(confidence),
            Self::Level(values) => stats::mean_interval(&Samples::new(values).ok()?, confidence),
            Self::Share {
                with,
                without,
                base,
            } => stats::jackknife(with.len(), confidence, |out| {
                let sum = |x: &[f64]| -> f64 {
                    let kept = x.iter().enumerate().filter(|(i, _)| Some(*i) != out);
                    kept.map(|(_, v)| v).sum()
                };
                let whole = sum(with) - sum(base);
                // Without anything above the base there is nothing to have a share of.
                (whole > 0.0).then(|| (sum(with) - sum(without)) / whole)
            }),
        }
    }
}

/// A figure at one place.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// What sets it apart from the other points.
    pub(super) at: String,
    pub(super) figure: Figure,
    pub(super) published: Option<f64>,
}

/// What a check comes to, before it is judged.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// What is measured, in words.
    pub(super) what: String,
    /// The quantity, where a figure has its unit.
    pub(super) quantity: Option<String>,
    pub(super) confidence: f64,
    pub(super) points: Vec<Point>,
    /// What could not be tested, and why.
    pub(super) untested: Vec<String>,
    /// It is known to fail before any interval is looked at, and why.
    pub(super) refuted: Option<String>,
}

impl Gathered {
    fn untested(why: String) -> Self {
        Self {
            untested: vec![why],
            ..Self::default()
        }
    }

    pub(super) fn note(&mut self, why: String) {
        if !self.untested.contains(&why) {
            self.untested.push(why);
        }
    }
}

/// The points of a check that is about cells of a plan.
pub(super) fn gather(check: &Check, plan: &str, evidence: &Evidence) -> Gathered {
    let run = match evidence.of_plan(plan) {
        Ok(run) => run,
        Err(why) => return Gathered::untested(why),
    };
    let Some((what, selection)) = check.of_cells() else {
        return Gathered::default();
    };
    let cells: Vec<Cell> = run.header.cells.iter().map(|c| c.cell.clone()).collect();
    let mut gathered = Gathered {
        confidence: run.header.confidence,
        ..Gathered::default()
    };
    let mut named: Vec<String> = selection.paths().to_vec();
    let bases = check.bases();
    named.extend(bases.iter().filter_map(|base| match base {
        Base::Path(path) => Some((*path).to_owned()),
        _ => None,
    }));
    for why in evidence::left_out(run, &named) {
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
