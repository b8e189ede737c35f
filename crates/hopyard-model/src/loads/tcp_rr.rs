//! Transactions over a standing TCP connection: netperf's TCP_RR.

use super::{
    Connection, Layout, Load, LoopKind, Netperf, Passing, Protocol, SHORT_TURN, Saying, Shape,
    Shown, Unit,
};
use crate::quantity::{
    BUSY_CORES, CLIENT_CPU, CLIENT_SWITCHES, CPU_PER_TRANSACTION, LATENCY_P50, LATENCY_P99,
    TRANSACTIONS,
};

pub(super) const LOAD: Load = Load {
    name: "tcp_rr",
    summary: "request/response over a standing TCP connection",
    protocol: Protocol::Tcp,
    shape: Shape::Transactions(Connection::Standing),
    unit: Unit::Transaction,
    turn: Some(SHORT_TURN),
    passing: Passing::Exchanges {
        least: 1.0,
        most_beside_data: 2.0,
    },
    fits: |_| Ok(()),
    timed: Some("transactions"),
    main_figure: TRANSACTIONS,
    repeated: &[],
    shown: Shown {
        saying: Saying::TRANSACTIONS,
        beside: &[],
        columns: &[LATENCY_P50, LATENCY_P99, BUSY_CORES],
        grids: &[],
        curves: &[
            TRANSACTIONS,
            CLIENT_CPU,
            CPU_PER_TRANSACTION,
            LATENCY_P99,
            CLIENT_SWITCHES,
        ],
    },
    netperf: Netperf {
        test: "TCP REQUEST/RESPONSE TEST",
        // netperf prints TCP_RR with one more blank than its other tests.
        layout: Layout::Transactions { gap: "  " },
    },
    loops: LoopKind::Transactions,
};
