//! Names that users write, and errors about unknown ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::NotAQuantity;

/// A name that is not in its list; the error names the valid ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} `{name}`: choose {choices}")]
pub struct UnknownName {
    /// Kind of name: `path`, `load`, `axis`, …
    pub kind: &'static str,
    /// The unknown name.
    pub name: String,
    /// The names to choose from.
    pub choices: String,
}

impl UnknownName {
    /// The error that `name` is none of `choices`. Each choice is a name, or describes the form of names.
    #[must_use]
    pub fn new<T: AsRef<str>>(
        kind: &'static str,
        name: &str,
        choices: impl IntoIterator<Item = T>,
    ) -> Self {
        let mut listed = String::new();
        for choice in choices {
            if !listed.is_empty() {
                listed.push_str(", ");
            }
            listed.push_str(choice.as_ref());
        }
        Self {
            kind,
            name: name.to_owned(),
            choices: listed,
        }
    }
}

/// Why a text is not a value of an axis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AxisError {
    /// Not a number, size or rate.
    #[error(transparent)]
    NotAQuantity(#[from] NotAQuantity),
    /// Not one of the names.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// Out of bounds.
    #[error("`{text}` is out of bounds: {axis} goes from {low} to {high}")]
    Bounds {
        axis: &'static str,
        text: String,
        /// Least value.
        low: u32,
        /// Greatest value.
        high: u32,
    },
}

/// Display and `FromStr` of a type with names and a list of all values.
macro_rules! named {
    ($type:ty, $kind:literal) => {
        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> Result<Self, $crate::UnknownName> {
                Self::ALL
                    .into_iter()
                    .find(|v| v.name() == text)
                    .ok_or_else(|| $crate::UnknownName::new($kind, text, Self::ALL.map(Self::name)))
            }
        }
    };
}

pub(crate) use named;

/// Where the other end is.
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
    /// Every peer.
    pub const ALL: [Self; 3] = [Self::Local, Self::Far, Self::Host];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Far => "far",
            Self::Host => "host",
        }
    }
}

named!(Peer, "peer");
