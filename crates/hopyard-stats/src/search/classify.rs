//! How the trials of one load classify it (RFC 9971, load classification and conditional throughput).

use super::{Goal, Trial};

/// The class of a load for a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It keeps to the goal, whatever the remaining trials of the duration sum would show.
    Lower,
    /// It does not, whatever those would show.
    Upper,
    /// More trials are needed.
    Undecided,
}

/// Durations of a load's trials, s, by their length and loss.
#[derive(Debug, Default)]
struct Sums {
    full_low: f64,
    full_high: f64,
    short_low: f64,
    short_high: f64,
}

impl Sums {
    fn of<'a>(goal: &Goal, trials: impl IntoIterator<Item = &'a Trial>) -> Self {
        let mut sums = Self::default();
        for trial in trials {
            let sum = match (goal.is_full(trial), trial.loss_ratio > goal.loss_ratio) {
                (true, false) => &mut sums.full_low,
                (true, true) => &mut sums.full_high,
                (false, false) => &mut sums.short_low,
                (false, true) => &mut sums.short_high,
            };
            *sum += trial.duration_s;
        }
        sums
    }
}

impl Goal {
    /// Is the trial long enough for a lower bound?
    pub(super) fn is_full(&self, trial: &Trial) -> bool {
        // Durations were rounded to ns on the way.
        trial.duration_s >= self.final_trial_s * (1.0 - 1e-6)
    }
}

/// The class of a load by all its trials.
///
/// Short trials never make a lower bound. Their high losses count against the load unless their low losses compensate.
#[must_use]
pub(crate) fn classify<'a>(goal: &Goal, trials: impl IntoIterator<Item = &'a Trial>) -> Class {
    let sums = Sums::of(goal, trials);
    let balance = sums.short_low * goal.exceed_ratio / (1.0 - goal.exceed_ratio);
    let high = sums.full_high + (sums.short_high - balance).max(0.0);
    let whole = (sums.full_low + high).max(goal.duration_sum_s);
    let allowed = whole * goal.exceed_ratio;
    let at_worst = whole - sums.full_low;
    // Rounding must not decide if a share is met exactly.
    let within = |sum: f64| sum <= allowed + 1e-9 * whole;
    match (within(at_worst), within(high)) {
        (true, _) => Class::Lower,
        (false, false) => Class::Upper,
        (false, true) => Class::Undecided,
    }
}

/// What arrives per second at a load in its worst full-length trial, after leaving out the share of worst trials that
/// the goal's exceed ratio allows. Trials that are missing in the duration sum count as losing everything.
#[must_use]
pub(crate) fn conditional_throughput<'a>(
    goal: &Goal,
    load_per_s: f64,
    trials: impl IntoIterator<Item = &'a Trial>,
) -> f64 {
    let mut full: Vec<&Trial> = trials.into_iter().filter(|t| goal.is_full(t)).collect();
    full.sort_by(|a, b| a.loss_ratio.total_cmp(&b.loss_ratio));
    let measured: f64 = full.iter().map(|trial| trial.duration_s).sum();
    let mut remaining = measured.max(goal.duration_sum_s) * (1.0 - goal.exceed_ratio);
    let mut loss_ratio = 1.0;
    for trial in full {
        loss_ratio = trial.loss_ratio;
        remaining -= trial.duration_s;
        if remaining <= 1e-9 * measured {
            return load_per_s * (1.0 - loss_ratio);
        }
    }
    // Too few trials for the share asked for.
    if remaining > 0.0 {
        loss_ratio = 1.0;
    }
    load_per_s * (1.0 - loss_ratio)
}
