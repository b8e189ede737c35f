//! Transactions over a standing TCP connection: netperf's TCP_RR.

use super::{Connection, Load, Passing, Protocol, Shape, Unit};

pub(super) static LOAD: Load = Load {
    name: "tcp_rr",
    summary: "request/response over a standing TCP connection",
    protocol: Protocol::Tcp,
    shape: Shape::Transactions(Connection::Standing),
    unit: Unit::Transaction,
    pauses: true,
    passing: Passing::Exchanges {
        least: 1.0,
        most_beside_data: 2.0,
    },
};
