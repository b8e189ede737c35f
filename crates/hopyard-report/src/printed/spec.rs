//! What of a run answers to a printed figure, as the data files say it.

use serde::Deserialize;

/// What answers to a printed figure.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Here {
    /// A quantity of a cell.
    Figure(Figure),
    /// What the cell was set to.
    Axis(Setting),
    /// The length of a window, s.
    Window,
    /// Nothing, and why.
    Missing(String),
    /// Samples of a profile.
    Samples(Samples),
    /// A place along the curve of a quantity against the number of senders.
    Curve(OnCurve),
    /// By how many percent a quantity is above that of the base, as a geometric mean over the number of senders.
    Excess(String),
    /// When jitter had settled, s.
    Settled,
}

/// A quantity as print has it: times `factor` and some, over some.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    pub(super) of: String,
    #[serde(default = "one")]
    pub(super) factor: f64,
    #[serde(default)]
    pub(super) times: Vec<Term>,
    #[serde(default)]
    pub(super) over: Vec<Term>,
}

/// What a quantity is multiplied with, or divided by.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Term {
    /// CPUs of this machine.
    Cpus,
    /// Bytes of a message.
    Message,
    /// How long the test took then.
    Seconds,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setting {
    pub(super) name: String,
    /// What it is where nobody sets it.
    #[serde(default)]
    pub(super) otherwise: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Samples {
    /// How many.
    Count,
    /// Percent of those of busy CPUs.
    Share,
}

/// A place along a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnCurve {
    /// The least number of senders that fill the core.
    Full,
    /// One less.
    Before,
    /// Percent of the core that senders take at the last number that does not fill it.
    BusyBefore,
    /// The same at the first that does.
    BusyFull,
    /// From how many senders on jitter bends up.
    Knee,
}

pub(super) fn one() -> f64 {
    1.0
}
