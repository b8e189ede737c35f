//! The gate: whether any cell is shown to be worse by more than the allowed loss.
//!
//! Each comparison has a one-sided test with the null hypothesis that the loss is at most the allowed one, and
//! Benjamini and Hochberg correct over all of them. If no cell is worse by more than that, every rejection is false,
//! and the false discovery rate is the chance of any rejection. So the gate fails by mistake with a probability of at
//! most 1 − confidence, however many cells there are. If one cell is worse, the gate is right to fail.

use std::collections::BTreeSet;

use super::quantities::Quantity;
use crate::model::{Blocks, Gate};
use crate::stats::{self, Comparison};
use crate::units::float;

/// A comparison that the gate checks: the new over the old.
#[derive(Clone, Copy)]
pub(super) struct Guarded<'a> {
    pub(super) quantity: &'static Quantity,
    pub(super) comparison: &'a Comparison,
}

/// Findings of the gate, in the order of the table.
pub(super) struct Ruling {
    loss: f64,
    /// Whether the comparison fails the gate.
    pub(super) tripped: Vec<bool>,
    /// The smallest loss that would fail it four times out of five; `None` if none would.
    pub(super) catches: Vec<Option<f64>>,
    /// Whether it could not have detected such a loss.
    pub(super) blind: Vec<bool>,
    /// Entries whose figures are doubtful.
    doubted: BTreeSet<usize>,
    blocks_needed: Option<u32>,
}

impl Ruling {
    /// `smallest_detectable` are those of [`stats::judge`]. The gate is blind to a comparison that could not have shown the loss (unless it
    /// shows that there is no such loss), and to one that saw a larger loss and does not show it.
    pub(super) fn of(
        entries: &[Guarded<'_>],
        smallest_detectable: &[f64],
        loss: f64,
        confidence: f64,
    ) -> Self {
        let p: Vec<f64> = entries.iter().map(|e| p_worse(e, loss)).collect();
        let tripped = stats::benjamini_hochberg(&p, 1.0 - confidence);
        let is_blind = |((entry, detectable), tripped): ((&Guarded<'_>, &f64), &bool)| {
            let p = p_not_worse(entry, loss);
            (*detectable > loss && p > 1.0 - confidence) || (p > 0.5 && !tripped)
        };
        let blind: Vec<bool> = entries
            .iter()
            .zip(smallest_detectable)
            .zip(&tripped)
            .map(is_blind)
            .collect();
        let seen_badly = entries.iter().zip(smallest_detectable).zip(&blind);
        let blocks_needed = blocks_needed(
            seen_badly
                .filter(|(_, blind)| **blind)
                .map(|((entry, detectable), _)| (entry, *detectable)),
            loss,
        );
        let table_confidence = 1.0 - (1.0 - confidence) / entries.len().max(1) as f64;
        Self {
            loss,
            tripped,
            catches: entries
                .iter()
                .map(|e| catches(e, loss, table_confidence))
                .collect(),
            blind,
            doubted: BTreeSet::new(),
            blocks_needed,
        }
    }

    /// Marks an entry whose figures are doubtful. The gate does not pass with it; a loss that it shows still fails the gate.
    pub(super) fn doubt(&mut self, entry: usize) {
        self.doubted.insert(entry);
        self.blind[entry] = true;
        self.catches[entry] = None;
        // More blocks would not help.
        self.blocks_needed = None;
    }

    /// The gate. It is blind to so many comparisons besides: those that are `missing` could not be made, and others have no verdict, of
    /// too few blocks or runs.
    pub(super) fn report(&self, missing: usize, too_few: usize) -> Gate {
        let count = |all: &[bool]| all.iter().filter(|is| **is).count();
        let unseen = missing + too_few;
        let (tripped, blind) = (count(&self.tripped), count(&self.blind) + unseen);
        let comparisons = self.tripped.len() + unseen;
        Gate {
            fail_on_ratio: self.loss,
            failed: tripped > 0,
            comparisons,
            tripped,
            blind,
            incomplete: self.doubted.len() + missing,
            undecided: tripped == 0 && (blind > 0 || comparisons == 0),
            // How many blocks would give a figure that is missing is not known.
            blocks_needed: self.blocks_needed.filter(|_| unseen == 0),
            runs_needed: None,
        }
    }
}

/// A rate that is lower by the loss, or a cost that is higher by it.
fn bound(entry: &Guarded<'_>, loss: f64) -> f64 {
    match entry.quantity.more_is_better() {
        Some(true) => 1.0 - loss,
        _ => 1.0 + loss,
    }
}

fn p_worse(entry: &Guarded<'_>, loss: f64) -> f64 {
    let bound = bound(entry, loss);
    match entry.quantity.more_is_better() {
        Some(true) => entry.comparison.p_below(bound),
        Some(false) => entry.comparison.p_above(bound),
        None => 1.0,
    }
}

/// The other side of the same test: small if the loss is shown to be less than the allowed one.
fn p_not_worse(entry: &Guarded<'_>, loss: f64) -> f64 {
    let bound = bound(entry, loss);
    match entry.quantity.more_is_better() {
        Some(true) => entry.comparison.p_above(bound),
        Some(false) => entry.comparison.p_below(bound),
        None => 1.0,
    }
}

/// How many blocks the gate needs to detect the loss in all of these, by the square law of standard errors. `None` if
/// there are none, if this cannot be estimated, or if no run can have as many.
fn blocks_needed<'a>(
    blind: impl Iterator<Item = (&'a Guarded<'a>, f64)>,
    loss: f64,
) -> Option<u32> {
    let blocks = |(entry, detectable): (&Guarded<'_>, f64)| {
        let blocks = float(entry.comparison.ratio.n as u64);
        // Where more of a loss was seen than is allowed, nobody knows how much more there is.
        (detectable > loss).then(|| (detectable.ln_1p() / loss.ln_1p()).powi(2) * blocks)
    };
    let all: Option<Vec<f64>> = blind.map(blocks).collect();
    let most = all?.into_iter().reduce(f64::max)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and looked at before"
    )]
    let whole = most.ceil() as u32;
    (most <= f64::from(Blocks::MOST)).then_some(whole)
}

fn catches(entry: &Guarded<'_>, loss: f64, table_confidence: f64) -> Option<f64> {
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
