//! Search for the highest rate at which no more than a given share is lost (MLRsearch, RFC 9971).
//!
//! The caller makes the trials: [`Search`] gets the result of each and says what to try next. It is the RFC's
//! Controller with one goal, a pure state machine. Loads are per second, in any unit; times are seconds.

mod classify;
mod controller;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use classify::Class;
pub(crate) use classify::{classify, conditional_throughput};
pub use controller::Search;

/// The goal of a search (Search Goal).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// A trial that loses a greater share is a high-loss one (Goal Loss Ratio, at least 0, below 1).
    pub loss_ratio: f64,
    /// Share of a load's trials, by duration, that may be high-loss ones (Goal Exceed Ratio, at least 0, below 1).
    pub exceed_ratio: f64,
    /// The bounds may be this far apart, as a share of the upper one (Goal Width).
    pub width_ratio: f64,
    /// Trials are no shorter than this (Goal Initial Trial Duration).
    pub initial_trial_s: f64,
    /// A lower bound needs trials of at least this length (Goal Final Trial Duration).
    pub final_trial_s: f64,
    /// Total duration of such trials that decides the class of a load (Goal Duration Sum).
    pub duration_sum_s: f64,
}

/// The result of a trial (Trial Result).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Units to send per second (Trial Load, the intended one).
    pub load_per_s: f64,
    /// Length of the trial.
    pub duration_s: f64,
    /// Share of the intended units that did not arrive.
    pub loss_ratio: f64,
    /// Units that arrived per second, by the receiver's clock: only a hint where to try next.
    pub forwarded_per_s: f64,
}

/// What to try next (Trial Input).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// Units to send per second.
    pub load_per_s: f64,
    /// Length of the trial.
    pub duration_s: f64,
}

/// What a search found (Goal Result).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalResult {
    /// Both bounds exist and are no further apart than the goal's width. Otherwise the result is irregular.
    pub regular: bool,
    /// The greatest load below the upper bound that keeps to the goal (Relevant Lower Bound); absent if even the least
    /// load does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_per_s: Option<f64>,
    /// The least load that does not keep to the goal (Relevant Upper Bound); absent if even the greatest does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper_per_s: Option<f64>,
    /// What typically arrives at the lower bound (Conditional Throughput).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_per_s: Option<f64>,
}
