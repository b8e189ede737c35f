//! From series of values to the points that a rule is about: one figure each, with an interval at any
//! confidence.

use super::demand::pairs;
use super::evidence::{self, Evidence, Series, What};
use super::label::{apart, versus};
use super::peak::peak;
use super::rule::{Check, Judge, Published};
use super::shapes;
use crate::model::{Base, Cell, axis};
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

/// A cell beside another, with what was measured of both.
struct Pair<'a> {
    cell: &'a Cell,
    other: Option<&'a Cell>,
    figure: Figure,
    published: Option<f64>,
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
        };
        shapes::gather(&mut gathered, run, &wanted);
        apply_published(check, &mut gathered.points);
        return gathered;
    }
    let series = |cell: &Cell| {
        let at = cells.iter().position(|c| c == cell).unwrap_or_default();
        evidence::series(run, at, what)
    };
    if let Judge::Peak { axis, last, .. } = &check.judge {
        peak(&mut gathered, run, &found, (axis, *last), series);
        gathered.what = format!("{}, by {axis}", words(what, &found));
        return gathered;
    }
    let mut measured = Vec::new();
    for (cell, others) in &found {
        let published = |cell: &Cell| evidence::published(run, cell, what);
        match figures(check, cell, others, &series) {
            Ok(list) => measured.extend(list.into_iter().map(|(other, figure)| Pair {
                cell,
                other,
                published: match (&figure, other) {
                    (Figure::Ratio { .. }, Some(other)) => {
                        published(cell).zip(published(other)).map(|(a, b)| a / b)
                    }
                    (Figure::Share { .. }, _) => {
                        let all: Option<Vec<f64>> =
                            [*cell].iter().chain(others).map(|c| published(c)).collect();
                        all.map(|p| (p[0] - p[1]) / (p[0] - p[2]))
                    }
                    _ => None,
                },
                figure,
            })),
            Err(why) => gathered.note(why),
        }
    }
    gathered.what = compared(&words(what, &found), check, &measured);
    if matches!(check.judge, Judge::Level { .. }) {
        gathered.quantity = measured.first().map(|pair| what.name(pair.cell.load));
    }
    gathered.points = points(check, measured);
    gathered
}

/// Figures that the rule itself names.
fn apply_published(check: &Check, points: &mut [Point]) {
    for (place, point) in points.iter_mut().enumerate() {
        point.published = match &check.published {
            Published::OfPlan => None,
            Published::One(figure) => Some(*figure),
            Published::Each(figures) => figures.get(place).copied(),
        };
    }
}

/// `goodput, veth-route / native` where all pairs differ in the same, else `goodput over veth`.
fn compared(words: &str, check: &Check, measured: &[Pair<'_>]) -> String {
    let mut all: Vec<String> = Vec::new();
    for pair in measured {
        let versus = pair.other.map(|other| versus(pair.cell, other));
        all.extend(versus.filter(|versus| !all.contains(versus)));
    }
    match (&check.judge, all.as_slice()) {
        (_, [one]) => format!("{words}, {one}"),
        (Judge::Ratio { to, .. }, [_, ..]) if to.len() == 1 => format!("{words} over {}", to[0]),
        (Judge::Share { without, base, .. }, _) => {
            format!("share of {words} above {base} that {without} lacks")
        }
        _ => words.to_owned(),
    }
}

/// The figures of a cell: one for each that it is compared with, or one.
fn figures<'a>(
    check: &Check,
    cell: &Cell,
    others: &[&'a Cell],
    series: &impl Fn(&Cell) -> Result<Series, String>,
) -> Result<Vec<(Option<&'a Cell>, Figure)>, String> {
    let own = series(cell)?;
    match &check.judge {
        Judge::Ratio { .. } => others
            .iter()
            .map(|other| {
                let [a, b] = paired([&own, &series(other)?]);
                Ok((Some(*other), Figure::Ratio { a, b }))
            })
            .collect(),
        Judge::Share { .. } => {
            let [without, base] = [series(others[0])?, series(others[1])?];
            let [with, without, base] = paired([&own, &without, &base]);
            let figure = Figure::Share {
                with,
                without,
                base,
            };
            Ok(vec![(None, figure)])
        }
        _ => Ok(vec![(None, Figure::Level(own.into_values().collect()))]),
    }
}

/// The values of the blocks that all have.
pub(super) fn paired<const N: usize>(series: [&Series; N]) -> [Vec<f64>; N] {
    let shared: Vec<u32> = series[0]
        .keys()
        .filter(|block| series.iter().all(|one| one.contains_key(block)))
        .copied()
        .collect();
    series.map(|one| shared.iter().map(|block| one[block]).collect())
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

/// One point for each pair, or for each group of them that a mean is taken of.
fn points(check: &Check, measured: Vec<Pair<'_>>) -> Vec<Point> {
    let mut groups: Vec<(Cell, Option<String>, Vec<Pair<'_>>)> = Vec::new();
    for pair in measured {
        let mut key = pair.cell.clone();
        for axis in check.mean_over.iter().filter_map(|name| axis(name).ok()) {
            (axis.clear)(&mut key.axes);
        }
        let mut other = pair.other.map(|other| other.path.clone());
        // Two values of an axis are one comparison; two paths are two.
        other = other.filter(|path| *path != key.path);
        match groups.iter_mut().find(|g| g.0 == key && g.1 == other) {
            Some(group) if !check.mean_over.is_empty() => group.2.push(pair),
            _ => groups.push((key, other, vec![pair])),
        }
    }
    let names = apart(&groups.iter().map(|g| &g.0).collect::<Vec<_>>());
    let several = check.bases().len() > 1 && !matches!(check.judge, Judge::Share { .. });
    let all = groups.iter().zip(names).enumerate();
    all.map(|(place, ((_, other, pairs), name))| {
        let beside = other
            .as_ref()
            .filter(|_| several)
            .map(|o| format!("against {o}"));
        let words: Vec<String> = beside
            .into_iter()
            .chain([name])
            .filter(|w| !w.is_empty())
            .collect();
        Point {
            at: words.join(" · "),
            figure: mean(pairs),
            published: match &check.published {
                Published::OfPlan => mean_published(pairs),
                Published::One(figure) => Some(*figure),
                Published::Each(figures) => figures.get(place).copied(),
            },
        }
    })
    .collect()
}

/// The geometric mean of pairs, block by block.
fn mean(pairs: &[Pair<'_>]) -> Figure {
    let ratios: Vec<(&Vec<f64>, &Vec<f64>)> = pairs
        .iter()
        .filter_map(|pair| match &pair.figure {
            Figure::Ratio { a, b } => Some((a, b)),
            _ => None,
        })
        .collect();
    if ratios.len() < 2 {
        return pairs[0].figure.clone();
    }
    let blocks = ratios.iter().map(|(a, _)| a.len()).min().unwrap_or(0);
    let (a, b): (Vec<&Vec<f64>>, Vec<&Vec<f64>>) = ratios.into_iter().unzip();
    let of = |sides: &[&Vec<f64>]| -> Vec<f64> {
        let in_block = |block: usize| {
            let values: Vec<f64> = sides.iter().map(|side| side[block]).collect();
            stats::geometric_mean(&values).unwrap_or(f64::NAN)
        };
        (0..blocks).map(in_block).collect()
    };
    Figure::Ratio {
        a: of(&a),
        b: of(&b),
    }
}

fn mean_published(pairs: &[Pair<'_>]) -> Option<f64> {
    let all: Option<Vec<f64>> = pairs.iter().map(|pair| pair.published).collect();
    stats::geometric_mean(&all?)
}
