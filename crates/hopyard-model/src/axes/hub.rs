//! Idle ports and rules of the hub.

use super::axis::Decides;
use super::descriptor::{Descriptor, number};

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
