//! When the flows of a load begin.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::as_text;
use super::{AxisError, UnknownName};
use crate::units;

/// When the flows of a load begin: at once, or one after another. As text `simultaneous`, or `staggered:10ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Start {
    apart_us: u32,
}

impl Start {
    /// All at once.
    pub(crate) const SIMULTANEOUS: Self = Self { apart_us: 0 };

    /// The time between two flows.
    #[must_use]
    pub fn apart(self) -> Duration {
        Duration::from_micros(u64::from(self.apart_us))
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::SIMULTANEOUS => f.pad("simultaneous"),
            other => f.pad(&format!(
                "staggered:{}",
                units::show_short_duration(other.apart())
            )),
        }
    }
}

impl FromStr for Start {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Self, AxisError> {
        match text.split_once(':') {
            None if text == "simultaneous" => Ok(Self::SIMULTANEOUS),
            Some(("staggered", apart)) => {
                let apart = units::parse_stagger(apart)?;
                // At most ten seconds, so it fits.
                let apart_us = u32::try_from(apart.as_micros()).unwrap_or(u32::MAX);
                Ok(Self { apart_us })
            }
            _ => Err(AxisError::UnknownName(UnknownName::new(
                "start",
                text,
                ["simultaneous, or staggered:TIME as in staggered:10ms"],
            ))),
        }
    }
}

as_text!(Start);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts() {
        let read = |text: &str| text.parse::<Start>();
        assert_eq!(read("simultaneous"), Ok(Start::SIMULTANEOUS));
        assert_eq!(
            read("staggered:2ms").unwrap().apart(),
            Duration::from_millis(2)
        );
        assert_eq!(
            read("staggered").unwrap_err().to_string(),
            "there is no start `staggered`: choose simultaneous, or staggered:TIME as in staggered:10ms"
        );
        for wrong in ["staggered:0s", "staggered:11s", "staggered:5"] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.ends_with("write 10us to 10s as in 10ms"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(apart_us in 10u32..=10_000_000) {
            let start = Start { apart_us };
            prop_assert_eq!(start.to_string().parse::<Start>(), Ok(start));
        }
    }
}
