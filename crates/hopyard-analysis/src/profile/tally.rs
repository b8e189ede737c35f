//! The samples of a window by subsystem and function.

use std::collections::BTreeMap;

use crate::model::ProfileWindow;
use crate::subsystems::{Place, UNCLASSIFIED, place, plain_name, subsystems};
use crate::units::{float, seconds};

/// Every subsystem, unclassified functions last.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let known = subsystems().iter().map(|s| s.name.as_str());
    known.chain([UNCLASSIFIED])
}

/// Counted samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tally {
    /// By index into [`names`].
    counts: Vec<u64>,
    functions: BTreeMap<(usize, String), u64>,
    pub(super) idle: u64,
    pub(super) elsewhere: u64,
    pub(super) lost: u64,
    pub(super) span_s: f64,
    pub(super) frequency_hz: u64,
}

impl Tally {
    pub(super) fn of(window: &ProfileWindow) -> Self {
        let names: Vec<&str> = names().collect();
        let mut tally = Self {
            counts: vec![0; names.len()],
            elsewhere: window.elsewhere,
            lost: window.lost,
            span_s: seconds(window.span_ns),
            frequency_hz: window.frequency_hz,
            ..Self::default()
        };
        for (stack, samples) in window.stacks() {
            match place(&stack) {
                Place::Idle => tally.idle = tally.idle.saturating_add(samples),
                Place::Busy {
                    subsystem,
                    function,
                } => {
                    let at = names.iter().position(|name| *name == subsystem);
                    let at = at.unwrap_or(names.len() - 1);
                    tally.counts[at] = tally.counts[at].saturating_add(samples);
                    let seen = tally
                        .functions
                        .entry((at, plain_name(function).to_owned()))
                        .or_default();
                    *seen = seen.saturating_add(samples);
                }
            }
        }
        tally
    }

    /// All windows combined.
    pub(super) fn pooled<'a>(windows: impl Iterator<Item = &'a Self>) -> Self {
        let mut all = Self {
            counts: vec![0; names().count()],
            ..Self::default()
        };
        for window in windows {
            for (sum, count) in all.counts.iter_mut().zip(&window.counts) {
                *sum = sum.saturating_add(*count);
            }
            for (key, count) in &window.functions {
                let sum = all.functions.entry(key.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
            all.idle = all.idle.saturating_add(window.idle);
            all.elsewhere = all.elsewhere.saturating_add(window.elsewhere);
            all.lost = all.lost.saturating_add(window.lost);
        }
        all
    }

    /// Samples of busy CPUs.
    pub(super) fn busy(&self) -> u64 {
        self.counts.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Samples of a subsystem.
    pub(super) fn count(&self, place: usize) -> u64 {
        self.counts.get(place).copied().unwrap_or(0)
    }

    /// Functions of a subsystem with their samples.
    pub(super) fn functions(&self, place: usize) -> impl Iterator<Item = (&str, u64)> {
        self.functions
            .iter()
            .filter(move |((at, _), _)| *at == place)
            .map(|((_, name), count)| (name.as_str(), *count))
    }

    /// Shares of the busy samples; `None` if there are none.
    pub(super) fn shares(&self) -> Option<Vec<f64>> {
        let busy = float(self.busy());
        (busy > 0.0).then(|| self.counts.iter().map(|n| float(*n) / busy).collect())
    }
}
