//! A TCP connection for each transaction: netperf's TCP_CRR.

use super::{
    Connection, Layout, Load, LoopKind, Netperf, Passing, Protocol, Saying, Shape, Shown, TURN,
    Unit,
};
use crate::quantity::{
    BUSY_CORES, CLIENT_CPU, CLIENT_SWITCHES, CONNECT_P50, CONNECT_P99, CPU_PER_TRANSACTION,
    LATENCY_P50, LATENCY_P99, TRANSACTIONS,
};

pub(super) static LOAD: Load = Load {
    name: "tcp_crr",
    summary: "connect, request, response, close over TCP",
    protocol: Protocol::Tcp,
    shape: Shape::Transactions(Connection::PerTransaction),
    unit: Unit::Transaction,
    turn: Some(TURN),
    passing: Passing::Exchanges {
        // SYN, FIN and their acknowledgements.
        least: 2.0,
        most_beside_data: 8.0,
    },
    fits: |_| Ok(()),
    timed: Some("transactions"),
    main_figure: TRANSACTIONS,
    repeated: &[],
    shown: Shown {
        saying: Saying::TRANSACTIONS,
        beside: &[],
        columns: &[
            LATENCY_P50,
            LATENCY_P99,
            CONNECT_P50,
            CONNECT_P99,
            BUSY_CORES,
        ],
        grids: &[CONNECT_P50],
        curves: &[
            TRANSACTIONS,
            CLIENT_CPU,
            CPU_PER_TRANSACTION,
            LATENCY_P99,
            CLIENT_SWITCHES,
        ],
    },
    netperf: Netperf {
        test: "TCP Connect/Request/Response TEST",
        layout: Layout::Transactions { gap: "   " },
    },
    loops: LoopKind::Connections,
};
