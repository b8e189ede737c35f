//! Two settings of this host that are compared.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, choice};
use super::descriptor::{Descriptor, optional};

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

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name().to_uppercase())
    }
}

pub(super) const SETTING: Descriptor<Option<Setting>> = Descriptor {
    name: "setting",
    summary: "one of two settings of this host, which the commands of --a and --b make",
    values: "a, b (given by --a and --b alone)",
    other: "b",
    ..optional(Decides::Traffic, |axis, text| {
        choice(axis, &text.to_uppercase(), &SETTINGS).map(Some)
    })
};
