//! The descriptor of a load.

use std::time::Duration;

use crate::Counted;

/// Window of a turn of bulk data or new connections: long compared with reading the clocks, short compared with bursts
/// of steal.
pub(super) const TURN: Duration = Duration::from_millis(25);
/// Window of a turn of single transactions. Between two CPUs these are fast or slow in a state that lasts some 35 ms
/// (docs/method.md, "How long should a window be?"). Both ends wake up for each transaction, so the window starts in
/// time although it is short.
pub(super) const SHORT_TURN: Duration = Duration::from_millis(10);

/// One load: everything that the stages need to know about it.
///
/// Each load gives every field, or takes the rest from a load that it names (`..tcp_rr::LOAD`): who adds a field looks at those too.
pub struct Load {
    /// Name on the command line and in JSON: netperf's name in lower case, if netperf has such a test.
    pub name: &'static str,
    /// A line about it.
    pub summary: &'static str,
    /// Its transport protocol.
    pub protocol: Protocol,
    /// The pattern of its traffic.
    pub shape: Shape,
    /// The unit of its work.
    pub unit: Unit,
    /// Window of a turn (docs/method.md, "Turns"). None if its traffic cannot pause, or would leave packets on the path
    /// that arrive in the turn of another cell: then its cells take no turns.
    pub turn: Option<Duration>,
    /// What devices on the path must count in a window.
    pub passing: Passing,
    /// Bounds of sizes that depend on each other; the error is a sentence.
    pub fits: fn(Packets) -> Result<(), String>,
    /// What its latencies measure; none if it has none.
    pub timed: Option<&'static str>,
    /// The figure that its cells are about, unless a rate is searched for.
    pub main_figure: &'static str,
    /// Quantities that are not compared, because each is another one divided by the message size.
    pub repeated: &'static [&'static str],
    /// Its appearance in reports for people.
    pub shown: Shown,
    /// Its appearance in netperf's layout.
    pub netperf: Netperf,
    /// What its two ends do with their sockets.
    pub loops: LoopKind,
}

/// Sizes of a cell that a load's bounds may depend on.
#[derive(Debug, Clone, Copy)]
pub struct Packets {
    /// Size of a message, bytes.
    pub message_bytes: u32,
    /// The MTU of every device, bytes.
    pub mtu_bytes: u32,
    /// Whether the packets are IPv6 rather than IPv4.
    pub is_ipv6: bool,
}

/// Quantities of a load that reports show, in this order. Those that were not measured are left out.
pub struct Shown {
    /// The words for the main figure.
    pub saying: Saying,
    /// Columns beside the main figure.
    pub beside: &'static [&'static str],
    /// Columns after the CPU cost.
    pub columns: &'static [&'static str],
    /// Grids of swept axes after those of the main figure and the CPU cost.
    pub grids: &'static [&'static str],
    /// Curves against a count.
    pub curves: &'static [&'static str],
}

/// The words for a main figure.
#[derive(Debug, Clone, Copy)]
pub struct Saying {
    /// Whether more of it is better.
    pub up: bool,
    /// For the best path: it …
    pub best: &'static str,
    /// For a path as good as another: it … the other.
    pub alike: &'static str,
    /// The figure itself.
    pub what: &'static str,
}

impl Saying {
    /// For bulk data.
    pub const RATE: Self = Self {
        up: true,
        best: "carries the most",
        alike: "carries as much as",
        what: "rate",
    };
    /// For request and response.
    pub const TRANSACTIONS: Self = Self {
        up: true,
        best: "completes the most",
        alike: "completes as much as",
        what: "transactions",
    };
    /// For datagrams at given instants.
    pub const LATENCY_P99: Self = Self {
        up: false,
        best: "takes the least time at p99",
        alike: "takes as long at p99 as",
        what: "latency (p99)",
    };
    /// For connections at given instants.
    pub const LATENCY_P50: Self = Self {
        up: false,
        best: "takes the least time at the median",
        alike: "takes as long at the median as",
        what: "latency (median)",
    };
    /// For a rate that was searched for.
    pub const THROUGHPUT: Self = Self {
        up: true,
        best: "carries the most within its loss",
        alike: "carries as much within its loss as",
        what: "throughput",
    };
}

/// netperf's test of a load.
pub struct Netperf {
    /// The first line that netperf prints.
    pub test: &'static str,
    /// Header and lines.
    pub layout: Layout,
}

/// A layout of netperf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The client sends a stream.
    Stream,
    /// The client receives one.
    Maerts,
    /// A line for each end: datagrams may be lost.
    Datagrams,
    /// A rate, and the CPU use of both ends.
    Transactions {
        /// The blanks between rate and CPU use.
        gap: &'static str,
    },
}

/// The transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
}

/// The pattern of a load's traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Bulk data one way, counted where it arrives.
    Stream {
        /// The sending end.
        sender: End,
        /// Default size of a message, bytes.
        message_bytes: u32,
        /// How the sender's rate can be set.
        pace: Pace,
        /// Whether each datagram carries its number and the time it was sent.
        numbered: bool,
    },
    /// One request and one response at a time, counted at the client.
    Transactions(Connection),
}

/// An end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The end that connects.
    Client,
    /// The end that is connected to.
    Server,
}

/// How the rate of a stream's sender can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Not at all: it sends as fast as it can.
    Never,
    /// It may be limited (axis `pace`).
    Optional,
    /// It always has one, and keeps it whether or not the last message arrived (open loop). It can be searched for.
    OpenLoop {
        /// Default, bit/s of payload, all flows together.
        default_bps: u64,
    },
    /// Each message has a size and an instant of its own, by a trace (axis `trace`), and keeps them whether or not the last one got
    /// through (open loop).
    Trace,
}

/// How long the connection of a flow lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// As long as the traffic.
    Standing,
    /// One transaction. Each leaves a socket in TIME_WAIT.
    PerTransaction,
    /// One transaction, and each is opened at its own instant, whether or not earlier ones have ended (open loop).
    AtInstants {
        /// Default connections per second, all flows together.
        default_per_s: u32,
    },
}

/// What the two ends of a load do with their sockets. The worker has a file for each (`load/loops`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopKind {
    /// A call sends one message of a stream, or one datagram.
    Streams,
    /// A call sends several datagrams, which the kernel cuts and joins (`UDP_SEGMENT`, `UDP_GRO`).
    Segments,
    /// Datagrams with number and time, many flows to one receiver.
    Numbered,
    /// Request and response over a standing connection, or in datagrams.
    Transactions,
    /// A connection for each request and response.
    Connections,
    /// The same, many in parallel, each opened when it is due.
    OpenConnections,
}

/// A unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A byte of a stream.
    Byte,
    /// A datagram.
    Packet,
    /// A request and its response.
    Transaction,
}

impl Unit {
    /// The word for the unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Packet => "packet",
            Self::Transaction => "transaction",
        }
    }

    /// The quantity that is the CPU cost of one unit.
    pub fn cost(self) -> &'static str {
        match self {
            Self::Byte => "cpu_ns_per_byte",
            Self::Packet => "cpu_ns_per_packet",
            Self::Transaction => "cpu_ns_per_transaction",
        }
    }

    /// The quantity that is the rate of units, and how many of its own units one of them is.
    pub fn rate(self) -> (&'static str, f64) {
        match self {
            Self::Byte => ("goodput_bps", 8.0),
            Self::Packet => ("packets_per_s", 1.0),
            Self::Transaction => ("transactions_per_s", 1.0),
        }
    }

    /// How many units were counted.
    pub fn count(self, counted: Counted) -> u64 {
        match self {
            Self::Byte => counted.bytes,
            Self::Packet => counted.messages,
            Self::Transaction => counted.transactions,
        }
    }
}

/// What devices on the path must count in a window, by what was counted at the ends (`meter/path_proof`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Passing {
    /// The bytes of a TCP stream in segments of any size; any number of acknowledgements.
    Segments,
    /// Datagrams of the message size, each with its headers; no packets back are required.
    Datagrams,
    /// Packets for each transaction, in both directions.
    Exchanges {
        /// The least.
        least: f64,
        /// The most, besides two for each segment of the data.
        most_beside_data: f64,
    },
}
