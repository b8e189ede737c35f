//! Numbered datagrams from many senders side by side (docs/datagrams.md).

use super::{End, Load, Pace, Passing, Protocol, Shape, Unit};

pub(super) static LOAD: Load = Load {
    name: "udp_flood",
    summary: "best-effort senders side by side: loss, jitter and bursts by flow",
    protocol: Protocol::Udp,
    shape: Shape::Stream {
        sender: End::Client,
        // Stays under every MTU in use, as in the 2007 report.
        message_bytes: 1400,
        pace: Pace::Never,
        numbered: true,
    },
    unit: Unit::Packet,
    pauses: false,
    passing: Passing::Datagrams,
};
