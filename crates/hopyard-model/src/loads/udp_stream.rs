//! Datagrams as fast as the client can send them: netperf's UDP_STREAM.

use super::{
    End, Layout, Load, LoopKind, Netperf, Pace, Passing, Protocol, Saying, Shape, Shown, TURN, Unit,
};
use crate::quantity::{
    BUSY_CORES, BYTES_PER_SKB, CLIENT_CPU, CLIENT_SWITCHES, CPU_PER_BYTE, CPU_PER_PACKET, GOODPUT,
    LOST, PACKETS, ZERO_COPY_COPIED,
};

pub(super) const LOAD: Load = Load {
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
    turn: Some(TURN),
    passing: Passing::Datagrams,
    fits: |_| Ok(()),
    timed: None,
    main_figure: GOODPUT,
    repeated: &[PACKETS, CPU_PER_BYTE],
    shown: Shown {
        saying: Saying::RATE,
        beside: &[PACKETS, LOST],
        columns: &[BUSY_CORES, BYTES_PER_SKB, ZERO_COPY_COPIED],
        grids: &[],
        curves: &[GOODPUT, CLIENT_CPU, CPU_PER_PACKET, CLIENT_SWITCHES],
    },
    netperf: Netperf {
        test: "UDP UNIDIRECTIONAL SEND TEST",
        layout: Layout::Datagrams,
    },
    loops: LoopKind::Streams,
};
