//! Rules as data: a part of a rule names what is measured, where, and the bounds; a few judges read them.

mod about;
mod given;
mod says;
mod words;
mod written;

pub(super) use given::Given;
pub(super) use says::Says;
use serde::Deserialize;

use super::bench;
use super::bounds::Bounds;
use super::published::Published;
use super::select::Selection;
use super::what::What;
use crate::model::{ClaimVerdict, axis};

/// A part of a rule.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "written::Raw")]
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
    /// Is the mean over blocks geometric, because windows of one cell differ by factors?
    pub geometric: bool,
    /// Fewest CPUs of a machine that it can be tested on.
    pub cpus: Option<u32>,
    /// What has to be so for it to be tested at all.
    pub given: Option<Given>,
    /// Why figures here can show that the rule holds, and cannot show that it fails.
    pub weaker: Option<String>,
    /// Why figures here can show that the rule fails, and cannot show that it holds.
    pub stronger: Option<String>,
    /// Is within the rule what lies beyond both bounds?
    pub beyond: bool,
    /// A further grade of the statement, judged beside it.
    pub grade: Option<Grade>,
    /// What the figures of a question mean.
    pub says: Option<Says>,
    /// What was published of the points; without it the figures of the plan.
    pub published: Published,
}

/// A figure that is given without a judgement: beside a claim, or in answer to a question. Its bounds, if it has any, tell
/// which of several answers it is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "written::Raw")]
pub struct Said(pub Check);

/// A further grade of a statement ("clearly", "about 5 %"): bounds of its own for the same figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grade {
    /// What the rule calls it.
    pub called: String,
    /// Least that is within it.
    pub at_least: Option<f64>,
    /// Most that is within it.
    pub at_most: Option<f64>,
}

/// How a part of a rule is judged.
#[derive(Debug, Clone, PartialEq)]
pub enum Judge {
    /// Each cell over the same on another path or at another value of an axis, paired within blocks.
    Ratio {
        /// What of them.
        quantity: What,
        cells: Selection,
        /// What each is compared with: paths, or `AXIS=VALUE`.
        to: Vec<String>,
        /// What of those, where it is something else.
        to_quantity: Option<What>,
    },
    /// Each cell by itself.
    Level {
        /// What of it.
        quantity: What,
        cells: Selection,
    },
    /// (cell − without) / (cell − base): how much of what is above the base goes when one thing does.
    Share {
        /// What of them.
        quantity: What,
        cells: Selection,
        /// The same without that thing.
        without: String,
        /// The same without anything.
        base: String,
    },
    /// (cell − (the same at `less` − its base there)) / base: the ratio, without what the two differ in at `less` already.
    Corrected {
        /// What of them.
        quantity: What,
        cells: Selection,
        /// What each is compared with.
        to: String,
        /// Where nothing but the difference to be left out shows: `AXIS=VALUE`.
        less: String,
    },
    /// Along an axis the quantity peaks at a value below the number of CPUs, and the last value is below
    /// the peak by this ratio.
    Peak {
        /// What of them.
        quantity: What,
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
    /// Nothing here could show it: what that takes.
    Missing {
        /// In words.
        missing: String,
    },
    /// Two things side by side that no cell has, in blocks of their own.
    Bench {
        /// Which: a name of [`bench::BENCHES`].
        bench: String,
    },
}

/// Are bounds numbers, with anything between them? TOML has `nan` and `inf`.
fn numbers(at_least: Option<f64>, at_most: Option<f64>) -> Result<(), String> {
    if let Some(none) = [at_least, at_most]
        .into_iter()
        .flatten()
        .find(|n| !n.is_finite())
    {
        return Err(format!("{none} is neither a bound nor a figure"));
    }
    match (at_least, at_most) {
        (Some(low), Some(high)) if low > high => {
            Err(format!("nothing is at least {low} and at most {high}"))
        }
        _ => Ok(()),
    }
}

impl Judge {
    fn is_deed(&self) -> bool {
        matches!(self, Self::Does { .. })
    }

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

impl Over {
    /// How many of so many figures within make a rule hold.
    pub(super) fn within(self, all: usize) -> usize {
        match self {
            Self::Every => all,
            Self::Most => all / 2 + 1,
        }
    }

    /// How many of so many figures outside make it fail.
    pub(super) fn outside(self, all: usize) -> usize {
        match self {
            Self::Every => 1,
            Self::Most => all.div_ceil(2),
        }
    }
}

impl Grade {
    pub(super) fn bounds(&self) -> Bounds {
        Bounds::new(self.at_least, self.at_most)
    }
}

const BOTH_ENDS: &str = "on one machine CPU time is that of both ends and all between, so that the ratio of the sending host alone is further \
     from 1 (hopyard run --uplink has two machines)";

impl Check {
    /// Why figures here cannot show that verdict: what stands in has less of an effect than the rule is about, or more. `is_diluted`:
    /// ratios are nearer to 1 than those that the rule is about.
    pub(super) fn shown_by_no_figure(
        &self,
        verdict: ClaimVerdict,
        is_diluted: bool,
    ) -> Option<&str> {
        let least = self.at_least.unwrap_or(1.0);
        let most = self.at_most.unwrap_or(1.0);
        // Ratios nearer to 1 may leave these bounds, or stay within, without those of the one end doing so.
        let leaves = least > 1.0 || most < 1.0;
        let stays = least < 1.0 || most > 1.0;
        let diluted = |is_it: bool| (is_diluted && is_it).then_some(BOTH_ENDS);
        match verdict {
            ClaimVerdict::Fails => self.weaker.as_deref().or(diluted(leaves)),
            ClaimVerdict::Holds => self.stronger.as_deref().or(diluted(stays)),
            ClaimVerdict::Undecided | ClaimVerdict::Untestable => None,
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds::new(self.at_least, self.at_most).or_beyond(self.beyond)
    }

    /// Can it be? A part of a rule has bounds; a figure that is only said need not.
    fn sound(&self, is_rule: bool) -> Result<(), String> {
        let bounds = self.at_least.is_some() || self.at_most.is_some();
        let base = |text: &String| crate::plan::base(text).map(drop).map_err(|e| e.to_string());
        if self.cpus.is_some() && self.of_cells().is_none() {
            return Err("this judge takes no `cpus`: those of cells do".to_owned());
        }
        if self.of_base().is_some_and(What::is_local) {
            return Err("`to_quantity` takes no local quantity".to_owned());
        }
        match &self.judge {
            Judge::Does { does } => return bench::deed(does).map(drop).map_err(|e| e.to_string()),
            Judge::Missing { .. } => return Ok(()),
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
            Judge::Corrected { to, less, .. } => [to, less].into_iter().try_for_each(base)?,
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
        if self.geometric && !matches!(self.judge, Judge::Level { .. }) {
            return Err("this judge takes no `geometric`: level does".to_owned());
        }
        if let Some(grade) = &self.grade {
            if self.judge.is_deed() {
                return Err("this judge takes no `grade`: it has no figure".to_owned());
            }
            numbers(grade.at_least, grade.at_most)?;
            if grade.called.is_empty() || (grade.at_least, grade.at_most) == (None, None) {
                return Err("a grade is `called` something, and has a bound".to_owned());
            }
        }
        if self.given.is_some() && self.of_cells().is_none() {
            return Err("this judge takes no `given`: those of cells do".to_owned());
        }
        if self.beyond && (self.at_least.is_none() || self.at_most.is_none()) {
            return Err("`beyond` takes `at_least` and `at_most`".to_owned());
        }
        self.has_numbers()?;
        if is_rule && self.says.is_some() {
            return Err("a rule takes no `says`: figures of questions do".to_owned());
        }
        if self.says.is_some() && !bounds {
            return Err("`says` takes `at_least`, `at_most` or both".to_owned());
        }
        if is_rule && !bounds {
            return Err("no bound: set `at_least`, `at_most` or both".to_owned());
        }
        if let Some(plan) = &self.plan {
            crate::plan::find(plan).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Are its bounds and figures numbers?
    fn has_numbers(&self) -> Result<(), String> {
        if let Some(none) = self
            .published
            .figures()
            .into_iter()
            .find(|n| !n.is_finite())
        {
            return Err(format!("{none} is neither a bound nor a figure"));
        }
        numbers(self.at_least, self.at_most)
    }
}
