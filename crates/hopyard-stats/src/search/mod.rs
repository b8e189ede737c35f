//! Search for the highest rate at which no more than a given share is lost (MLRsearch, RFC 9971).
//!
//! Trials are somebody else's to make: [`Search`] is told what came of each and says what to try next. It is the
//! RFC's Controller with one goal, a pure state machine. Loads are per second, in any unit; times are seconds.

mod classify;
mod controller;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use classify::{Class, classify, conditional_throughput};
pub use controller::{MOST_TRIALS, Search};

/// What is searched for (Search Goal).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// A trial that loses a greater share is a high-loss one (Goal Loss Ratio, at least 0, below 1).
    pub loss_ratio: f64,
    /// Share of a load's trials, by duration, that may be high-loss ones (Goal Exceed Ratio, at least 0, below 1).
    pub exceed_ratio: f64,
    /// The bounds may lie so far apart, as a share of the upper one (Goal Width).
    pub width_ratio: f64,
    /// Trials are no shorter than this (Goal Initial Trial Duration).
    pub initial_trial_s: f64,
    /// A lower bound takes trials of at least this length (Goal Final Trial Duration).
    pub final_trial_s: f64,
    /// So much of them together settles what a load is (Goal Duration Sum).
    pub duration_sum_s: f64,
}

/// What came of a trial (Trial Result).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// What was to be sent per second (Trial Load, the intended one).
    pub load_per_s: f64,
    /// For how long.
    pub duration_s: f64,
    /// Share of what was to be sent that did not arrive.
    pub loss_ratio: f64,
    /// What arrived per second, by the receiver's clock: nothing but a hint where to look next.
    pub forwarded_per_s: f64,
}

/// What to try next (Trial Input).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// What is to be sent per second.
    pub load_per_s: f64,
    /// For how long.
    pub duration_s: f64,
}

/// What a search found (Goal Result).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalResult {
    /// Both bounds are there, no further apart than the goal's width. Otherwise the result is an irregular one.
    pub regular: bool,
    /// The greatest load below the upper bound that keeps to the goal (Relevant Lower Bound); absent where even the
    /// least load does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_per_s: Option<f64>,
    /// The least load that does not (Relevant Upper Bound); absent where even the greatest does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper_per_s: Option<f64>,
    /// What typically arrives at the lower bound (Conditional Throughput).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_per_s: Option<f64>,
}
