//! Numbered datagrams from many parallel senders (docs/datagrams.md).

use super::{
    End, Layout, Load, LoopKind, Netperf, Pace, Passing, Protocol, Saying, Shape, Shown, Unit,
};
use crate::quantity::{
    CLIENT_CPU, CLIENT_SWITCHES, CPU_PER_PACKET, GAP_SD, GOODPUT, LOST, PACKETS, PDV, PDV_P99,
    RECEIVER_BUSY, RECEIVER_DROPPED, REORDERED, RUN_LENGTH,
};

pub(super) const LOAD: Load = Load {
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
    turn: None,
    passing: Passing::Datagrams,
    fits: |_| Ok(()),
    timed: None,
    main_figure: GOODPUT,
    repeated: &[],
    shown: Shown {
        saying: Saying::RATE,
        beside: &[PACKETS, LOST],
        columns: &[RUN_LENGTH, PDV, REORDERED, RECEIVER_BUSY, RECEIVER_DROPPED],
        grids: &[LOST, PDV, RUN_LENGTH],
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
