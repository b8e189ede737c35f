//! Rules as data: a part of a rule names what is measured, where, and the bounds; a few judges read them.

use serde::Deserialize;

use super::bench;
use super::evidence::What;
use super::published::Published;
use super::select::Selection;
use crate::model::{Base, axis};

/// A part of a rule.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Check {
    /// How it is judged.
    pub judge: Judge,
    /// The plan whose cells are meant; without it that of the report.
    pub plan: Option<String>,
    /// Least that is within the rule.
    pub at_least: Option<f64>,
    /// Most that is within the rule.
    pub at_most: Option<f64>,
    /// Which of several points have to be within.
    pub over: Over,
    /// Axes over which the geometric mean is taken first.
    pub mean_over: Vec<String>,
    /// What was published of the points; without it the figures of the plan.
    pub published: Published,
}

/// How a part of a rule is judged.
#[derive(Debug, Clone, PartialEq)]
pub enum Judge {
    /// Each cell over the same on another path or at another value of an axis, paired within blocks.
    Ratio {
        /// What of them.
        quantity: What,
        /// The cells.
        cells: Selection,
        /// What each is compared with: paths, or `AXIS=VALUE`.
        to: Vec<String>,
    },
    /// Each cell by itself.
    Level {
        /// What of it.
        quantity: What,
        /// The cells.
        cells: Selection,
    },
    /// (cell − without) / (cell − base): how much of what is above the base goes when one thing does.
    Share {
        /// What of them.
        quantity: What,
        /// The cells.
        cells: Selection,
        /// The same without that thing.
        without: String,
        /// The same without anything.
        base: String,
    },
    /// Along an axis the quantity peaks at a value below the number of CPUs, and the last value is below
    /// the peak by this ratio.
    Peak {
        /// What of them.
        quantity: What,
        /// The cells.
        cells: Selection,
        /// The axis, of numbers.
        axis: String,
        /// Its last value.
        last: u32,
    },
    /// The shape of a quantity against the number of senders.
    Curve {
        /// Which.
        shape: Shape,
        /// What of them.
        quantity: What,
        /// The curves that these cells are of.
        cells: Selection,
        /// What each curve is compared with, where a shape is compared.
        to: Option<String>,
    },
    /// Something is done in a throw-away lab, and does what is claimed or not.
    Does {
        /// What: a name of [`bench::DEEDS`].
        does: String,
    },
    /// Two things side by side that no cell has, in blocks of their own.
    Bench {
        /// Which: a name of [`bench::BENCHES`].
        bench: String,
    },
}

impl Judge {
    /// Can a geometric mean be taken first?
    fn has_mean(&self) -> bool {
        matches!(self, Self::Ratio { .. } | Self::Level { .. })
    }
}

/// A shape of a curve, as one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// The first count at which CPUs are full, over that of another curve.
    Fullness,
    /// The largest change between two neighbouring counts.
    Leap,
    /// The slope past [`Shape::AT`] less twice that before.
    Slopes,
    /// The count at which it bends, over that of another curve.
    Knee,
    /// R² of the straight line through it.
    Line,
}

impl Shape {
    /// The count about which slopes are taken: PL7's 20 senders.
    pub const AT: f64 = 20.0;

    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Fullness => "count from which it is full",
            Self::Leap => "largest leap",
            Self::Slopes => "slope past 20 less twice that before",
            Self::Knee => "knee",
            Self::Line => "R² of a line",
        }
    }

    fn is_compared(self) -> bool {
        matches!(self, Self::Fullness | Self::Knee)
    }
}

/// Which of several points have to be within the bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// All of them.
    #[default]
    Every,
    /// More than half of them.
    Most,
}

/// A part of a rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    judge: Kind,
    quantity: Option<What>,
    cells: Option<Selection>,
    to: Option<Vec<String>>,
    without: Option<String>,
    base: Option<String>,
    axis: Option<String>,
    last: Option<u32>,
    shape: Option<Shape>,
    does: Option<String>,
    bench: Option<String>,
    plan: Option<String>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    #[serde(default)]
    over: Over,
    #[serde(default)]
    mean_over: Vec<String>,
    #[serde(default)]
    published: Published,
}

/// The judges by name.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Ratio,
    Level,
    Share,
    Peak,
    Curve,
    Does,
    Bench,
}

fn need<T>(key: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("this judge needs `{key}`"))
}

impl TryFrom<Raw> for Check {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        let quantity = need("quantity", raw.quantity);
        let cells = need("cells", raw.cells);
        let judge = match raw.judge {
            Kind::Ratio => Judge::Ratio {
                quantity: quantity?,
                cells: cells?,
                to: need("to", raw.to)?,
            },
            Kind::Level => Judge::Level {
                quantity: quantity?,
                cells: cells?,
            },
            Kind::Share => Judge::Share {
                quantity: quantity?,
                cells: cells?,
                without: need("without", raw.without)?,
                base: need("base", raw.base)?,
            },
            Kind::Peak => Judge::Peak {
                quantity: quantity?,
                cells: cells?,
                axis: need("axis", raw.axis)?,
                last: need("last", raw.last)?,
            },
            Kind::Curve => Judge::Curve {
                shape: need("shape", raw.shape)?,
                quantity: quantity?,
                cells: cells?,
                to: raw.to.and_then(|to| to.into_iter().next()),
            },
            Kind::Does => Judge::Does {
                does: need("does", raw.does)?,
            },
            Kind::Bench => Judge::Bench {
                bench: need("bench", raw.bench)?,
            },
        };
        let check = Self {
            judge,
            plan: raw.plan,
            at_least: raw.at_least,
            at_most: raw.at_most,
            over: raw.over,
            mean_over: raw.mean_over,
            published: raw.published,
        };
        check.sound()?;
        Ok(check)
    }
}

impl Check {
    /// Can it be?
    fn sound(&self) -> Result<(), String> {
        let bounds = self.at_least.is_some() || self.at_most.is_some();
        let base = |text: &String| crate::plan::base(text).map(drop).map_err(|e| e.to_string());
        match &self.judge {
            Judge::Does { does } => return bench::deed(does).map(drop).map_err(|e| e.to_string()),
            Judge::Bench { bench } => {
                bench::bench(bench).map_err(|e| e.to_string())?;
            }
            Judge::Ratio { to, .. } => {
                to.iter().try_for_each(base)?;
                if to.is_empty() {
                    return Err("a ratio to nothing: name a path or AXIS=VALUE in `to`".to_owned());
                }
            }
            Judge::Share {
                without, base: of, ..
            } => [without, of].into_iter().try_for_each(base)?,
            Judge::Peak { axis: name, .. } => {
                axis(name).map_err(|e| e.to_string())?;
            }
            Judge::Curve { shape, to, .. } => {
                to.iter().try_for_each(base)?;
                if shape.is_compared() != to.is_some() {
                    return Err(format!("shape {shape:?} takes `to`, or takes none"));
                }
            }
            Judge::Level { .. } => {}
        }
        for name in &self.mean_over {
            axis(name).map_err(|e| e.to_string())?;
        }
        if !self.mean_over.is_empty() && !self.judge.has_mean() {
            return Err("this judge takes no `mean_over`: ratio and level do".to_owned());
        }
        self.has_numbers()?;
        if !bounds {
            return Err("no bound: set `at_least`, `at_most` or both".to_owned());
        }
        if let Some(plan) = &self.plan {
            crate::plan::find(plan).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Are its bounds and figures numbers, and is there anything between the bounds? TOML has `nan` and `inf`.
    fn has_numbers(&self) -> Result<(), String> {
        let bounds = [self.at_least, self.at_most].into_iter().flatten();
        if let Some(none) = bounds
            .chain(self.published.figures())
            .find(|n| !n.is_finite())
        {
            return Err(format!("{none} is neither a bound nor a figure"));
        }
        match (self.at_least, self.at_most) {
            (Some(low), Some(high)) if low > high => {
                Err(format!("nothing is at least {low} and at most {high}"))
            }
            _ => Ok(()),
        }
    }

    /// What the cells are compared with.
    pub(super) fn bases(&self) -> Vec<Base<'_>> {
        let texts: Vec<&String> = match &self.judge {
            Judge::Ratio { to, .. } => to.iter().collect(),
            Judge::Share { without, base, .. } => vec![without, base],
            Judge::Curve { to, .. } => to.iter().collect(),
            _ => Vec::new(),
        };
        texts
            .into_iter()
            .filter_map(|text| Base::parse(text).ok())
            .collect()
    }

    /// What is measured of which cells, where it is of cells.
    pub(super) fn of_cells(&self) -> Option<(&What, &Selection)> {
        match &self.judge {
            Judge::Ratio {
                quantity, cells, ..
            }
            | Judge::Level { quantity, cells }
            | Judge::Share {
                quantity, cells, ..
            }
            | Judge::Peak {
                quantity, cells, ..
            }
            | Judge::Curve {
                quantity, cells, ..
            } => Some((quantity, cells)),
            Judge::Does { .. } | Judge::Bench { .. } => None,
        }
    }

    /// What is measured of what, in words; empty where it is no measurement of cells.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Some((what, _)) = self.of_cells() else {
            return String::new();
        };
        let what = format!("{what:?}").replace('_', " ");
        let over = match self.over {
            Over::Every => "every one",
            Over::Most => "most",
        };
        let mean = match self.mean_over.as_slice() {
            [] => String::new(),
            axes => format!(", geometric mean over {}", axes.join(", ")),
        };
        match &self.judge {
            Judge::Ratio { to, .. } => {
                format!("{what} over that of {}{mean}, {over}", to.join(", "))
            }
            Judge::Share { without, base, .. } => {
                format!("share of {what} above {base} that goes with what {without} lacks, {over}")
            }
            Judge::Curve { shape, to, .. } => {
                let over = to.iter().map(|to| format!(" over that of {to}"));
                format!("{} of {what}{}", shape.words(), over.collect::<String>())
            }
            Judge::Peak { axis, last, .. } => format!(
                "{what} at {axis} {last} over its peak, which is at a value below the number of CPUs"
            ),
            _ => format!("{what}{mean}, {over}"),
        }
    }

    /// `0.95 to 1.05`, `at least 2`.
    #[must_use]
    pub fn bounds_in_words(&self) -> String {
        match (self.at_least, self.at_most) {
            (Some(low), Some(high)) => format!("{low} to {high}"),
            (Some(low), None) => format!("at least {low}"),
            (None, Some(high)) => format!("at most {high}"),
            (None, None) => "that it does".to_owned(),
        }
    }
}
