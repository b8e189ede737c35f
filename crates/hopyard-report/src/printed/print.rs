//! A printed figure, and whether the measured one agrees with it.

use crate::document::{Cell, Part, Tone};
use crate::model::FOR_A_VERDICT;
use crate::number::{rough, significant};
use crate::stats::Estimate;

/// Tolerance of a figure that is printed as `about`.
const ABOUT: f64 = 0.1;

/// The content of one place of a printed table.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Print {
    /// Nothing: the table has no such place.
    Blank,
    /// Not measured then; the text as printed.
    Unknown(String),
    /// A text.
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

/// The result of a comparison with a printed figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    Same,
    Different,
    /// Neither is shown.
    Open,
    /// Too few blocks for a result.
    Nothing,
}

/// The verdict on a cell, and the measured figure over the printed one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Compared {
    pub(super) says: Says,
    pub(super) ratio: Option<f64>,
}

/// Rules that all comparisons share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Difference below which two figures count as equal, as a share.
    pub(super) margin: f64,
    /// Whether there are enough blocks for verdicts.
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

    /// Marks the text as "not measured", if it is the report's word for that (`-1`).
    pub(super) fn is_unknown_if(&mut self, unknown: &str) {
        if matches!(self, Self::Figure { text, .. } if text == unknown) {
            *self = Self::Unknown(unknown.to_owned());
        }
    }

    /// Aligned with the figures above and below.
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

    /// This figure over another one, with the combined half-width of both.
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

    /// The comparison of a measured figure with this one; `None` if there is nothing to compare.
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

    /// The same for a setting, which has no interval.
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

/// Whether the whole interval is within the margin of a figure, or entirely beyond the figure.
fn equal(here: &Estimate, (low, high): (f64, f64), rules: Rules) -> Says {
    let most = 1.0 + rules.margin;
    if !rules.decides || here.n < FOR_A_VERDICT as usize {
        Says::Nothing
    } else if here.high <= low * most && here.low >= high / most {
        Says::Same
    } else if here.low > high || here.high < low {
        Says::Different
    } else {
        Says::Open
    }
}

/// The same for a printed range.
fn within(here: &Estimate, (low, high): (f64, f64), rules: Rules) -> Says {
    if !rules.decides || here.n < FOR_A_VERDICT as usize {
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
