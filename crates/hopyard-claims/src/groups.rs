//! What makes one figure: a cell beside what it is compared with, or several of them that a geometric mean is taken of.

use super::evidence::{self, Series};
use super::figure::Figure;
use super::label::{apart, versus};
use super::rule::{Check, Judge};
use super::values::Values;
use super::what::What;
use crate::model::{Axis, Cell, axis, distinct};
use crate::stats;
use crate::store::Run;

/// A cell first, then what it is compared with: nothing, a base, or for a share what lacks the thing and the base.
struct Member<'a>(Vec<&'a Cell>);

/// Members that differ in nothing but the axes that the mean is over; without a mean, one member.
pub(super) struct Group<'a> {
    members: Vec<Member<'a>>,
    /// The members' cells without those axes: equal for all of them.
    place: Vec<Cell>,
    mean_over: Vec<&'static Axis>,
}

impl<'a> Group<'a> {
    /// The figures of a check, of cells with what each is compared with.
    pub(super) fn all(check: &Check, found: &[(&'a Cell, Vec<&'a Cell>)]) -> Vec<Self> {
        let mean_over: Vec<&'static Axis> = check
            .mean_over
            .iter()
            .filter_map(|name| axis(name).ok())
            .collect();
        let place = |cell: &Cell| {
            let mut place = cell.clone();
            for axis in &mean_over {
                (axis.clear)(&mut place.axes);
            }
            place
        };
        let mut groups: Vec<Self> = Vec::new();
        for member in found.iter().flat_map(|pair| members(check, pair)) {
            let place: Vec<Cell> = member.0.iter().map(|cell| place(cell)).collect();
            match groups.iter_mut().find(|group| group.place == place) {
                Some(group) => group.members.push(member),
                None => groups.push(Self {
                    members: vec![member],
                    place,
                    mean_over: mean_over.clone(),
                }),
            }
        }
        groups
    }

    /// Every cell that it is of.
    pub(super) fn cells(&self) -> impl Iterator<Item = &'a Cell> {
        self.members
            .iter()
            .flat_map(|member| member.0.iter().copied())
    }

    /// The cell that the figure is of; of a mean, without the axes that it is over.
    pub(super) fn cell(&self) -> &Cell {
        &self.place[0]
    }

    /// The path that it is compared with, where that is another.
    pub(super) fn other_path(&self) -> Option<&str> {
        let other = self.place.get(1)?;
        (other.path != self.place[0].path).then_some(&other.path)
    }

    /// What each member has that its base has not; for a ratio.
    pub(super) fn versus(&self) -> impl Iterator<Item = String> {
        let pairs = self.members.iter().map(|member| &member.0);
        pairs.filter_map(|cells| match cells.as_slice() {
            [one, other] => Some(versus(one, other)),
            _ => None,
        })
    }

    /// The values that the mean is over, `flows 2, 4, 8`; empty without a mean.
    pub(super) fn mean_over(&self) -> String {
        let cells: Vec<&Cell> = self.members.iter().map(|member| member.0[0]).collect();
        values(&self.mean_over, &cells)
    }

    /// The figure. Of several members it is the geometric mean, taken within each block that all of them have.
    ///
    /// # Errors
    /// A member has no values: a mean of the others would be another figure.
    pub(super) fn figure(&self, check: &Check, values: &Values<'_>) -> Result<Figure, String> {
        let is_level = matches!(check.judge, Judge::Level { .. });
        let alone = match self.members.as_slice() {
            [member] if is_level => Some(member.0[0]),
            _ => None,
        };
        if let Some(figure) = alone.and_then(|cell| values.at_least(cell)) {
            return Ok(figure);
        }
        let members = self.series(check, values)?;
        let blocks = shared_blocks(&members.iter().flatten().collect::<Vec<_>>());
        let side = |side: usize| -> Result<Vec<f64>, String> {
            let in_block = |block: &u32| {
                let values: Vec<f64> = members.iter().map(|m| m[side][block]).collect();
                match values.as_slice() {
                    [one] => Ok(*one),
                    several => stats::geometric_mean(several)
                        .ok_or_else(|| "a value of 0 has no geometric mean".to_owned()),
                }
            };
            blocks.iter().map(in_block).collect()
        };
        let none_of = alone.filter(|_| check.bounds().ask_for_none());
        let figure = match (&check.judge, none_of) {
            (Judge::Ratio { .. }, _) => self.ratio(check, values, &blocks, [side(0)?, side(1)?]),
            (Judge::Share { .. }, _) => Figure::share((0..3).map(side).collect::<Result<_, _>>()?),
            (Judge::Corrected { .. }, _) => {
                Figure::corrected((0..4).map(side).collect::<Result<_, _>>()?)
            }
            (_, Some(cell)) => {
                let disturbed = values.disturbed(cell);
                Figure::Windows {
                    values: side(0)?,
                    disturbed: blocks.iter().map(|b| disturbed.contains(b)).collect(),
                }
            }
            // The geometric mean of ratios to 1 is that of the values.
            _ if check.geometric => Figure::Ratio {
                a: side(0)?,
                b: vec![1.0; blocks.len()],
            },
            _ if values.is_share() => Figure::Share(side(0)?),
            _ => Figure::Level(side(0)?),
        };
        let absence = self.absence(values, blocks.len());
        Ok(absence.map_or(figure, Figure::Unknown))
    }

    /// A ratio. If a profile has samples of the base in fewer than two windows, there is no interval; then the ratio is at least that of
    /// the sums with one sample in each window that has none.
    fn ratio(
        &self,
        check: &Check,
        values: &Values<'_>,
        blocks: &[u32],
        [a, b]: [Vec<f64>; 2],
    ) -> Figure {
        let seen = b.iter().filter(|value| **value > 0.0).count();
        let base = match self.members.as_slice() {
            [Member(cells)] if seen < 2 => {
                let what = check.of_base().unwrap_or(values.what);
                Values { what, ..*values }.a_sample_at_least(cells[1])
            }
            _ => None,
        };
        let Some(base) = base else {
            return Figure::Ratio { a, b };
        };
        let windows = blocks.len();
        Figure::AtLeast {
            of: Box::new(Figure::RatioOfSums {
                a,
                b: blocks.iter().map(|block| base[block]).collect(),
            }),
            why: format!(
                "{seen} of {windows} windows of what it is compared with had a sample of it"
            ),
        }
    }

    /// Why its cells have values together in too few blocks for an interval, where they were measured together in more.
    fn absence(&self, values: &Values<'_>, known: usize) -> Option<String> {
        if known >= 2 {
            return None;
        }
        let measured = self.cells().map(|cell| values.blocks(cell));
        let measured = measured.reduce(|all, own| &all & &own)?.len();
        let why = values.what.absence();
        (measured > known).then(|| format!("known in {known} of {measured} blocks: {why}"))
    }

    /// The values of each member's cells.
    fn series(&self, check: &Check, values: &Values<'_>) -> Result<Vec<Vec<Series>>, String> {
        let of_member = |member: &Member<'_>| {
            let all: Result<Vec<Series>, String> = match (&check.judge, member.0.as_slice()) {
                (Judge::Ratio { .. }, &[one, other]) => match check.of_base() {
                    Some(what) => {
                        let of_base = Values {
                            run: values.run,
                            what,
                        };
                        [values.of(one), of_base.of(other)].into_iter().collect()
                    }
                    None => values.pair([one, other]).map(Vec::from),
                },
                (_, cells) => cells.iter().map(|cell| values.of(cell)).collect(),
            };
            all.map_err(|why| self.lacks(member, &why))
        };
        self.members.iter().map(of_member).collect()
    }

    /// Why there is no figure, where a member has no values.
    fn lacks(&self, member: &Member<'_>, why: &str) -> String {
        if self.mean_over.is_empty() {
            return why.to_owned();
        }
        let axes: Vec<&str> = self.mean_over.iter().map(|axis| axis.name).collect();
        format!(
            "{why} ({}), so there is no geometric mean over {}",
            values(&self.mean_over, &member.0[..1]),
            axes.join(", ")
        )
    }

    /// What was published of it: what the rule says, else the figures that the plan has of its cells.
    pub(super) fn published(&self, check: &Check, run: &Run, what: &What) -> Option<f64> {
        let cells: Vec<&Cell> = self.members.iter().map(|member| member.0[0]).collect();
        if !check.published.is_of_plan() {
            return check.published.of(&cells);
        }
        let of_base = check.of_base().unwrap_or(what);
        let of_member = |member: &Member<'_>| {
            let quantities = std::iter::once(what).chain(std::iter::repeat(of_base));
            let all: Option<Vec<f64>> = member
                .0
                .iter()
                .zip(quantities)
                .map(|(cell, what)| evidence::published(run, cell, what))
                .collect();
            match (&check.judge, all?.as_slice()) {
                (Judge::Ratio { .. }, [a, b]) => Some(a / b),
                (Judge::Share { .. }, [with, without, base]) => {
                    Some((with - without) / (with - base))
                }
                _ => None,
            }
        };
        let all: Option<Vec<f64>> = self.members.iter().map(of_member).collect();
        match all?.as_slice() {
            [one] => Some(*one),
            several => stats::geometric_mean(several),
        }
    }
}

/// The values that cells have on some axes: `flows 2, 4, 8`.
fn values(axes: &[&'static Axis], cells: &[&Cell]) -> String {
    let of_axis = |axis: &&'static Axis| {
        let values = distinct(cells.iter().filter_map(|cell| (axis.show)(&cell.axes)));
        format!("{} {}", axis.name.replace('_', " "), values.join(", "))
    };
    axes.iter().map(of_axis).collect::<Vec<_>>().join(" · ")
}

/// A ratio to several is several figures; everything else is one.
fn members<'a>(check: &Check, (cell, others): &(&'a Cell, Vec<&'a Cell>)) -> Vec<Member<'a>> {
    let with = |others: &[&'a Cell]| Member([&[*cell], others].concat());
    match check.judge {
        Judge::Ratio { .. } => others.iter().map(|other| with(&[*other])).collect(),
        Judge::Share { .. } | Judge::Corrected { .. } => vec![with(others)],
        _ => vec![with(&[])],
    }
}

/// What each figure is called among these. Values that a mean is over are in it where they differ.
pub(super) fn names(groups: &[&Group<'_>], with_other: bool) -> Vec<String> {
    let cells: Vec<&Cell> = groups.iter().map(|group| group.cell()).collect();
    let means_differ = common_mean(groups).is_none();
    let name = |(group, own): (&&Group<'_>, String)| {
        let other = group.other_path().filter(|_| with_other);
        let mean = means_differ.then(|| group.mean_over());
        let words = other
            .map(|path| format!("against {path}"))
            .into_iter()
            .chain([own])
            .chain(mean);
        let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
        words.join(" · ")
    };
    groups.iter().zip(apart(&cells)).map(name).collect()
}

/// The values that the mean of all of them is over; `None` where they differ.
pub(super) fn common_mean(groups: &[&Group<'_>]) -> Option<String> {
    let mut all = groups.iter().map(|group| group.mean_over());
    let first = all.next().unwrap_or_default();
    all.all(|other| other == first).then_some(first)
}

/// The blocks that all of these have.
pub(super) fn shared_blocks(series: &[&Series]) -> Vec<u32> {
    let blocks = series
        .iter()
        .take(1)
        .flat_map(|first| first.keys().copied());
    let has_all = |block: &u32| series.iter().all(|one| one.contains_key(block));
    blocks.filter(has_all).collect()
}
