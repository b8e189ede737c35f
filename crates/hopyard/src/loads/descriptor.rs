//! What is asked about a load.

use crate::model::Counted;

/// One load: everything that the stages ask about it.
///
/// No field has a default, so that a new load has to answer each of them.
pub(crate) struct Load {
    /// On the command line and in JSON: netperf's name in lower case, where netperf has such a test.
    pub(crate) name: &'static str,
    /// What it does, in a line.
    pub(crate) summary: &'static str,
    /// What carries it.
    pub(crate) protocol: Protocol,
    /// How its traffic runs.
    pub(crate) shape: Shape,
    /// What its work is counted in.
    pub(crate) unit: Unit,
    /// Can its traffic pause, and leave nothing on the way that would arrive in the turn of another cell? Only such loads
    /// take turns (docs/method.md, "Turns").
    pub(crate) pauses: bool,
    /// What devices on the path must count in a window.
    pub(crate) passing: Passing,
}

/// The transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

/// How the traffic of a load runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
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
pub(crate) enum End {
    Client,
    Server,
}

/// What may be said of the rate of a stream's sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Nothing: it sends as fast as it can.
    Never,
    /// It may be limited (axis `pace`).
    Optional,
    /// It always has one, and keeps it whether or not the last message got through (open loop). It can be searched for.
    OpenLoop {
        /// Where none is asked for: bit/s of payload, all flows together.
        default_bps: u64,
    },
}

/// How long the connection of a flow lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connection {
    /// As long as the traffic.
    Standing,
    /// For one transaction. Each leaves a socket in TIME_WAIT behind.
    PerTransaction,
}

/// A unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Byte,
    Packet,
    Transaction,
}

impl Unit {
    /// How many of them were counted.
    pub(crate) fn count(self, counted: Counted) -> u64 {
        match self {
            Self::Byte => counted.bytes,
            Self::Packet => counted.messages,
            Self::Transaction => counted.transactions,
        }
    }
}

/// What devices on the path must count in a window, by what was counted at the ends (`meter/path_proof`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Passing {
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
