//! Bulk TCP from the client to the server: netperf's TCP_STREAM.

use super::{
    End, Layout, Load, LoopKind, Netperf, Pace, Passing, Protocol, Saying, Shape, Shown, TURN, Unit,
};
use crate::quantity::{
    BUSY_CORES, BYTES_PER_SKB, CLIENT_CPU, CLIENT_SWITCHES, CPU_PER_BYTE, GOODPUT, RETRANSMITS,
    ZERO_COPY_COPIED,
};

pub(super) const LOAD: Load = Load {
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
        test: "TCP STREAM TEST",
        layout: Layout::Stream,
    },
    loops: LoopKind::Streams,
};
