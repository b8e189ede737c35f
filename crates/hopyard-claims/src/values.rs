//! What the cells of a run show of a quantity.

use std::collections::BTreeSet;

use super::evidence::{self, Series};
use super::figure::Figure;
use super::profiles;
use super::settling;
use super::what::What;
use crate::assess::{self, last_attempts};
use crate::model::Cell;
use crate::store::Run;

/// A quantity in the cells of a run.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) run: &'a Run,
    pub(super) what: &'a What,
}

impl Values<'_> {
    /// Where the run has a cell.
    pub(super) fn place(&self, cell: &Cell) -> usize {
        let mut cells = self.run.header.cells.iter();
        let place = cells.position(|planned| planned.cell == *cell);
        place.unwrap_or_default()
    }

    /// Those of a cell by itself.
    ///
    /// # Errors
    /// There are none, and why.
    pub(super) fn of(&self, cell: &Cell) -> Result<Series, String> {
        evidence::series(self.run, self.place(cell), self.what)
    }

    /// Those of a cell and of what it is compared with, as `hopyard report` pairs them: round by round where both took turns.
    ///
    /// # Errors
    /// One of them has none, and why.
    pub(super) fn pair(&self, [one, other]: [&Cell; 2]) -> Result<[Series; 2], String> {
        let by_themselves = [self.of(one)?, self.of(other)?];
        let Some(quantity) = self.what.registered(one.load) else {
            return Ok(by_themselves);
        };
        let samples = last_attempts(&self.run.samples);
        let places = [self.place(one), self.place(other)];
        let both = assess::paired(&self.run.header, &samples, places, quantity);
        let side = |of: fn(&(f64, f64)) -> f64| -> Series {
            let values = both.iter().map(|(block, pair)| (*block, of(pair)));
            values.collect()
        };
        Ok([side(|pair| pair.0), side(|pair| pair.1)])
    }

    /// The share of a profile by block, with one sample of it in each window that has none; `None` for other quantities.
    pub(super) fn a_sample_at_least(&self, cell: &Cell) -> Option<Series> {
        let What::ProfileShare(names) = self.what else {
            return None;
        };
        let samples = evidence::counting(self.run, self.place(cell)).ok()?;
        let mut series = Series::new();
        for (sample, _) in samples {
            if let Some(share) = profiles::profile_share(self.run, sample, names, 1) {
                series.insert(sample.block, share);
            }
        }
        Some(series)
    }

    /// Whether it is a share of what was sent, which is not below 0.
    pub(super) fn is_share(&self) -> bool {
        matches!(self.what, What::Named(quantity) if quantity.is_share())
    }

    /// Blocks in which a cell was measured.
    pub(super) fn blocks(&self, cell: &Cell) -> BTreeSet<u32> {
        let samples = evidence::counting(self.run, self.place(cell)).unwrap_or_default();
        samples.iter().map(|(sample, _)| sample.block).collect()
    }

    /// Blocks in which the hypervisor disturbed the window of a cell.
    pub(super) fn disturbed(&self, cell: &Cell) -> BTreeSet<u32> {
        let samples = evidence::counting(self.run, self.place(cell)).unwrap_or_default();
        let disturbed = samples.into_iter().filter(|(_, m)| m.cpu.has_much_steal());
        disturbed.map(|(sample, _)| sample.block).collect()
    }

    /// A figure of which some windows show only what it is at least; `None` of all other quantities and cells.
    pub(super) fn at_least(&self, cell: &Cell) -> Option<Figure> {
        match self.what {
            What::SettlingTime => settling::at_least(self.run, self.place(cell)),
            _ => None,
        }
    }
}
