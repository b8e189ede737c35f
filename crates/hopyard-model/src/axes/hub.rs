//! How the hub's bridge is connected to the host, and idle ports and rules of the hub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, shown_by_name};
use super::descriptor::{Descriptor, number, word};
use crate::Peer;

/// Where the host has its address on a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostLink {
    /// On the bridge's own device.
    Device,
    /// On one end of a veth pair, whose other end is a port, as domain 0 of Xen had it (`veth0` and `vif0.0`).
    Pair,
}

shown_by_name!(HostLink);

pub(super) const HOST_LINK: Descriptor<Option<HostLink>> = Descriptor {
    name: "host_link",
    summary: "where the host has its address on a bridge: on the bridge's own device, or on a veth pair to a port",
    values: "device, pair (default device)",
    other: "pair",
    of_path: true,
    fits: |_, peer| peer == Peer::Host,
    ..word(Decides::Lab)
};

pub(super) const PORTS: Descriptor<Option<u32>> = Descriptor {
    name: "ports",
    summary: "devices attached to the hub's switch; beyond those in use, they are idle",
    values: "2 to 1000, not fewer than are in use (default: those in use)",
    other: "1000",
    of_path: true,
    counts: true,
    ..number::<2, 1000>(Decides::Lab)
};

pub(super) const RULES: Descriptor<Option<u32>> = Descriptor {
    name: "rules",
    summary: "nftables rules that match nothing, in the hub's forward hook",
    values: "0 to 10000 (default 0)",
    other: "100",
    of_path: true,
    counts: true,
    ..number::<0, 10_000>(Decides::Lab)
};
