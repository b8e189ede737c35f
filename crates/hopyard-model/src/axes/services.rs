//! How many services a hub translates, and how many connections it already tracks.

use super::axis::Decides;
use super::descriptor::{Descriptor, number};

pub(super) const SERVICES: Descriptor<Option<u32>> = Descriptor {
    name: "services",
    summary: "services that the hub translates; the client uses the last of them (service-iptables: the last rule)",
    values: "1 to 30000 (default 1)",
    other: "100",
    of_path: true,
    counts: true,
    ..number::<1, 30_000>(Decides::Lab)
};

pub(super) const CONNTRACK: Descriptor<Option<u32>> = Descriptor {
    name: "conntrack",
    summary: "connections that the hub tracks already: established TCP, without traffic",
    values: "0 to 2000000 (default 0)",
    other: "1000",
    of_path: true,
    counts: true,
    ..number::<0, 2_000_000>(Decides::Lab)
};
