//! A TCP connection for each transaction: netperf's TCP_CRR.

use super::{Connection, Layout, Load, LoopKind, Netperf, Passing, Shape, Shown, TURN, tcp_rr};
use crate::quantity::{BUSY_CORES, CONNECT_P50, CONNECT_P99, LATENCY_P50, LATENCY_P99};

pub(super) const LOAD: Load = Load {
    name: "tcp_crr",
    summary: "connect, request, response, close over TCP",
    shape: Shape::Transactions(Connection::PerTransaction),
    turn: Some(TURN),
    passing: Passing::Exchanges {
        // SYN, FIN and their acknowledgements.
        least: 2.0,
        most_beside_data: 8.0,
    },
    shown: Shown {
        columns: &[
            LATENCY_P50,
            LATENCY_P99,
            CONNECT_P50,
            CONNECT_P99,
            BUSY_CORES,
        ],
        grids: &[CONNECT_P50],
        ..tcp_rr::LOAD.shown
    },
    netperf: Netperf {
        test: "TCP Connect/Request/Response TEST",
        layout: Layout::Transactions { gap: "   " },
    },
    loops: LoopKind::Connections,
    ..tcp_rr::LOAD
};
