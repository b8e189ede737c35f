//! Rates: of the wire, of the sender, and the one that a search finds.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::axis::{Decides, Descriptor, one_of, optional_text, shown_as};
use crate::units::{self, NotAQuantity};
use crate::{LoadKind, Peer, SearchFor};

/// The rate of the wire in bit/s of Ethernet frames (without FCS); `None` leaves it unshaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rate(pub Option<u64>);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.map_or_else(|| "none".to_owned(), units::show_rate))
    }
}

impl FromStr for Rate {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        if text == "none" {
            Ok(Self(None))
        } else {
            units::parse_rate(text).map(|r| Self(Some(r)))
        }
    }
}

/// Reads a present rate, also `null`, which means no limit. A rate that does not apply has no key at all.
pub(super) fn there<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Rate>, D::Error> {
    Rate::deserialize(input).map(Some)
}

/// Distribution of the times between two messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Constant intervals.
    #[default]
    Constant,
    /// Exponential: the messages are a Poisson process.
    Poisson,
}

const DISTRIBUTIONS: [(&str, Distribution); 2] = [
    ("constant", Distribution::Constant),
    ("poisson", Distribution::Poisson),
];

shown_as!(Distribution: DISTRIBUTIONS);

pub(super) struct WireRate;

impl Descriptor for WireRate {
    type Value = Option<Rate>;
    const NAME: &'static str = "rate";
    const SUMMARY: &'static str = "rate of the wire, both ways (peer far)";
    const VALUES: &'static str = "100mbit, 1gbit, 10gbit, …, none (default none)";
    const OTHER: &'static str = "1gbit";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_DEVICES: bool = true;

    fn default() -> Self::Value {
        Some(Rate(None))
    }

    optional_text!();

    fn fits(_: LoadKind, peer: Peer) -> bool {
        peer == Peer::Far
    }
}

pub(super) struct Pace;

impl Descriptor for Pace {
    type Value = Option<Rate>;
    const NAME: &'static str = "pace";
    const SUMMARY: &'static str =
        "what the sender of a stream offers at most, payload of all flows";
    const VALUES: &'static str =
        "10mbit, 940mbit, …, none (default none: as fast as it can; udp_paced 100mbit)";
    const OTHER: &'static str = "940mbit";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;

    optional_text!();

    fn fits(load: LoadKind, _: Peer) -> bool {
        load.takes_pace()
    }
}

pub(super) struct DistributionAxis;

impl Descriptor for DistributionAxis {
    type Value = Option<Distribution>;
    const NAME: &'static str = "distribution";
    const SUMMARY: &'static str =
        "of the times between messages of udp_paced or connections of tcp_conns";
    const VALUES: &'static str = "constant, poisson (default constant)";
    const OTHER: &'static str = "poisson";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;

    one_of!(DISTRIBUTIONS);

    fn fits(load: LoadKind, _: Peer) -> bool {
        load.keeps_instants()
    }
}

pub(super) struct Search;

impl Descriptor for Search {
    type Value = Option<SearchFor>;
    const NAME: &'static str = "search";
    const SUMMARY: &'static str =
        "the rate of udp_paced at which no more than this is lost, found by trials (RFC 9971)";
    const VALUES: &'static str =
        "ndr (nothing), pdr (0.5 %), pdr:SHARE (default: none, the pace is given)";
    const OTHER: &'static str = "pdr:0.1%";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;

    optional_text!();

    fn fits(load: LoadKind, _: Peer) -> bool {
        load.is_open_loop() && !load.replays()
    }
}
