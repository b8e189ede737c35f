//! The questions: tables of paths compared with a veth pair. For some the answer is known beforehand.

use hopyard::model::{LoadKind, Placement};
use serde::Serialize;

use crate::scenario::Scenario;
use crate::tools::Tool;

/// The additional CPU time of a transaction of the slowed cell.
pub(super) const SLOWDOWN: f64 = 0.05;
/// Requests and datagrams that differ by a byte or two cost the same within this share.
const ALIKE: f64 = 0.001;
/// The time of a transaction is known within this share.
const TRANSACTION: f64 = 0.10;
/// IPv4 and TCP with timestamps (RFC 7323): headers of a packet from the IP header on, bytes.
const TCP_HEADERS: u32 = 20 + 20 + 12;

/// A table: the first cell is the base of the others.
#[derive(Debug)]
pub(crate) struct Question {
    /// Name for `--only` and the tables.
    pub(super) name: &'static str,
    pub(super) load: LoadKind,
    pub(super) placement: Placement,
    /// The tool that makes this load.
    pub(super) tool: Tool,
    /// The cells: each path with each message size.
    pub(super) paths: &'static [&'static str],
    pub(super) sizes: &'static [u32],
    /// Packets with messages of this size are slowed.
    pub(super) slowed: Option<u32>,
    /// Whether it is part of `--quick`.
    pub(super) quick: bool,
}

/// One path with one message size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Cell {
    pub(super) path: &'static str,
    pub(super) size: u32,
}

/// The range of a cell's true ratio to the base.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Truth {
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The cost of slowed packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extra {
    /// Time of a transaction of the base, ns.
    pub(super) transaction_ns: f64,
    /// Time added to a transaction of the slowed cell, ns.
    pub(super) extra_ns: f64,
}

use LoadKind::{TcpRr, TcpStream, UdpStream};
use Placement::{Same, Split};

/// Every table. 14 bytes is the least that sockperf sends.
pub(super) static QUESTIONS: &[Question] = &[
    Question {
        name: "tcp_rr_known",
        load: TcpRr,
        // Both ends on one CPU, which is never idle: added work lengthens a transaction by exactly that.
        placement: Same,
        tool: Tool::Sockperf,
        paths: &["veth"],
        sizes: &[14, 15, 16],
        slowed: Some(16),
        quick: false,
    },
    asked("tcp_rr_paths", TcpRr, &["veth", "bridge", "direct"], &[14]),
    Question {
        quick: true,
        ..asked(
            "tcp_stream_paths",
            TcpStream,
            &["veth", "bridge"],
            &[20_000],
        )
    },
    asked(
        "udp_stream_paths",
        UdpStream,
        &["veth", "bridge", "direct"],
        &[1400],
    ),
    asked("tcp_stream_sizes", TcpStream, &["veth"], &[20_000, 20_016]),
    Question {
        quick: true,
        ..asked("udp_stream_equal", UdpStream, &["veth"], &[1400, 1401])
    },
];

const fn asked(
    name: &'static str,
    load: LoadKind,
    paths: &'static [&'static str],
    sizes: &'static [u32],
) -> Question {
    Question {
        name,
        load,
        placement: Split,
        tool: match load {
            TcpStream | UdpStream => Tool::Iperf3,
            _ => Tool::Sockperf,
        },
        paths,
        sizes,
        slowed: None,
        quick: false,
    }
}

impl Question {
    /// The base and the others, in the order of `hopyard run`.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let of = |&path| self.sizes.iter().map(move |&size| Cell { path, size });
        self.paths.iter().flat_map(of).collect()
    }

    /// The load of a cell for the other tools.
    pub(super) fn scenario(&self, cell: Cell) -> Scenario {
        Scenario {
            name: self.name,
            load: self.load,
            size: cell.size,
            flows: 1,
            placement: self.placement,
            tools: &[],
            remark: "",
        }
    }

    /// The axis of the sizes.
    pub(super) fn axis(&self) -> &'static str {
        if self.load.is_stream() {
            "message_size"
        } else {
            "request_size"
        }
    }

    /// Bytes of a slowed packet from the IP header on.
    pub(super) fn slow_length(&self) -> Option<u32> {
        self.slowed.map(|size| size + TCP_HEADERS)
    }

    /// The range of a cell's true ratio to the base, if it is known.
    pub(super) fn truth(&self, cell: Cell, extra: Option<Extra>) -> Option<Truth> {
        let base = self.cells()[0];
        if cell.path != base.path {
            return None;
        }
        if self.slowed == Some(cell.size) {
            return extra.map(Extra::truth);
        }
        // How much of a packet each write fills depends on its size, by more than is to be seen here.
        if self.load == LoadKind::TcpStream {
            return None;
        }
        // Datagrams cost the same, so bytes are in the ratio of their sizes.
        let ratio = if self.load.is_udp_stream() {
            f64::from(cell.size) / f64::from(base.size)
        } else {
            1.0
        };
        Some(Truth {
            low: ratio * (1.0 - ALIKE),
            high: ratio * (1.0 + ALIKE),
        })
    }
}

impl Extra {
    /// The ratio of the rates, given what is known of the time of a transaction.
    fn truth(self) -> Truth {
        let ratio = |share: f64| {
            let transaction_ns = self.transaction_ns * (1.0 + share);
            transaction_ns / (transaction_ns + self.extra_ns)
        };
        Truth {
            low: ratio(-TRANSACTION),
            high: ratio(TRANSACTION),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_bases_are_veth() {
        let mut names: Vec<_> = QUESTIONS.iter().map(|q| q.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), QUESTIONS.len());
        for question in QUESTIONS {
            assert_eq!(question.cells()[0].path, "veth", "{}", question.name);
            assert!(question.tool.peer().is_some(), "{}", question.name);
        }
    }

    #[test]
    fn truths() {
        let known = &QUESTIONS[0];
        let [_, equal, slow] = known.cells()[..] else {
            panic!("three cells")
        };
        let extra = Extra {
            transaction_ns: 10_000.0,
            extra_ns: 500.0,
        };
        let truth = known.truth(slow, Some(extra)).unwrap();
        assert!(
            truth.low < 1.0 / 1.05 && 1.0 / 1.05 < truth.high,
            "{truth:?}"
        );
        assert!(truth.high < 0.96 && truth.low > 0.94, "{truth:?}");
        assert_eq!(known.truth(slow, None), None);
        let truth = known.truth(equal, Some(extra)).unwrap();
        assert!(truth.low < 1.0 && 1.0 < truth.high, "{truth:?}");
        for name in ["tcp_rr_paths", "tcp_stream_sizes"] {
            let unknown = QUESTIONS.iter().find(|q| q.name == name).unwrap();
            assert_eq!(unknown.truth(unknown.cells()[1], None), None, "{name}");
        }
    }

    #[test]
    fn a_slowed_packet_is_longer_than_those_of_the_other_cells() {
        let known = &QUESTIONS[0];
        assert_eq!(known.slow_length(), Some(68));
        assert_eq!(known.sizes.last().copied(), known.slowed);
    }
}
