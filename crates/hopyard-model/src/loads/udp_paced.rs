//! Numbered datagrams at given instants (docs/datagrams.md).

use super::{
    End, Layout, Load, LoopKind, Netperf, Pace, Passing, Protocol, Saying, Shape, Shown, Unit,
};
use crate::quantity::{
    CLIENT_CPU, CLIENT_SWITCHES, CPU_PER_PACKET, GAP_SD, LATENCY_MAX, LATENCY_P50, LATENCY_P99,
    LATENCY_P999, LOST, PACKETS, PDV, PDV_P99, RECEIVER_BUSY, RECEIVER_DROPPED, REORDERED,
    RUN_LENGTH,
};

pub(super) const LOAD: Load = Load {
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
    turn: None,
    passing: Passing::Datagrams,
    fits: |_| Ok(()),
    timed: Some("datagrams"),
    main_figure: LATENCY_P99,
    repeated: &[],
    shown: Shown {
        saying: Saying::LATENCY_P99,
        beside: &[LATENCY_P50, LATENCY_P999, LATENCY_MAX, LOST, PACKETS],
        columns: &[PDV, REORDERED, RECEIVER_BUSY, RECEIVER_DROPPED],
        grids: &[LATENCY_P50, LATENCY_P999, LOST, PDV],
        curves: &[
            PACKETS,
            CLIENT_CPU,
            CPU_PER_PACKET,
            GAP_SD,
            PDV_P99,
            CLIENT_SWITCHES,
            RUN_LENGTH,
        ],
    },
    netperf: Netperf {
        test: "UDP UNIDIRECTIONAL SEND TEST",
        layout: Layout::Datagrams,
    },
    loops: LoopKind::Numbered,
};
