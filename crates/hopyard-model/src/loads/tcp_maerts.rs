//! Bulk TCP from the server to the client: netperf's TCP_MAERTS, which is its TCP_STREAM the other way round.

use super::{End, Layout, Load, Netperf, Pace, Shape, tcp_stream};

pub(super) const LOAD: Load = Load {
    name: "tcp_maerts",
    summary: "bulk TCP, server to client",
    shape: Shape::Stream {
        sender: End::Server,
        // As netperf.
        message_bytes: 16 * 1024,
        pace: Pace::Optional,
        numbered: false,
    },
    netperf: Netperf {
        test: "TCP MAERTS TEST",
        layout: Layout::Maerts,
    },
    ..tcp_stream::LOAD
};
