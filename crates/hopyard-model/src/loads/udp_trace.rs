//! Numbered datagrams of a trace (docs/datagrams.md).

use super::{End, Load, Pace, Saying, Shape, Shown, udp_paced};
use crate::quantity::{
    CLIENT_CPU, CLIENT_SWITCHES, CPU_PER_PACKET, GAP_SD, GOODPUT, LATENCY_MAX, LATENCY_P50,
    LATENCY_P99, LATENCY_P999, LOST, PACKETS, PDV, PDV_P99, RECEIVER_BUSY, RECEIVER_DROPPED,
    REORDERED, SENDER_LATE,
};

pub(super) const LOAD: Load = Load {
    name: "udp_trace",
    summary: "datagrams with the sizes and at the instants of a trace (open loop)",
    shape: Shape::Stream {
        sender: End::Client,
        // Each has its own.
        message_bytes: 1,
        pace: Pace::Trace,
        numbered: true,
    },
    // A window may have too few datagrams for a p99.
    main_figure: LATENCY_P50,
    shown: Shown {
        saying: Saying::LATENCY_P50,
        beside: &[
            LATENCY_P99,
            LATENCY_P999,
            LATENCY_MAX,
            LOST,
            GOODPUT,
            PACKETS,
        ],
        columns: &[SENDER_LATE, PDV, REORDERED, RECEIVER_BUSY, RECEIVER_DROPPED],
        grids: &[LATENCY_P99, LATENCY_P999, LOST, PDV],
        curves: &[
            PACKETS,
            CLIENT_CPU,
            CPU_PER_PACKET,
            GAP_SD,
            PDV_P99,
            CLIENT_SWITCHES,
        ],
    },
    ..udp_paced::LOAD
};
