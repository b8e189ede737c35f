//! Containers that forward, and what connects them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, shown_by_name};
use super::descriptor::{Descriptor, number, word};

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

shown_by_name!(Segments, Routed);

pub(super) const CHAIN: Descriptor<Option<u32>> = Descriptor {
    name: "chain",
    summary: "containers that forward, one behind the other",
    values: "1 to 8 (default 1)",
    other: "8",
    of_path: true,
    counts: true,
    ..number::<1, 8>(Decides::Lab)
};

pub(super) const SEGMENTS: Descriptor<Option<Segments>> = Descriptor {
    name: "segments",
    summary: "what lies between two neighbours of a chain",
    values: "veth, bridge, macvlan, direct (default veth)",
    other: "direct",
    of_path: true,
    ..word(Decides::Lab)
};

pub(super) const ROUTED: Descriptor<Option<Routed>> = Descriptor {
    name: "routed",
    summary: "senders whose traffic passes a routing container of their own; the others send on the link themselves",
    values: "all, half, none (default all)",
    other: "half",
    of_path: true,
    ..word(Decides::Lab)
};
