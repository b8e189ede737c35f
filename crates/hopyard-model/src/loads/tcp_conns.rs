//! TCP connections that come and go at given instants (docs/requests.md).

use super::{
    Connection, Layout, Load, LoopKind, Netperf, Passing, Protocol, Saying, Shape, Shown, Unit,
};
use crate::quantity::{
    BUSY_CORES, CLIENT_CPU, CLIENT_SWITCHES, CONNECT_P50, CPU_PER_TRANSACTION, LATENCY_MAX,
    LATENCY_P50, LATENCY_P99, LATENCY_P999, TRANSACTIONS, UNFINISHED,
};

pub(super) static LOAD: Load = Load {
    name: "tcp_conns",
    summary: "TCP connections opened at given instants (open loop)",
    protocol: Protocol::Tcp,
    shape: Shape::Transactions(Connection::AtInstants {
        default_per_s: 1000,
    }),
    unit: Unit::Transaction,
    turn: None,
    passing: Passing::Exchanges {
        // SYN, FIN and their acknowledgements.
        least: 2.0,
        most_beside_data: 8.0,
    },
    fits: |_| Ok(()),
    timed: Some("connections"),
    // A window has too few connections for a p99.
    main_figure: LATENCY_P50,
    repeated: &[],
    shown: Shown {
        saying: Saying::LATENCY_P50,
        beside: &[
            LATENCY_P99,
            LATENCY_P999,
            LATENCY_MAX,
            UNFINISHED,
            TRANSACTIONS,
        ],
        columns: &[CONNECT_P50, BUSY_CORES],
        grids: &[LATENCY_P99, LATENCY_P999, UNFINISHED, TRANSACTIONS],
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
    loops: LoopKind::OpenConnections,
};
