//! The scenarios: each is one load with its sizes, and the tools that can make it.

use hopyard::model::{Axes, LoadKind, Peer, Placement};

use crate::tools::Tool;

/// One comparison.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// Name for `--only` and the tables.
    pub(crate) name: &'static str,
    /// The load.
    pub(crate) load: LoadKind,
    /// Bytes per write, request and response, or datagram.
    pub(crate) size: u32,
    /// Connections side by side.
    pub(crate) flows: u32,
    /// CPUs of the two ends.
    pub(crate) placement: Placement,
    /// hopyard first, then the other tools that can make the load.
    pub(crate) tools: &'static [Tool],
    /// A remark about the tools in this scenario.
    pub(crate) remark: &'static str,
}

const KIB: u32 = 1024;
const STREAM: &[Tool] = &[Tool::Hopyard, Tool::Iperf3, Tool::Iperf2, Tool::Nuttcp];
const PING_PONG: &[Tool] = &[Tool::Hopyard, Tool::Sockperf];
const BOUNCE: &[Tool] = &[Tool::Hopyard, Tool::Iperf2];
const DATAGRAMS: &[Tool] = &[
    Tool::Hopyard,
    Tool::Iperf3,
    Tool::Iperf2,
    Tool::Nuttcp,
    Tool::Sockperf,
];
const ONE_THREAD: &str = "hopyard, iperf3 before 3.16 and nuttcp serve all flows of a CPU from one thread; \
                          iperf2 has a thread for each";
const SMALLEST: &str = "14 bytes is the least that sockperf sends";
const BB_SIZE: &str = "iperf2's bounceback with its default size, without quick acknowledgements";
const RECEIVED: &str = "counted is what the receiving program took in; sent is printed beside it";
const NUMBERED: &str = "hopyard's receiver keeps account of order, delay and bursts of each flow, by the kernel's time stamps";

const fn stream(name: &'static str, size: u32, flows: u32, remark: &'static str) -> Scenario {
    Scenario {
        name,
        load: LoadKind::TcpStream,
        size,
        flows,
        placement: Placement::Split,
        tools: STREAM,
        remark,
    }
}

const fn rr(
    name: &'static str,
    load: LoadKind,
    size: u32,
    placement: Placement,
    tools: &'static [Tool],
    remark: &'static str,
) -> Scenario {
    Scenario {
        name,
        load,
        size,
        flows: 1,
        placement,
        tools,
        remark,
    }
}

const fn datagrams(name: &'static str, load: LoadKind, remark: &'static str) -> Scenario {
    Scenario {
        name,
        load,
        size: 64,
        flows: 1,
        placement: Split,
        tools: DATAGRAMS,
        remark,
    }
}

use LoadKind::{TcpRr, UdpRr};
use Placement::{Same, Split};

/// Every comparison.
pub(crate) static SCENARIOS: &[Scenario] = &[
    stream("tcp_stream_16k", 16 * KIB, 1, ""),
    stream("tcp_stream_16k_x4", 16 * KIB, 4, ONE_THREAD),
    stream("tcp_stream_128k", 128 * KIB, 1, ""),
    stream("tcp_stream_128k_x4", 128 * KIB, 4, ONE_THREAD),
    rr("tcp_rr", TcpRr, 14, Split, PING_PONG, SMALLEST),
    rr("tcp_rr_same", TcpRr, 14, Same, PING_PONG, SMALLEST),
    rr("tcp_rr_100", TcpRr, 100, Split, BOUNCE, BB_SIZE),
    rr("tcp_rr_100_same", TcpRr, 100, Same, BOUNCE, BB_SIZE),
    rr("udp_rr", UdpRr, 14, Split, PING_PONG, SMALLEST),
    rr("udp_rr_same", UdpRr, 14, Same, PING_PONG, SMALLEST),
    datagrams("udp_stream_64", LoadKind::UdpStream, RECEIVED),
    datagrams("udp_flood_64", LoadKind::UdpFlood, NUMBERED),
];

impl Scenario {
    /// The scenario as axes of a cell.
    pub(crate) fn axes(&self) -> Axes {
        Axes {
            flows: self.flows,
            message_size_bytes: Some(self.size),
            request_size_bytes: Some(self.size),
            response_size_bytes: Some(self.size),
            placement: self.placement,
            ..Axes::default()
        }
        .for_cell(self.load, Peer::Local, &[])
    }

    /// The scenario in one line.
    pub(crate) fn summary(&self) -> String {
        let flows = if self.flows == 1 {
            "1 flow".to_owned()
        } else {
            format!("{} flows", self.flows)
        };
        format!(
            "{} of {} B, {flows}, placement {}",
            self.load, self.size, self.placement
        )
    }

    /// What the figures count, and the divisor for printing.
    pub(crate) fn unit(&self) -> Unit {
        match self.load {
            LoadKind::TcpStream | LoadKind::TcpMaerts => Unit {
                rate: "Gbit/s",
                per_rate: 1e9 / 8.0,
                cost: "ns/KiB",
                per_cost: 1.0 / 1024.0,
            },
            load if load.is_udp_stream() => Unit {
                rate: "kpackets/s",
                per_rate: 1e3,
                cost: "ns/packet",
                per_cost: 1.0,
            },
            _ => Unit {
                rate: "ktransactions/s",
                per_rate: 1e3,
                cost: "ns/transaction",
                per_cost: 1.0,
            },
        }
    }
}

/// Units of a scenario's figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    /// Unit of the rate.
    pub(crate) rate: &'static str,
    /// Units of work per second in one of these.
    pub(crate) per_rate: f64,
    /// Unit of the CPU cost.
    pub(crate) cost: &'static str,
    /// ns per unit of work in one of these.
    pub(crate) per_cost: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_hopyard_first_and_a_peer() {
        for scenario in SCENARIOS {
            assert_eq!(scenario.tools[0], Tool::Hopyard, "{}", scenario.name);
            assert!(scenario.tools.len() > 1, "{}", scenario.name);
            assert!(
                scenario.tools[1..].iter().all(|tool| tool.peer().is_some()),
                "{}",
                scenario.name
            );
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = SCENARIOS.iter().map(|s| s.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SCENARIOS.len());
    }

    #[test]
    fn axes_hold_the_sizes() {
        assert_eq!(SCENARIOS[0].axes().message_size_bytes, Some(16384));
        assert_eq!(SCENARIOS[4].axes().request_size_bytes, Some(14));
        assert_eq!(SCENARIOS[4].axes().congestion.as_deref(), Some("cubic"));
    }
}
