//! What is asked about a load.

use std::time::Duration;

use crate::Counted;

/// Window of a turn of bulk data or new connections: long against the reading of the clocks, short against bursts of steal.
pub(super) const TURN: Duration = Duration::from_millis(25);
/// Window of a turn of transactions one at a time. Over two CPUs these are fast or slow in a state that lasts some 35 ms
/// (docs/method.md, "How long should a window be?"), and both ends wake up for each of them, so a short window is begun in time.
pub(super) const SHORT_TURN: Duration = Duration::from_millis(10);

/// One load: everything that the stages ask about it.
///
/// No field has a default, so that a new load has to answer each of them.
pub struct Load {
    /// On the command line and in JSON: netperf's name in lower case, where netperf has such a test.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What carries it.
    pub protocol: Protocol,
    /// How its traffic runs.
    pub shape: Shape,
    /// What its work is counted in.
    pub unit: Unit,
    /// Window of a turn (docs/method.md, "Turns"). None where its traffic cannot pause, or would leave something on the path
    /// that arrives in the turn of another cell: its cells take no turns.
    pub turn: Option<Duration>,
    /// What devices on the path must count in a window.
    pub passing: Passing,
    /// Bounds of sizes that depend on each other; the error is a sentence.
    pub fits: fn(Packets) -> Result<(), String>,
    /// What its latencies are of, in words; none where it has none.
    pub timed: Option<&'static str>,
    /// The figure that its cells are about, where no rate is searched for.
    pub main_figure: &'static str,
    /// Quantities that are not compared, since each is another one over the message size.
    pub repeated: &'static [&'static str],
    /// How it reads in reports for people.
    pub shown: Shown,
    /// How it reads in netperf's layout.
    pub netperf: Netperf,
    /// What its two ends do with their sockets.
    pub loops: LoopKind,
}

/// Sizes of a cell that a load may have bounds for.
#[derive(Debug, Clone, Copy)]
pub struct Packets {
    /// Of a message, bytes.
    pub message_bytes: u32,
    /// The MTU of every device, bytes.
    pub mtu_bytes: u32,
    /// Do they go over IPv6, or IPv4?
    pub is_ipv6: bool,
}

/// Quantities of a load that reports show, in their order. Those that were not measured are left out.
pub struct Shown {
    /// How the main figure is spoken of.
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

/// How a main figure is spoken of.
#[derive(Debug, Clone, Copy)]
pub struct Saying {
    /// Is more of it better?
    pub up: bool,
    /// Of the best path: it …
    pub best: &'static str,
    /// Of a path as good as another: it … the other.
    pub alike: &'static str,
    /// The figure itself.
    pub what: &'static str,
}

impl Saying {
    /// Of bulk data.
    pub const RATE: Self = Self {
        up: true,
        best: "carries the most",
        alike: "carries as much as",
        what: "rate",
    };
    /// Of request and response.
    pub const TRANSACTIONS: Self = Self {
        up: true,
        best: "completes the most",
        alike: "completes as much as",
        what: "transactions",
    };
    /// Of datagrams at given instants.
    pub const LATENCY_P99: Self = Self {
        up: false,
        best: "takes the least time at p99",
        alike: "takes as long at p99 as",
        what: "latency (p99)",
    };
    /// Of connections at given instants.
    pub const LATENCY_P50: Self = Self {
        up: false,
        best: "takes the least time at the median",
        alike: "takes as long at the median as",
        what: "latency (median)",
    };
    /// Of a rate that was searched for.
    pub const THROUGHPUT: Self = Self {
        up: true,
        best: "carries the most within its loss",
        alike: "carries as much within its loss as",
        what: "throughput",
    };
}

/// netperf's test of a load.
pub struct Netperf {
    /// What netperf prints first.
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
        /// Between rate and CPU use.
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

/// How the traffic of a load runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Bulk data one way, counted where it arrives.
    Stream {
        /// Who sends it.
        sender: End,
        /// Size of a message where none is asked for, bytes.
        message_bytes: u32,
        /// What may be said of the sender's rate.
        pace: Pace,
        /// Does each datagram carry its number and the time it was sent?
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

/// What may be said of the rate of a stream's sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Nothing: it sends as fast as it can.
    Never,
    /// It may be limited (axis `pace`).
    Optional,
    /// It always has one, and keeps it whether or not the last message got through (open loop). It can be searched for.
    OpenLoop {
        /// Where none is asked for: bit/s of payload, all flows together.
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
    /// For one transaction. Each leaves a socket in TIME_WAIT behind.
    PerTransaction,
    /// The same, and each is opened at its own instant, whether or not those before it have ended (open loop).
    AtInstants {
        /// Where no rate is asked for: connections per second, all flows together.
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
    /// The same, many side by side, each opened when it is due.
    OpenConnections,
}

/// A unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Of a stream.
    Byte,
    /// A datagram.
    Packet,
    /// A request and its response.
    Transaction,
}

impl Unit {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Packet => "packet",
            Self::Transaction => "transaction",
        }
    }

    /// The quantity that is the CPU cost of one.
    pub fn cost(self) -> &'static str {
        match self {
            Self::Byte => "cpu_ns_per_byte",
            Self::Packet => "cpu_ns_per_packet",
            Self::Transaction => "cpu_ns_per_transaction",
        }
    }

    /// The quantity that is their rate, and how many of its own units one of them is.
    pub fn rate(self) -> (&'static str, f64) {
        match self {
            Self::Byte => ("goodput_bps", 8.0),
            Self::Packet => ("packets_per_s", 1.0),
            Self::Transaction => ("transactions_per_s", 1.0),
        }
    }

    /// How many of them were counted.
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
    /// The bytes of a TCP stream in segments of any size; acknowledgements come back as they like.
    Segments,
    /// Datagrams of the message size, each with its headers; nothing has to come back.
    Datagrams,
    /// Packets for each transaction, both ways.
    Exchanges {
        /// Fewest.
        least: f64,
        /// Most, beside two for each segment of the data.
        most_beside_data: f64,
    },
}
