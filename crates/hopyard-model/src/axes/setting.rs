//! Two settings of this host that are compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{AxisError, Decides, Descriptor, choice, shown, shown_as};

/// One of two settings of this host that are compared in one run. A command of the user makes each.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// The base.
    A,
    /// The setting compared with the base.
    B,
}

impl Setting {
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// Its name on the command line, in JSON and in the environment of its command.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }
}

const SETTINGS: [(&str, Setting); 2] = [("A", Setting::A), ("B", Setting::B)];

shown_as!(Setting: SETTINGS);

pub(super) struct SettingAxis;

impl Descriptor for SettingAxis {
    type Value = Option<Setting>;
    const NAME: &'static str = "setting";
    const SUMMARY: &'static str =
        "one of two settings of this host, which the commands of --a and --b make";
    const VALUES: &'static str = "a, b (given by --a and --b alone)";
    const OTHER: &'static str = "b";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        Ok(Some(choice(Self::NAME, &text.to_uppercase(), &SETTINGS)?))
    }

    fn print(value: &Self::Value) -> Option<String> {
        shown(value)
    }
}
