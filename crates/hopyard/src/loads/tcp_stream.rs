//! Bulk TCP from the client to the server: netperf's TCP_STREAM.

use super::{End, Load, Pace, Passing, Protocol, Shape, Unit};

pub(super) static LOAD: Load = Load {
    name: "tcp_stream",
    summary: "bulk TCP, client to server",
    protocol: Protocol::Tcp,
    shape: Shape::Stream {
        sender: End::Client,
        // As netperf.
        message_bytes: 16 * 1024,
        pace: Pace::Optional,
        numbered: false,
    },
    unit: Unit::Byte,
    pauses: true,
    passing: Passing::Segments,
};
