//! How many requests of a flow are in flight.

use super::axis::{AxisError, Decides, Descriptor, count};
use crate::{LoadKind, Peer};

/// Most requests of a flow in flight: as many as one byte can number.
pub const MOST_OUTSTANDING: u32 = 256;

pub(super) struct Outstanding;

impl Descriptor for Outstanding {
    type Value = Option<u32>;
    const NAME: &'static str = "outstanding";
    const SUMMARY: &'static str = "requests of a flow in flight over a standing connection";
    const VALUES: &'static str = "1 to 256 (default 1)";
    const OTHER: &'static str = "16";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Traffic;
    const COUNTS: bool = true;

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        Ok(Some(count(Self::NAME, text, 1, MOST_OUTSTANDING)?))
    }

    fn print(value: &Self::Value) -> Option<String> {
        value.map(|count| count.to_string())
    }

    fn fits(load: LoadKind, _: Peer) -> bool {
        load.has_standing_transactions()
    }
}
