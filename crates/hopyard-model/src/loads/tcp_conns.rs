//! TCP connections that come and go at given instants (docs/requests.md).

use super::{Connection, Load, LoopKind, Saying, Shape, Shown, tcp_crr};
use crate::quantity::{
    BUSY_CORES, CONNECT_P50, LATENCY_MAX, LATENCY_P50, LATENCY_P99, LATENCY_P999, TRANSACTIONS,
    UNFINISHED,
};

pub(super) const LOAD: Load = Load {
    name: "tcp_conns",
    summary: "TCP connections opened at given instants (open loop)",
    shape: Shape::Transactions(Connection::AtInstants {
        default_per_s: 1000,
    }),
    turn: None,
    timed: Some("connections"),
    // A window has too few connections for a p99.
    main_figure: LATENCY_P50,
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
        ..tcp_crr::LOAD.shown
    },
    loops: LoopKind::OpenConnections,
    ..tcp_crr::LOAD
};
