//! Published figures in the layout of the report: one axis down, the paths or the axis of the base across, each with
//! the published and the measured figure; and a second grid of the ratios to the base. Further varied axes have grids
//! for each of their values.

use std::cmp::Reverse;

use super::super::document::{Block, Cell, Column, Row, Table};
use super::super::group::phrase;
use super::super::number::ABSENT;
use super::super::plot::Gallery;
use super::{Comparison, Pair, pictures, whence};
use crate::model::{Base, PublishedFigure, distinct};
use crate::plain;

/// The horizontal dimension.
#[derive(Clone, Copy)]
enum Across<'a> {
    Paths,
    Axis(&'a str),
}

impl Across<'_> {
    fn of(self, figure: &PublishedFigure) -> String {
        match self {
            Self::Paths => plain::line(&figure.path),
            Self::Axis(axis) => phrase(axis, &plain::line(&figure.set[axis])),
        }
    }
}

/// Assignment of dimensions.
pub(super) struct Plane<'a> {
    /// The axis with the most values.
    down: &'a str,
    across: Across<'a>,
    /// Each combination of their values has grids of its own.
    slices: Vec<&'a str>,
    /// Each load and peer also has grids of its own.
    several_loads: bool,
}

impl<'a> Plane<'a> {
    /// For figures on several paths, or at several values of the axis of the base, that were varied in at least one
    /// more axis.
    pub(super) fn of(table: &Comparison<'a>) -> Option<Self> {
        let figures = || table.pairs.iter().map(|pair| pair.then);
        let axes = figures().flat_map(|f| f.set.keys());
        let count = distinct(axes).len();
        if !figures().all(|f| f.set.len() == count) {
            return None;
        }
        let mut axes = table.varied.clone();
        let across = if distinct(figures().map(|f| &f.path)).len() > 1 {
            Across::Paths
        } else {
            let base = table.base.and_then(|base| Base::parse(base).ok())?;
            let Base::Value(axis, _) = base else {
                return None;
            };
            let at = axes.iter().position(|name| *name == axis.name)?;
            Across::Axis(axes.remove(at))
        };
        let values = |axis: &&str| distinct(figures().map(|f| f.set.get(*axis))).len();
        axes.sort_by_key(|axis| Reverse(values(axis)));
        let (down, slices) = axes.split_first()?;
        Some(Self {
            down,
            across,
            slices: slices.to_vec(),
            several_loads: distinct(figures().map(whence)).len() > 1,
        })
    }

    /// The text that distinguishes a slice from the others; empty if there is only one.
    fn slice(&self, figure: &PublishedFigure) -> String {
        let load = self.several_loads.then(|| whence(figure));
        let values = self.slices.iter();
        let values = values.map(|axis| phrase(axis, &plain::line(&figure.set[*axis])));
        let words: Vec<_> = load.into_iter().chain(values).collect();
        words.join(" · ")
    }

    pub(super) fn blocks(&self, table: &Comparison<'_>, gallery: &Gallery<'_>) -> Vec<Block> {
        let mut blocks = Vec::new();
        for slice in self.slices_of(table) {
            if !slice.words.is_empty() {
                blocks.push(Block::Subheading(slice.words));
            }
            blocks.extend(self.grids(table, &slice.pairs));
            let across = |figure: &PublishedFigure| self.across.of(figure);
            blocks.extend(pictures::curves(
                table,
                &slice.pairs,
                (self.down, &across),
                gallery,
            ));
            if matches!(self.across, Across::Axis(_)) {
                blocks.push(Block::Notes(vec![self.called(slice.pairs)]));
            }
        }
        // Paths have the same name everywhere.
        if matches!(self.across, Across::Paths) {
            blocks.push(Block::Notes(vec![self.called(&table.pairs)]));
        }
        blocks
    }

    fn slices_of<'t, 'f>(&self, table: &'t Comparison<'f>) -> Vec<Slice<'t, 'f>> {
        let words = |pair: &Pair<'_>| self.slice(pair.then);
        let slices = distinct(table.pairs.iter().map(words)).into_iter();
        slices
            .map(|slice| Slice {
                pairs: table.pairs.iter().filter(|p| words(p) == slice).collect(),
                words: slice,
            })
            .collect()
    }

    /// The figures, and their ratios to the base.
    fn grids(&self, table: &Comparison<'_>, pairs: &[&Pair<'_>]) -> Vec<Block> {
        let what = plain::line(&table.published.what);
        let here = table.scale.unit;
        let units = if what == here {
            what
        } else {
            format!("{what}, here {here}")
        };
        let mut blocks = vec![Block::Table(
            self.grid(pairs, &units, |pair| [pair.then(), pair.now()]),
        )];
        if pairs.iter().any(|pair| pair.base_then.is_some()) {
            blocks.push(Block::Table(self.grid(pairs, &table.versus(), |pair| {
                [pair.ratio_then(), pair.ratio_now()]
            })));
        }
        blocks
    }

    fn grid(&self, pairs: &[&Pair<'_>], what: &str, of: impl Fn(&Pair<'_>) -> [Cell; 2]) -> Table {
        let across = distinct(pairs.iter().map(|pair| self.across.of(pair.then)));
        let mut columns = vec![Column::right(&[what, self.down])];
        for value in &across {
            columns.push(Column::right(&[value, "then"]));
            columns.push(Column::right(&["here"]).following());
        }
        let rows = distinct(pairs.iter().map(|pair| &pair.then.set[self.down]));
        let rows = rows.into_iter().map(|value| {
            let cells = across.iter().flat_map(|column| {
                let here = |pair: &&&Pair<'_>| {
                    self.across.of(pair.then) == *column && pair.then.set[self.down] == *value
                };
                match pairs.iter().find(here) {
                    Some(pair) => of(pair),
                    None => [Cell::lone(ABSENT), Cell::lone(ABSENT)],
                }
            });
            Row::Cells(
                std::iter::once(Cell::lone(plain::line(value)))
                    .chain(cells)
                    .collect(),
            )
        });
        Table {
            rows: rows.collect(),
            columns,
            keys: 1,
        }
    }

    /// The published name of each path, or of each value across.
    fn called<'p>(&self, pairs: impl IntoIterator<Item = &'p Pair<'p>>) -> String {
        let names = pairs.into_iter().map(|pair| {
            let called = plain::line(&pair.then.called);
            format!("{}: {called}", self.across.of(pair.then))
        });
        format!("Then called: {}.", distinct(names).join("; "))
    }
}

/// Figures that share a grid.
struct Slice<'t, 'f> {
    words: String,
    pairs: Vec<&'t Pair<'f>>,
}
