//! Datagrams as fast as the client can send them: netperf's UDP_STREAM.

use super::{End, Load, Pace, Passing, Protocol, Shape, Unit};

pub(super) static LOAD: Load = Load {
    name: "udp_stream",
    summary: "datagrams, client to server, as fast as the client can",
    protocol: Protocol::Udp,
    shape: Shape::Stream {
        sender: End::Client,
        // Stays under every MTU in use, as in the 2007 report.
        message_bytes: 1400,
        pace: Pace::Optional,
        numbered: false,
    },
    unit: Unit::Packet,
    pauses: true,
    passing: Passing::Datagrams,
};
