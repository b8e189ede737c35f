//! Cells: one combination of path, peer, load and axis values.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axes, LoadKind};

/// A name that is not in its list; says what would have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} `{name}`: choose {choices}")]
pub struct UnknownName {
    /// What was looked for: `path`, `load`, `axis`, …
    pub kind: &'static str,
    /// The name that was asked for.
    pub name: String,
    /// The names to choose from.
    pub choices: String,
}

/// Whom an endpoint talks to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// A second endpoint on the same path.
    Local,
    /// Namespace `far`, over the wire.
    Far,
    /// The hub itself.
    Host,
}

impl Peer {
    /// Every peer there is.
    pub const ALL: [Self; 3] = [Self::Local, Self::Far, Self::Host];

    /// The name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Far => "far",
            Self::Host => "host",
        }
    }
}

/// Display and `FromStr` of what has names and a list of all.
macro_rules! named {
    ($type:ty, $kind:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                Self::ALL
                    .into_iter()
                    .find(|v| v.name() == text)
                    .ok_or_else(|| UnknownName {
                        kind: $kind,
                        name: text.to_owned(),
                        choices: Self::ALL.map(Self::name).join(", "),
                    })
            }
        }
    };
}

pub(crate) use named;

named!(Peer, "peer");

/// One combination of path, peer, load and axis values; the unit that is measured and compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// A path of the registry.
    pub path: String,
    /// Whom the endpoint talks to.
    pub peer: Peer,
    /// The traffic.
    pub load: LoadKind,
    /// The values of every axis that matters for this load.
    pub axes: Axes,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.path, self.peer, self.load)
    }
}
