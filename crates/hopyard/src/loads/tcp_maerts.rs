//! Bulk TCP from the server to the client: netperf's TCP_MAERTS.

use super::{End, Load, Pace, Passing, Protocol, Shape, Unit};

pub(super) static LOAD: Load = Load {
    name: "tcp_maerts",
    summary: "bulk TCP, server to client",
    protocol: Protocol::Tcp,
    shape: Shape::Stream {
        sender: End::Server,
        // As netperf.
        message_bytes: 16 * 1024,
        pace: Pace::Optional,
        numbered: false,
    },
    unit: Unit::Byte,
    pauses: true,
    passing: Passing::Segments,
};
