//! Two settings of this host that a run compares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Setting;

/// The commands that apply them, for `sh -c`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Command that applies setting A.
    pub a: String,
    /// Command that applies setting B.
    pub b: String,
    /// Command that restores the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
}

impl Settings {
    /// The command that applies a setting.
    #[must_use]
    pub fn command(&self, setting: Setting) -> &str {
        match setting {
            Setting::A => &self.a,
            Setting::B => &self.b,
        }
    }
}

/// How a run compared two settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsReport {
    /// The commands as given. A record: nothing that reads it runs them.
    #[serde(flatten)]
    pub commands: Settings,
    /// When the host was switched from one to the other.
    pub switched_between: SwitchedBetween,
    /// How long a switch took before the run began, s: the median of the slower command.
    pub switch_s: f64,
}

/// When a host is switched from one setting to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SwitchedBetween {
    /// In each round, between the turns of the two.
    Turns,
    /// Once in each block: all cells of one are measured, then all cells of the other.
    Generations,
}
