//! Transactions over UDP: netperf's UDP_RR.

use super::{Layout, Load, Netperf, Protocol, Shown, tcp_rr};
use crate::quantity::{
    BUSY_CORES, FIRST_EXCHANGE_MAX, FIRST_EXCHANGE_P50, LATENCY_P50, LATENCY_P99,
};

pub(super) const LOAD: Load = Load {
    name: "udp_rr",
    summary: "request/response over UDP",
    protocol: Protocol::Udp,
    shown: Shown {
        columns: &[
            LATENCY_P50,
            LATENCY_P99,
            FIRST_EXCHANGE_P50,
            FIRST_EXCHANGE_MAX,
            BUSY_CORES,
        ],
        grids: &[FIRST_EXCHANGE_P50],
        ..tcp_rr::LOAD.shown
    },
    netperf: Netperf {
        test: "UDP REQUEST/RESPONSE TEST",
        layout: Layout::Transactions { gap: "   " },
    },
    ..tcp_rr::LOAD
};
