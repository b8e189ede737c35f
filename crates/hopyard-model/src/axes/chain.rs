//! Containers that forward, and what connects them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, Descriptor, number, one_of, shown_as};

/// What connects two neighbours of a chain.
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

/// Which senders' traffic passes a routing container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Routed {
    /// All senders.
    All,
    /// Every second sender; the others send directly on the link.
    Half,
    /// None: all send directly on the link.
    None,
}

const ROUTED: [(&str, Routed); 3] = [
    ("all", Routed::All),
    ("half", Routed::Half),
    ("none", Routed::None),
];

shown_as!(Segments: SEGMENTS, Routed: ROUTED);

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

    number!(1, 8);
}

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

    one_of!(SEGMENTS);
}

pub(super) struct RoutedAxis;

impl Descriptor for RoutedAxis {
    type Value = Option<Routed>;
    const NAME: &'static str = "routed";
    const SUMMARY: &'static str = "senders whose traffic passes a routing container of their own; the others send on the link themselves";
    const VALUES: &'static str = "all, half, none (default all)";
    const OTHER: &'static str = "half";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;

    one_of!(ROUTED);
}
