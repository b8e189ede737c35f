//! Bulk TCP from the server to the client: netperf's TCP_MAERTS.

use super::{
    End, Layout, Load, LoopKind, Netperf, Pace, Passing, Protocol, Saying, Shape, Shown, TURN, Unit,
};
use crate::quantity::{
    BUSY_CORES, BYTES_PER_SKB, CLIENT_CPU, CLIENT_SWITCHES, CPU_PER_BYTE, GOODPUT, RETRANSMITS,
    ZERO_COPY_COPIED,
};

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
    turn: Some(TURN),
    passing: Passing::Segments,
    fits: |_| Ok(()),
    timed: None,
    main_figure: GOODPUT,
    repeated: &[],
    shown: Shown {
        saying: Saying::RATE,
        beside: &[],
        columns: &[BUSY_CORES, BYTES_PER_SKB, RETRANSMITS, ZERO_COPY_COPIED],
        grids: &[],
        curves: &[GOODPUT, CLIENT_CPU, CPU_PER_BYTE, CLIENT_SWITCHES],
    },
    netperf: Netperf {
        test: "TCP MAERTS TEST",
        layout: Layout::Maerts,
    },
    loops: LoopKind::Streams,
};
