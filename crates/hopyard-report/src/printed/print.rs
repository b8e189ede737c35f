//! A figure in print, and whether what is measured here is the same.

use crate::document::{Cell, Part, Tone};
use crate::number::{rough, significant};
use crate::stats::Estimate;

/// How far off a figure may be that is printed as `about`.
const ABOUT: f64 = 0.1;

/// What stands at one place of a printed table.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Print {
    /// Nothing: the table has no such place.
    Blank,
    /// That it was not measured then, as it was printed.
    Unknown(String),
    /// Words.
    Words(String),
    /// `85.00` or `85.00 ±0.38`.
    Figure {
        text: String,
        value: f64,
        half_width: Option<f64>,
    },
    /// `10 to 15` or `about 45`.
    Range { text: String, low: f64, high: f64 },
}

/// What a comparison with print shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    Same,
    Different,
    /// Neither is shown.
    Open,
    /// Too few blocks to say anything.
    Nothing,
}

/// A verdict on a cell: what it shows, and what is measured here over what was printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Compared {
    pub(super) says: Says,
    pub(super) ratio: Option<f64>,
}

/// What comparisons have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Difference below which two figures are the same, as a share.
    pub(super) margin: f64,
    /// Are there enough blocks for verdicts?
    pub(super) decides: bool,
}

impl Print {
    pub(super) fn of(text: &str) -> Self {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        if text.is_empty() {
            return Self::Blank;
        }
        if let Some(value) = text.strip_prefix("about ").and_then(number) {
            return Self::Range {
                text: text.to_owned(),
                low: value * (1.0 - ABOUT),
                high: value * (1.0 + ABOUT),
            };
        }
        let ends = text.split_once(" to ");
        if let Some((low, high)) = ends.and_then(|(low, high)| number(low).zip(number(high))) {
            let text = text.to_owned();
            return Self::Range { text, low, high };
        }
        let (value, half_width) = match text.split_once(" ±") {
            Some((value, half)) => (number(value), number(half)),
            None => (number(text), None),
        };
        match value {
            Some(value) => Self::Figure {
                text: text.to_owned(),
                value,
                half_width,
            },
            None => Self::Words(text.to_owned()),
        }
    }

    /// `-1` is no figure where it stands for none.
    pub(super) fn is_unknown_if(&mut self, unknown: &str) {
        if matches!(self, Self::Figure { text, .. } if text == unknown) {
            *self = Self::Unknown(unknown.to_owned());
        }
    }

    /// Lined up with the figures above and below.
    pub(super) fn cell(&self) -> Cell {
        match self {
            Self::Blank => Cell::lone(""),
            Self::Unknown(text) | Self::Words(text) | Self::Range { text, .. } => Cell::lone(text),
            Self::Figure { text, .. } => {
                let mut parts = text.split(' ');
                let value = parts.next().unwrap_or_default();
                Cell(vec![
                    Part::Point(value.to_owned()),
                    Part::Right(parts.next().unwrap_or_default().to_owned()),
                ])
            }
        }
    }

    /// This figure over another one, with the half-width that both give it.
    pub(super) fn over(&self, base: &Self) -> Option<Self> {
        let (own, other) = (self.parts()?, base.parts()?);
        let value = own.0 / other.0;
        if !value.is_finite() {
            return None;
        }
        let shares = own.1.zip(other.1);
        let half_width = shares.map(|(a, b)| value * (a / own.0).hypot(b / other.0));
        let half = half_width.map_or_else(String::new, |half| format!(" ±{}", rough(half)));
        Some(Self::Figure {
            text: format!("{}×{half}", significant(value)),
            value,
            half_width,
        })
    }

    fn parts(&self) -> Option<(f64, Option<f64>)> {
        match self {
            Self::Figure {
                value, half_width, ..
            } => Some((*value, *half_width)),
            _ => None,
        }
    }

    /// What a measured figure shows beside this one; none where there is nothing to compare.
    pub(super) fn compared(&self, here: &Estimate, rules: Rules) -> Option<Compared> {
        match self {
            Self::Blank | Self::Unknown(_) | Self::Words(_) => None,
            Self::Figure {
                value, half_width, ..
            } => {
                let half = half_width.unwrap_or(0.0);
                let says = equal(here, (value - half, value + half), rules);
                let ratio = Some(here.value / value).filter(|ratio| ratio.is_finite());
                Some(Compared { says, ratio })
            }
            Self::Range { low, high, .. } => Some(Compared {
                says: within(here, (*low, *high), rules),
                ratio: None,
            }),
        }
    }

    /// The same of a setting, which has no interval.
    pub(super) fn is(&self, set: f64) -> Option<Compared> {
        let Self::Figure { value, .. } = self else {
            return None;
        };
        let is_same = (set - value).abs() <= 1e-9 * value.abs();
        Some(Compared {
            says: if is_same { Says::Same } else { Says::Different },
            ratio: None,
        })
    }
}

/// Is all of the interval within the margin of a figure, or all of it beyond the figure?
fn equal(here: &Estimate, (low, high): (f64, f64), rules: Rules) -> Says {
    let most = 1.0 + rules.margin;
    if !rules.decides || here.n < 2 {
        Says::Nothing
    } else if here.high <= low * most && here.low >= high / most {
        Says::Same
    } else if here.low > high || here.high < low {
        Says::Different
    } else {
        Says::Open
    }
}

/// The same of a range in print.
fn within(here: &Estimate, (low, high): (f64, f64), rules: Rules) -> Says {
    if !rules.decides || here.n < 2 {
        Says::Nothing
    } else if here.low >= low && here.high <= high {
        Says::Same
    } else if here.low > high || here.high < low {
        Says::Different
    } else {
        Says::Open
    }
}

impl Compared {
    pub(super) fn cell(self) -> Cell {
        let (sign, tone) = match self.says {
            Says::Same => ("=", Tone::Same),
            Says::Different => ("≠", Tone::Different),
            Says::Open => ("?", Tone::Open),
            Says::Nothing => ("", Tone::Open),
        };
        let ratio = self.ratio.map(crate::number::ratio).unwrap_or_default();
        Cell(vec![
            Part::Verdict(sign.to_owned(), tone),
            Part::Point(ratio),
        ])
    }
}
