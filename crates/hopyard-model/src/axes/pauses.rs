//! Keeping a rate by pauses: of a wire, and of a sender.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, Descriptor, optional_text};
use crate::units::{self, NotAQuantity};
use crate::{LoadKind, Peer};

/// How long a wire, or a sender, that is at its rate rests at a time, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Pause(u32);

impl Pause {
    #[must_use]
    pub fn time(self) -> Duration {
        Duration::from_nanos(u64::from(self.0))
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&units::show_short_duration(self.time()))
    }
}

impl FromStr for Pause {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        let us = units::parse_pause(text)?.as_micros();
        // Twenty milliseconds at most.
        Ok(Self(u32::try_from(us * 1000).unwrap_or(u32::MAX)))
    }
}

/// How long the wire rests at a time.
pub(super) struct OfTheWire;

impl Descriptor for OfTheWire {
    type Value = Option<Pause>;
    const NAME: &'static str = "wire_pause";
    const SUMMARY: &'static str = "a wire with a `rate` sends at full speed and rests for so long at a time, which costs the \
                                   sender almost no CPU time for each frame";
    const VALUES: &'static str = "50us to 20ms (default: no pauses, a timer for each frame)";
    const OTHER: &'static str = "2ms";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;

    optional_text!();

    fn fits(_: LoadKind, peer: Peer) -> bool {
        peer == Peer::Far
    }
}

/// How long a paced sender rests at a time.
pub(super) struct OfTheSender;

impl Descriptor for OfTheSender {
    type Value = Option<Pause>;
    const NAME: &'static str = "pace_pause";
    const SUMMARY: &'static str = "a sender with a `pace` rests for so long at a time and then sends all that is due, which takes \
                                   fewer sleeps";
    const VALUES: &'static str = "50us to 20ms (default: a sleep for each message)";
    const OTHER: &'static str = "2ms";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;

    optional_text!();

    /// Of an open loop each message has its own instant.
    fn fits(load: LoadKind, _: Peer) -> bool {
        load.takes_pace() && !load.keeps_instants()
    }
}
