//! How many connections are opened.

use super::axis::Decides;
use super::descriptor::{Descriptor, number};

/// Most open connections of a flow. Connections due beyond that wait, and their latency counts from when they were due.
pub const MOST_OPEN: u32 = 512;

pub(super) const CONNECTION_RATE: Descriptor<Option<u32>> = Descriptor {
    name: "connection_rate",
    summary: "connections that tcp_conns opens per second, all flows",
    values: "20 to 1000000 (default 1000)",
    other: "2000",
    fits: |load, _| load.default_connections_per_s().is_some(),
    ..number::<20, 1_000_000>(Decides::Traffic)
};
