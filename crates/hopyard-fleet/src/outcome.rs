//! What became of a pair.

use hopyard_stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a pair ended that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Every load has its main figure.
    Measured,
    /// Some load has none.
    Failed,
}

/// One attempt at a pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// How it ended.
    pub state: State,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// When it began, ms since 1970.
    pub began_ms: u64,
    /// How long its machines were taken, ms.
    pub took_ms: u64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<Box<str>>,
    /// Figures by their place in the plan's columns; there may be some of a pair that failed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub figures: Vec<(u16, Estimate)>,
}

impl Outcome {
    /// The figure of that column.
    #[must_use]
    pub fn figure(&self, column: usize) -> Option<&Estimate> {
        let found = self
            .figures
            .iter()
            .find(|(at, _)| usize::from(*at) == column);
        found.map(|(_, estimate)| estimate)
    }

    pub(crate) fn is_measured(&self) -> bool {
        self.state == State::Measured
    }
}

/// Why a fleet ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Nothing was left to do.
    Complete,
    /// The user asked for it.
    Interrupted,
    /// Its time was over.
    TimeLimit,
    /// It could not go on: no relay was left, or no process could be started.
    Broken,
}
