//! The gate: is any cell shown to be worse by more than so much?
//!
//! For each comparison a one-sided test, null hypothesis: the loss is at most what is let through; over all
//! of them Benjamini and Hochberg. Where no cell is worse by more than that, every rejection is a false one, and
//! the false discovery rate is the chance of any: the gate fails by mistake with a probability of at most
//! 1 − confidence, however many cells there are. Where one cell is worse, the gate is right to fail.

use super::Entry;
use crate::model::Gate;
use crate::stats;

/// What the gate finds, in the order of the table.
pub(super) struct Ruling {
    loss: f64,
    /// Does it trip the gate?
    pub(super) tripped: Vec<bool>,
    /// The smallest loss that would, four times out of five; `None` where none would.
    pub(super) catches: Vec<Option<f64>>,
    blind: usize,
}

impl Ruling {
    /// `smallest_detectable` as [`stats::judge`] states them: what is larger than the loss could not be
    /// told from no loss at all.
    pub(super) fn of(
        entries: &[Entry],
        smallest_detectable: impl Iterator<Item = f64>,
        loss: f64,
        confidence: f64,
    ) -> Self {
        let p: Vec<f64> = entries.iter().map(|e| p_worse(e, loss)).collect();
        let table_confidence = 1.0 - (1.0 - confidence) / entries.len().max(1) as f64;
        Self {
            loss,
            tripped: stats::benjamini_hochberg(&p, 1.0 - confidence),
            catches: entries
                .iter()
                .map(|e| catches(e, loss, table_confidence))
                .collect(),
            blind: smallest_detectable.filter(|s| *s > loss).count(),
        }
    }

    pub(super) fn report(&self) -> Gate {
        let tripped = self.tripped.iter().filter(|t| **t).count();
        Gate {
            fail_on_ratio: self.loss,
            failed: tripped > 0,
            comparisons: self.tripped.len(),
            tripped,
            blind: self.blind,
        }
    }
}

/// A rate that is lower by the loss, or a cost that is higher by it.
fn bound(entry: &Entry, loss: f64) -> f64 {
    match entry.quantity.more_is_better() {
        Some(true) => 1.0 - loss,
        _ => 1.0 + loss,
    }
}

fn p_worse(entry: &Entry, loss: f64) -> f64 {
    let bound = bound(entry, loss);
    match entry.quantity.more_is_better() {
        Some(true) => entry.comparison.p_below(bound),
        Some(false) => entry.comparison.p_above(bound),
        None => 1.0,
    }
}

fn catches(entry: &Entry, loss: f64, table_confidence: f64) -> Option<f64> {
    let comparison = &entry.comparison;
    let df = comparison.df.floor().max(1.0);
    let beyond = stats::one_sided_detectable(comparison.se_log, df, table_confidence, stats::POWER);
    let bound = bound(entry, loss);
    let caught = if entry.quantity.more_is_better()? {
        1.0 - bound / beyond
    } else {
        bound * beyond - 1.0
    };
    beyond.is_finite().then_some(caught)
}
