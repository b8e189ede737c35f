//! Published figures in the layout of the report: an axis down, the paths across, each then and now; and a
//! second grid of what each path is to the base.

use std::cmp::Reverse;

use super::super::document::{Block, Cell, Column, Row, Table, tame};
use super::super::group::{distinct, phrase};
use super::super::number::ABSENT;
use super::{Comparison, Pair};

/// The axis with more values goes down; the other one has grids for each of its values.
pub(super) struct Plane<'a> {
    down: &'a str,
    slices: Option<&'a str>,
}

impl<'a> Plane<'a> {
    /// Figures of one load on several paths that were varied in one axis or two.
    pub(super) fn of(table: &Comparison<'a>) -> Option<Self> {
        let figures = || table.pairs.iter().map(|pair| pair.then);
        let several_paths = distinct(figures().map(|f| &f.path)).len() > 1;
        let one_load = distinct(figures().map(|f| (f.load, f.peer))).len() == 1;
        let same_axes = figures().all(|f| f.set.len() == table.varied.len());
        if !(several_paths && one_load && same_axes) {
            return None;
        }
        let values = |axis: &&str| distinct(figures().map(|f| f.set.get(*axis))).len();
        let mut axes = table.varied.clone();
        axes.sort_by_key(|axis| Reverse(values(axis)));
        match axes[..] {
            [down] => Some(Self { down, slices: None }),
            [down, slices] => Some(Self {
                down,
                slices: Some(slices),
            }),
            _ => None,
        }
    }

    pub(super) fn blocks(&self, table: &Comparison<'_>) -> Vec<Block> {
        let mut blocks = Vec::new();
        let of = |pair: &Pair<'_>| self.slices.map(|axis| pair.then.set[axis].clone());
        for slice in distinct(table.pairs.iter().map(of)) {
            let pairs: Vec<&Pair<'_>> = table.pairs.iter().filter(|p| of(p) == slice).collect();
            if let (Some(axis), Some(value)) = (self.slices, &slice) {
                blocks.push(Block::Heading(phrase(axis, &tame(value))));
            }
            let what = tame(&table.published.what);
            let here = table.scale.unit;
            let units = if what == here {
                what
            } else {
                format!("{what}, here {here}")
            };
            blocks.push(Block::Table(
                self.grid(&pairs, &units, |pair| [pair.then(), pair.now()]),
            ));
            if table.pairs.iter().any(|pair| pair.base_then.is_some()) {
                blocks.push(Block::Table(self.grid(&pairs, &table.versus(), |pair| {
                    [pair.ratio_then(), pair.ratio_now()]
                })));
            }
        }
        blocks.push(Block::Notes(vec![called(table)]));
        blocks
    }

    fn grid(&self, pairs: &[&Pair<'_>], what: &str, of: impl Fn(&Pair<'_>) -> [Cell; 2]) -> Table {
        let paths = distinct(pairs.iter().map(|pair| &pair.then.path));
        let mut columns = vec![Column::right(&[what, self.down])];
        for path in &paths {
            columns.push(Column::right(&[&tame(path), "then"]));
            columns.push(Column::right(&["here"]).following());
        }
        let rows = distinct(pairs.iter().map(|pair| &pair.then.set[self.down]));
        let rows = rows.into_iter().map(|value| {
            let cells = paths.iter().flat_map(|path| {
                let here = |pair: &&&Pair<'_>| {
                    pair.then.path == **path && pair.then.set[self.down] == *value
                };
                match pairs.iter().find(here) {
                    Some(pair) => of(pair),
                    None => [Cell::lone(ABSENT), Cell::lone(ABSENT)],
                }
            });
            Row::Cells(
                std::iter::once(Cell::lone(tame(value)))
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
}

/// What each path was called then.
fn called(table: &Comparison<'_>) -> String {
    let names = table.pairs.iter().map(|pair| {
        let (path, called) = (tame(&pair.then.path), tame(&pair.then.called));
        format!("{path}: {called}")
    });
    format!("Then called: {}.", distinct(names).join("; "))
}
