//! Containers that forward, and what lies between them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{AxisError, Decides, Descriptor, bounded, choice, shown, shown_as};

/// What lies between two neighbours of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Segments {
    /// A veth pair.
    Veth,
    /// A Linux bridge in the hub.
    Bridge,
    /// Two macvlans on one device of the hub.
    Macvlan,
    /// A direct switch in the hub.
    Direct,
}

const SEGMENTS: [(&str, Segments); 4] = [
    ("veth", Segments::Veth),
    ("bridge", Segments::Bridge),
    ("macvlan", Segments::Macvlan),
    ("direct", Segments::Direct),
];

shown_as!(Segments: SEGMENTS);

/// Containers that forward.
pub(super) struct Chain;

impl Descriptor for Chain {
    type Value = Option<u32>;
    const NAME: &'static str = "chain";
    const SUMMARY: &'static str = "containers that forward, one behind the other";
    const VALUES: &'static str = "1 to 8 (default 1)";
    const OTHER: &'static str = "8";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;
    const COUNTS: bool = true;

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        Ok(Some(bounded(Self::NAME, text, 1, 8)?))
    }

    fn print(value: &Self::Value) -> Option<String> {
        shown(value)
    }
}

/// What lies between two neighbours of a chain.
pub(super) struct SegmentsAxis;

impl Descriptor for SegmentsAxis {
    type Value = Option<Segments>;
    const NAME: &'static str = "segments";
    const SUMMARY: &'static str = "what lies between two neighbours of a chain";
    const VALUES: &'static str = "veth, bridge, macvlan, direct (default veth)";
    const OTHER: &'static str = "direct";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        Ok(Some(choice(Self::NAME, text, &SEGMENTS)?))
    }

    fn print(value: &Self::Value) -> Option<String> {
        shown(value)
    }
}
