//! What connection tracking of the hub says of the way, and of failures; and what the kernel's list of Unix sockets says of it.

use super::Error;
use crate::lab::Lab;
use crate::model::loads::{Connection, Shape};
use crate::model::{Cell, Connections, PathProof, Treatment};
use crate::units::float;

/// Connections that last one transaction: this many are certainly in the table when the window closes. With more, ports
/// may be reused, and an entry then belongs to a later connection.
const MOST_PER_TRANSACTION: f64 = 10_000.0;
/// Share of the count that may fall outside the window at its edges.
const EDGE: f64 = 0.10;

/// Compares the connections of a hub with the traffic: each must be treated as the path says.
pub(super) fn hold(way: &mut PathProof, connections: &Connections, cell: &Cell, transactions: u64) {
    let anew = matches!(
        cell.load.info().shape,
        Shape::Transactions(Connection::PerTransaction)
    );
    let least = if anew {
        ((1.0 - EDGE) * float(transactions))
            .min(MOST_PER_TRANSACTION)
            .floor()
    } else {
        f64::from(cell.axes.flows)
    };
    let words = connections.expected.words();
    let seen = match connections.expected {
        // The table removes a connection when it ends.
        Treatment::Offloaded if anew => connections.handed_over.unwrap_or(0),
        _ => connections.as_expected,
    };
    if float(seen) < least {
        way.problems.push(format!(
            "hub tracks {} connections to {}, and of {seen} it says that each {words}, where the traffic has {least:.0} or more",
            connections.tracked, connections.to
        ));
    } else if connections.expected != Treatment::Offloaded && seen < connections.tracked {
        way.problems.push(format!(
            "hub tracks {} connections to {}, and of {} it does not say that each {words}",
            connections.tracked,
            connections.to,
            connections.tracked - seen
        ));
    }
    way.proved = way.problems.is_empty();
}

/// Holds the connections of Unix sockets that the kernel lists against the traffic: each flow that stands has one. There are no
/// packets that it would count.
pub(super) fn hold_unix(way: &mut PathProof, seen: u64, cell: &Cell) {
    let flows = u64::from(cell.axes.flows);
    if cell.load.has_standing_connections() && seen < flows {
        way.problems.push(format!(
            "the kernel lists {seen} connections of Unix sockets between both ends, where the traffic has {flows}"
        ));
    }
    way.proved = way.problems.is_empty();
}

/// What lies behind a failure where the hub's table of connections has no room for more.
pub(super) fn cause_of(error: Error, lab: &Lab) -> Error {
    let is_traffic = matches!(error, Error::Worker(_) | Error::Nothing { .. });
    if !is_traffic || error.is_interrupt() {
        return error;
    }
    match lab.tracking_counts() {
        Ok(Some(counts)) if counts.is_full() && counts.has_losses() => Error::TableFull {
            entries: counts.entries,
            limit: counts.limit,
            dropped: counts.dropped,
            source: Box::new(error),
        },
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axes, LoadKind, Peer};

    fn held(load: LoadKind, expected: Treatment, tracked: u64, as_expected: u64) -> Vec<String> {
        let cell = Cell {
            path: "bridge-nat".to_owned(),
            peer: Peer::Local,
            load,
            axes: Axes {
                flows: 4,
                ..Axes::default()
            },
        };
        let connections = Connections {
            to: "198.18.32.2".to_owned(),
            tracked,
            expected,
            as_expected,
            handed_over: Some(900),
        };
        let mut way = PathProof {
            proved: true,
            problems: Vec::new(),
        };
        hold(&mut way, &connections, &cell, 1000);
        assert_eq!(way.proved, way.problems.is_empty());
        way.problems
    }

    #[test]
    fn every_flow_has_a_connection_of_unix_sockets() {
        let held = |load: LoadKind, seen: u64| {
            let axes = Axes {
                flows: 4,
                ..Axes::default()
            };
            let cell = Cell {
                path: "unix".to_owned(),
                peer: Peer::Local,
                load,
                axes,
            };
            let mut way = PathProof {
                proved: true,
                problems: Vec::new(),
            };
            hold_unix(&mut way, seen, &cell);
            way.proved
        };
        assert!(held(LoadKind::TcpStream, 4));
        assert!(!held(LoadKind::TcpStream, 3));
        assert!(!held(LoadKind::TcpRr, 0));
        // Its connections come and go: there may be none at an instant.
        assert!(held(LoadKind::TcpCrr, 0));
    }

    #[test]
    fn every_connection_is_to_be_treated_as_the_path_says() {
        use Treatment::{DestinationTranslated, Offloaded, SourceTranslated};
        let stream = LoadKind::TcpStream;
        assert!(held(stream, SourceTranslated, 4, 4).is_empty());
        // Other loads have left some in the same lab.
        assert!(held(stream, DestinationTranslated, 50, 50).is_empty());
        assert!(held(stream, Offloaded, 50, 4).is_empty());
        for (tracked, done) in [(0, 0), (4, 0), (4, 3), (50, 49)] {
            assert_eq!(held(stream, SourceTranslated, tracked, done).len(), 1);
        }
        assert!(held(LoadKind::TcpCrr, SourceTranslated, 1000, 1000).is_empty());
        assert_eq!(held(LoadKind::TcpCrr, SourceTranslated, 4, 4).len(), 1);
        assert!(held(LoadKind::TcpCrr, Offloaded, 1000, 0).is_empty());
        assert_eq!(held(stream, Offloaded, 4, 3).len(), 1);
    }
}
