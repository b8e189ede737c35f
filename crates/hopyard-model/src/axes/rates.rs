//! Rates: of the wire, of the sender, and the one that a search finds.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::axis::{Decides, shown_by_name};
use super::descriptor::{Descriptor, text, word};
use crate::units::{self, NotAQuantity};
use crate::{Peer, SearchFor};

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

shown_by_name!(Distribution);

pub(super) const WIRE_RATE: Descriptor<Option<Rate>> = Descriptor {
    name: "rate",
    summary: "rate of the wire, both ways (peer far)",
    values: "100mbit, 1gbit, 10gbit, …, none (default none)",
    other: "1gbit",
    is_quantity: true,
    of_devices: true,
    default: || Some(Rate(None)),
    fits: |_, peer| peer == Peer::Far,
    ..text(Decides::Lab)
};

pub(super) const PACE: Descriptor<Option<Rate>> = Descriptor {
    name: "pace",
    summary: "what the sender of a stream offers at most, payload of all flows",
    values: "10mbit, 940mbit, …, none (default none: as fast as it can; udp_paced 100mbit)",
    other: "940mbit",
    is_quantity: true,
    fits: |load, _| load.takes_pace(),
    ..text(Decides::Traffic)
};

pub(super) const DISTRIBUTION: Descriptor<Option<Distribution>> = Descriptor {
    name: "distribution",
    summary: "of the times between messages of udp_paced or connections of tcp_conns",
    values: "constant, poisson (default constant)",
    other: "poisson",
    fits: |load, _| load.keeps_instants(),
    ..word(Decides::Traffic)
};

pub(super) const SEARCH: Descriptor<Option<SearchFor>> = Descriptor {
    name: "search",
    summary: "the rate of udp_paced at which no more than this is lost, found by trials (RFC 9971)",
    values: "ndr (nothing), pdr (0.5 %), pdr:SHARE (default: none, the pace is given)",
    other: "pdr:0.1%",
    fits: |load, _| load.is_open_loop() && !load.replays(),
    ..text(Decides::Traffic)
};
