//! A TCP connection for each transaction: netperf's TCP_CRR.

use super::{Connection, Load, Passing, Protocol, Shape, Unit};

pub(super) static LOAD: Load = Load {
    name: "tcp_crr",
    summary: "connect, request, response, close over TCP",
    protocol: Protocol::Tcp,
    shape: Shape::Transactions(Connection::PerTransaction),
    unit: Unit::Transaction,
    pauses: true,
    passing: Passing::Exchanges {
        // SYN, FIN and their acknowledgements.
        least: 2.0,
        most_beside_data: 8.0,
    },
};
