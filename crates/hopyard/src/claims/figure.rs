//! Figures that rules judge, each with an interval at any confidence.

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
    pub(super) fn untested(why: String) -> Self {
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
