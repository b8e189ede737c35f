//! How many requests of a flow are in flight.

use super::axis::Decides;
use super::descriptor::{Descriptor, number};

/// Most requests of a flow in flight: as many as one byte can number.
pub const MOST_OUTSTANDING: u32 = 256;

pub(super) const OUTSTANDING: Descriptor<Option<u32>> = Descriptor {
    name: "outstanding",
    summary: "requests of a flow in flight over a standing connection",
    values: "1 to 256 (default 1)",
    other: "16",
    counts: true,
    fits: |load, _| load.has_standing_transactions(),
    ..number::<1, MOST_OUTSTANDING>(Decides::Traffic)
};
