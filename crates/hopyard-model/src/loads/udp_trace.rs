//! Numbered datagrams of a trace (docs/datagrams.md).

use super::{
    End, Layout, Load, LoopKind, Netperf, Pace, Passing, Protocol, Saying, Shape, Shown, Unit,
};
use crate::quantity::{
    CLIENT_CPU, CLIENT_SWITCHES, CPU_PER_PACKET, GAP_SD, GOODPUT, LATENCY_MAX, LATENCY_P50,
    LATENCY_P99, LATENCY_P999, LOST, PACKETS, PDV, PDV_P99, RECEIVER_BUSY, RECEIVER_DROPPED,
    REORDERED, SENDER_LATE,
};

pub(super) static LOAD: Load = Load {
    name: "udp_trace",
    summary: "datagrams with the sizes and at the instants of a trace (open loop)",
    protocol: Protocol::Udp,
    shape: Shape::Stream {
        sender: End::Client,
        // Each has its own.
        message_bytes: 1,
        pace: Pace::Trace,
        numbered: true,
    },
    unit: Unit::Packet,
    turn: None,
    passing: Passing::Datagrams,
    fits: |_| Ok(()),
    timed: Some("datagrams"),
    // A window may have too few datagrams for a p99.
    main_figure: LATENCY_P50,
    repeated: &[],
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
    netperf: Netperf {
        test: "UDP UNIDIRECTIONAL SEND TEST",
        layout: Layout::Datagrams,
    },
    loops: LoopKind::Numbered,
};
