//! Transactions over UDP: netperf's UDP_RR.

use super::{Connection, Load, Passing, Protocol, Shape, Unit};

pub(super) static LOAD: Load = Load {
    name: "udp_rr",
    summary: "request/response over UDP",
    protocol: Protocol::Udp,
    shape: Shape::Transactions(Connection::Standing),
    unit: Unit::Transaction,
    pauses: true,
    passing: Passing::Exchanges {
        least: 1.0,
        most_beside_data: 2.0,
    },
};
