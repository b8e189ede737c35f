//! What a printed figure corresponds to in a run, as described in the data files.

use serde::Deserialize;

/// What a printed figure corresponds to.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Here {
    /// A quantity of a cell.
    Figure(Figure),
    /// A setting of the cell.
    Axis(Setting),
    /// The length of a window, s.
    Window,
    /// Nothing, with the reason.
    Missing(String),
    /// Samples of a profile.
    Samples(Samples),
    /// A value along the curve of a quantity against the number of senders.
    Curve(OnCurve),
    /// By how many percent a quantity is above that of the base, as a geometric mean over the number of senders.
    Excess(String),
    /// When jitter had settled, s.
    Settled,
}

/// A quantity in the report's unit: multiplied by `factor` and some terms, divided by others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    pub(super) of: String,
    /// The machine of which the quantity is, where the ends have a machine each. Where they share one it is of both, and stands at
    /// the client.
    #[serde(default)]
    pub(super) end: Option<End>,
    #[serde(default = "one")]
    pub(super) factor: f64,
    #[serde(default)]
    pub(super) times: Vec<Term>,
    #[serde(default)]
    pub(super) over: Vec<Term>,
}

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum End {
    /// netperf's local machine.
    Client,
    /// netperf's remote machine.
    Server,
}

/// A factor or divisor of a quantity.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Term {
    /// CPUs of this machine, or of that of the end.
    Cpus,
    /// Bytes of a message.
    Message,
    /// Duration of the test then.
    Seconds,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setting {
    pub(super) name: String,
    /// The default value.
    #[serde(default)]
    pub(super) otherwise: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Samples {
    /// The number of samples.
    Count,
    /// Percent of the samples of busy CPUs.
    Share,
}

/// A value along a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnCurve {
    /// The least number of senders that fill the core.
    Full,
    /// One less.
    Before,
    /// Percent of the core that is busy at the last number of senders that does not fill it.
    BusyBefore,
    /// The same at the first number that does.
    BusyFull,
    /// The number of senders from which on jitter rises faster.
    Knee,
}

pub(super) fn one() -> f64 {
    1.0
}
