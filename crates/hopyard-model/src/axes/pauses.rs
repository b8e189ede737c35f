//! Keeping a rate by pauses: of a wire, and of a sender.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::Decides;
use super::descriptor::{Descriptor, text};
use crate::Peer;
use crate::units::{self, NotAQuantity};

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
pub(super) const WIRE_PAUSE: Descriptor<Option<Pause>> = Descriptor {
    name: "wire_pause",
    summary: "a wire with a `rate` sends at full speed and rests for so long at a time, which costs the \
              sender almost no CPU time for each frame",
    values: "50us to 20ms (default: no pauses, a timer for each frame)",
    other: "2ms",
    is_quantity: true,
    fits: |_, peer| peer == Peer::Far,
    ..text(Decides::Lab)
};

/// How long a paced sender rests at a time.
pub(super) const PACE_PAUSE: Descriptor<Option<Pause>> = Descriptor {
    name: "pace_pause",
    summary: "a sender with a `pace` rests for so long at a time and then sends all that is due, which takes \
              fewer sleeps",
    values: "50us to 20ms (default: a sleep for each message)",
    other: "2ms",
    is_quantity: true,
    // Of an open loop each message has its own instant.
    fits: |load, _| load.takes_pace() && !load.keeps_instants(),
    ..text(Decides::Traffic)
};
