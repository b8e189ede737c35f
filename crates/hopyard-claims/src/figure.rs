//! Figures that rules judge, each with an interval at any confidence.

use crate::model::Cell;
use crate::stats::{self, Estimate, Samples};

/// Mean and standard deviation of blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) sd: f64,
}

/// A figure in the making.
#[derive(Debug, Clone)]
pub(super) enum Figure {
    /// a/b, paired within blocks.
    Ratio { a: Vec<f64>, b: Vec<f64> },
    /// Σa/Σb over blocks.
    RatioOfSums { a: Vec<f64>, b: Vec<f64> },
    /// By itself.
    Level(Vec<f64>),
    /// By itself, of a share: one window may show a little less than none, and all of them together do not.
    Share(Vec<f64>),
    /// By itself, of what should not be there: what each window shows, and whether the hypervisor disturbed the window.
    Windows {
        values: Vec<f64>,
        disturbed: Vec<bool>,
    },
    /// What it is at least: no upper end of it is known, and why.
    AtLeast { of: Box<Figure>, why: String },
    /// Known with its interval.
    Known(Estimate),
    /// Not known, and why.
    Unknown(String),
    /// A figure of the sums of several cells over blocks; none where it would be of nothing.
    OfSums {
        sides: Vec<Vec<f64>>,
        of: fn(&[f64]) -> Option<f64>,
    },
}

impl Figure {
    /// The figure with its interval; `None` where there are too few blocks, or a ratio is to nothing.
    pub(super) fn interval(&self, confidence: f64) -> Option<Estimate> {
        match self {
            Self::Ratio { a, b } if a.iter().chain(b).any(|v| *v <= 0.0) => {
                stats::ratio_of_sums(a, b, confidence)
            }
            Self::RatioOfSums { a, b } => stats::ratio_of_sums(a, b, confidence),
            Self::Ratio { a, b } => stats::paired_ratio(a, b, confidence),
            Self::Known(estimate) => estimate.at(confidence),
            Self::Unknown(_) => None,
            Self::AtLeast { of, .. } => of.interval(confidence),
            Self::Level(values) | Self::Windows { values, .. } => {
                stats::mean_interval(&Samples::new(values).ok()?, confidence)
            }
            Self::Share(values) => {
                let mean = stats::mean_interval(&Samples::new(values).ok()?, confidence)?;
                Some(mean.not_below_zero())
            }
            Self::OfSums { sides, of } => {
                stats::jackknife(sides.first()?.len(), confidence, |out| {
                    let sum = |side: &Vec<f64>| -> f64 {
                        let kept = side.iter().enumerate().filter(|(i, _)| Some(*i) != out);
                        kept.map(|(_, v)| v).sum()
                    };
                    of(&sides.iter().map(sum).collect::<Vec<_>>())
                })
            }
        }
    }

    /// Mean and spread of most blocks, if at most a quarter of them lie apart: one or two disturbed blocks do not change these. They are
    /// for planning; nothing is judged by them. `None` for figures that single blocks have no value of, and where most have the same value.
    pub(super) fn of_most_blocks(&self) -> Option<Spread> {
        /// The median distance from the middle, over the standard deviation, of normal values.
        const MEDIAN_OVER_SD: f64 = 0.6745;
        /// Standard deviations from the middle beyond which a block lies apart.
        const APART: f64 = 3.0;
        let spread = |values: &[f64]| {
            let mean = stats::hodges_lehmann(values)?;
            let distances: Vec<f64> = values.iter().map(|value| (value - mean).abs()).collect();
            let sd = stats::median(distances.clone())? / MEDIAN_OVER_SD;
            let apart = distances.iter().filter(|one| **one > APART * sd).count();
            (sd > 0.0 && 4 * apart <= values.len()).then_some(Spread { mean, sd })
        };
        match self {
            Self::Ratio { a, b } if a.iter().chain(b).all(|value| *value > 0.0) => {
                let logs = a.iter().zip(b).map(|(a, b)| (a / b).ln());
                let of_logs = spread(&logs.collect::<Vec<_>>())?;
                let mean = of_logs.mean.exp();
                Some(Spread {
                    mean,
                    sd: mean * of_logs.sd,
                })
            }
            Self::Level(values) | Self::Share(values) => spread(values),
            _ => None,
        }
    }

    /// Why it has no interval, where it has none.
    pub(super) fn unknown(&self) -> String {
        let (blocks, otherwise) = match self {
            Self::Unknown(why) => return why.clone(),
            Self::Ratio { a, b } | Self::RatioOfSums { a, b } => (a.len(), nothing_seen(a, b)),
            Self::OfSums { sides, .. } => (
                sides.first().map_or(0, Vec::len),
                "there is nothing to compare it with".to_owned(),
            ),
            Self::AtLeast { of, .. } => return of.unknown(),
            Self::Level(values) | Self::Share(values) | Self::Windows { values, .. } => {
                (values.len(), "it is no number".to_owned())
            }
            Self::Known(estimate) => (estimate.n, "it is no number".to_owned()),
        };
        match blocks {
            0 => "no block has it".to_owned(),
            1 => "one block has it, and an interval takes two".to_owned(),
            _ => otherwise,
        }
    }

    /// What an interval does not say of it.
    pub(super) fn remark(&self) -> Option<String> {
        match self {
            Self::Windows { values, .. } => {
                let above = values.iter().filter(|value| **value > 0.0).count();
                (above > 0).then(|| format!("(above 0 in {above} of {} windows)", values.len()))
            }
            Self::AtLeast { why, .. } => Some(format!("(at least: {why})")),
            _ => None,
        }
    }

    /// (with − without) / (with − base). Without anything above the base there is nothing to have a share of.
    pub(super) fn share(sides: Vec<Vec<f64>>) -> Self {
        Self::OfSums {
            sides,
            of: |sums| match sums {
                &[with, without, base] if with > base => Some((with - without) / (with - base)),
                _ => None,
            },
        }
    }

    /// (cell − (the same elsewhere − its base elsewhere)) / base: in the order cell, base, elsewhere, its base.
    pub(super) fn corrected(sides: Vec<Vec<f64>>) -> Self {
        Self::OfSums {
            sides,
            of: |sums| match sums {
                &[cell, base, less, base_less] if base > 0.0 => {
                    Some((cell - (less - base_less)) / base)
                }
                _ => None,
            },
        }
    }
}

/// In how many blocks nothing was seen of a ratio's two sides. It takes both in two blocks at least.
fn nothing_seen(a: &[f64], b: &[f64]) -> String {
    let none = |side: &[f64]| side.iter().filter(|value| **value <= 0.0).count();
    let (own, base, all) = (none(a), none(b), a.len());
    match base >= own {
        true => {
            format!("nothing of it was seen in {base} of {all} blocks of what it is compared with")
        }
        false => format!("nothing of it was seen in {own} of {all} blocks"),
    }
}

/// A figure at one place.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// What sets it apart from the other points.
    pub(super) at: String,
    /// The cells that it is of; none where it was not measured in a run.
    pub(super) cells: Vec<Cell>,
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
    /// How many figures the rule is about, as far as that is known: those included that are missing.
    pub(super) figures: usize,
    /// What could not be tested, and why.
    pub(super) untested: Vec<String>,
    /// It is known to fail before any interval is looked at, and why.
    pub(super) refuted: Option<String>,
    /// It cannot hold, wherever its points lie: something else that it takes is not shown.
    pub(super) unshown: Option<String>,
    /// What is asked of one end was measured of both and all between: ratios are nearer to 1 than those of that end.
    pub(super) is_diluted: bool,
}

impl Gathered {
    pub(super) fn untested(why: String) -> Self {
        Self {
            untested: vec![why],
            ..Self::default()
        }
    }

    /// Takes over the points of another place, which each of them says.
    pub(super) fn take(&mut self, other: Self, place: &str) {
        if self.points.is_empty() {
            self.what = other.what;
            self.quantity = other.quantity;
            self.confidence = other.confidence;
        }
        self.figures += other.figures;
        self.is_diluted |= other.is_diluted;
        self.refuted = self.refuted.take().or(other.refuted);
        self.unshown = self.unshown.take().or(other.unshown);
        self.points
            .extend(other.points.into_iter().map(|point| Point {
                at: format!("{} {place}", point.at).trim().to_owned(),
                // They are of another run.
                cells: Vec::new(),
                ..point
            }));
        for why in other.untested {
            self.note(why);
        }
    }

    pub(super) fn note(&mut self, why: String) {
        if !self.untested.contains(&why) {
            self.untested.push(why);
        }
    }
}
