//! Search for a rate: the goal, and the result in one sample.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::size;
use super::text::as_text;
use super::{AxisError, UnknownName};
use crate::units;
use hopyard_stats::search::{Goal, GoalResult, Trial};

/// The largest share of loss at which a rate is searched for (RFC 9971). As text `ndr`, `pdr`, or `pdr:0.1%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SearchFor {
    /// Goal loss ratio, parts per million.
    loss_ppm: u32,
}

const MILLION: f64 = 1e6;

impl SearchFor {
    /// The non-drop rate: no loss.
    pub const NDR: Self = Self { loss_ppm: 0 };
    /// The partial drop rate: up to 0.5 % loss.
    pub(crate) const PDR: Self = Self { loss_ppm: 5000 };

    /// The largest share of loss.
    #[must_use]
    pub fn loss_ratio(self) -> f64 {
        f64::from(self.loss_ppm) / MILLION
    }
}

impl fmt::Display for SearchFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NDR => f.pad("ndr"),
            Self::PDR => f.pad("pdr"),
            other => f.pad(&format!("pdr:{}", units::show_share(other.loss_ratio()))),
        }
    }
}

impl FromStr for SearchFor {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Self, AxisError> {
        match text.split_once(':') {
            None if text == "ndr" => Ok(Self::NDR),
            None if text == "pdr" => Ok(Self::PDR),
            Some(("pdr", share)) => {
                let loss = units::parse_goal_loss(share)?;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a share of a million, at most half of it"
                )]
                Ok(Self {
                    loss_ppm: (loss * MILLION).round() as u32,
                })
            }
            _ => Err(AxisError::UnknownName(UnknownName::new(
                "search",
                text,
                ["ndr, pdr (0.5 % may be lost), or pdr:SHARE as in pdr:0.1%"],
            ))),
        }
    }
}

as_text!(SearchFor);

/// The result of a search. Loads are datagrams per second, all flows together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Searched {
    /// The goal of the search.
    pub goal: Goal,
    /// The bounds that the search found.
    #[serde(flatten)]
    pub result: GoalResult,
    /// Every trial, in their order.
    pub trials: Vec<Trial>,
}

impl Searched {
    pub(super) fn largest(&self) -> u64 {
        let bounds = [
            self.result.lower_per_s,
            self.result.upper_per_s,
            self.result.throughput_per_s,
        ];
        let trials = self.trials.iter();
        let of_trial = |t: &Trial| [t.load_per_s, t.duration_s, t.loss_ratio, t.forwarded_per_s];
        size(
            bounds
                .into_iter()
                .flatten()
                .chain(trials.flat_map(of_trial)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts() {
        let read = |text: &str| text.parse::<SearchFor>();
        assert_eq!(read("ndr"), Ok(SearchFor::NDR));
        assert_eq!(read("pdr:0.5%"), Ok(SearchFor::PDR));
        assert_eq!(read("pdr:0.001").unwrap().to_string(), "pdr:0.1%");
        for (wrong, said) in [
            (
                "mdr",
                "there is no search `mdr`: choose ndr, pdr (0.5 % may be lost), or pdr:SHARE as in pdr:0.1%",
            ),
            (
                "pdr:0%",
                "`0%` is not a goal loss ratio: write a share from 0.0001% to 50% as in 0.5%, or search for ndr, which loses nothing",
            ),
            (
                "pdr:100%",
                "`100%` is not a goal loss ratio: write a share from 0.0001% to 50% as in 0.5%, or search for ndr, which loses nothing",
            ),
        ] {
            assert_eq!(read(wrong).unwrap_err().to_string(), said);
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(loss_ppm in 1u32..=500_000) {
            let search = SearchFor { loss_ppm };
            prop_assert_eq!(search.to_string().parse::<SearchFor>(), Ok(search));
            let json = serde_json::to_string(&search).unwrap();
            prop_assert_eq!(serde_json::from_str::<SearchFor>(&json).unwrap(), search);
        }
    }
}
