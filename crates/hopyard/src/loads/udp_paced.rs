//! Numbered datagrams at given instants (docs/datagrams.md).

use super::{End, Load, Pace, Passing, Protocol, Shape, Unit};

pub(super) static LOAD: Load = Load {
    name: "udp_paced",
    summary: "datagrams at given instants (open loop): one-way latency and jitter",
    protocol: Protocol::Udp,
    shape: Shape::Stream {
        sender: End::Client,
        // Stays under every MTU in use, as in the 2007 report.
        message_bytes: 1400,
        // Some 9,000 messages/s, which every path here can carry.
        pace: Pace::OpenLoop {
            default_bps: 100_000_000,
        },
        numbered: true,
    },
    unit: Unit::Packet,
    pauses: false,
    passing: Passing::Datagrams,
};
