//! The loads: a file for each, and a line for each in the registry below (`docs/adding-a-load.md`).
//!
//! Everything that differs between loads is in their files. The stages ask [`LoadKind::info`], and do not match over loads.

mod descriptor;
mod tcp_conns;
mod tcp_crr;
mod tcp_maerts;
mod tcp_rr;
mod tcp_stream;
mod udp_flood;
mod udp_gso;
mod udp_paced;
mod udp_rr;
mod udp_stream;
mod udp_trace;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::descriptor::{
    Connection, End, Layout, Load, LoopKind, Netperf, Pace, Packets, Passing, Protocol, Saying,
    Shape, Shown, Unit,
};
use self::descriptor::{SHORT_TURN, TURN};
use crate::names::named;

/// Makes [`LoadKind`] from the registry, with each load's descriptor.
macro_rules! loads {
    ($($(#[doc = $doc:literal])+ $kind:ident = $file:ident,)+) => {
        /// The load, by netperf's name.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum LoadKind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl LoadKind {
            /// Every load.
            pub const ALL: [Self; [$(stringify!($kind)),+].len()] = [$(Self::$kind),+];

            /// The load's descriptor.
            pub fn info(self) -> &'static Load {
                match self {
                    $(Self::$kind => &$file::LOAD,)+
                }
            }
        }
    };
}

loads! {
    /// Bulk TCP from the client to the server.
    TcpStream = tcp_stream,
    /// Bulk TCP from the server to the client.
    TcpMaerts = tcp_maerts,
    /// One request and one response at a time over a standing TCP connection.
    TcpRr = tcp_rr,
    /// A TCP connection for each request and response.
    TcpCrr = tcp_crr,
    /// TCP connections opened at given instants, whether or not earlier ones have ended (open loop).
    TcpConns = tcp_conns,
    /// Datagrams from the client to the server as fast as the client can.
    UdpStream = udp_stream,
    /// Datagrams from the client to the server, many for each call.
    UdpGso = udp_gso,
    /// The same from many senders, with numbered datagrams whose arrival is timed.
    UdpFlood = udp_flood,
    /// Numbered datagrams at given instants, whether or not the last one arrived (open loop).
    UdpPaced = udp_paced,
    /// Numbered datagrams with the sizes and at the instants of a trace (open loop).
    UdpTrace = udp_trace,
    /// One request and one response at a time over UDP.
    UdpRr = udp_rr,
}

named!(LoadKind, "load");

impl LoadKind {
    /// Name on the command line and in JSON: netperf's in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// A line about the load.
    #[must_use]
    pub fn summary(self) -> &'static str {
        self.info().summary
    }

    /// Does it run over TCP?
    #[must_use]
    pub fn is_tcp(self) -> bool {
        self.info().protocol == Protocol::Tcp
    }

    /// Whether it carries bulk data one way (counted in bytes) rather than transactions.
    #[must_use]
    pub fn is_stream(self) -> bool {
        matches!(self.info().shape, Shape::Stream { .. })
    }

    /// Are its requests datagrams, which may be lost?
    #[must_use]
    pub fn may_lose_requests(self) -> bool {
        !self.is_stream() && !self.is_tcp()
    }

    /// Does it carry datagrams one way?
    #[must_use]
    pub fn is_udp_stream(self) -> bool {
        self.is_stream() && !self.is_tcp()
    }

    /// Whether each datagram carries its number and the time it was sent.
    #[must_use]
    pub fn is_numbered(self) -> bool {
        matches!(self.info().shape, Shape::Stream { numbered: true, .. })
    }

    /// Does it carry bulk data from the server to the client?
    #[must_use]
    pub fn is_from_server(self) -> bool {
        matches!(
            self.info().shape,
            Shape::Stream {
                sender: End::Server,
                ..
            }
        )
    }

    /// How the rate of its sender can be set; `None` of transactions.
    fn pace(self) -> Option<Pace> {
        match self.info().shape {
            Shape::Stream { pace, .. } => Some(pace),
            Shape::Transactions(_) => None,
        }
    }

    /// Default size of a stream's message, bytes.
    #[must_use]
    pub(crate) fn default_message_size(self) -> Option<u32> {
        match self.info().shape {
            Shape::Stream { message_bytes, .. } if !self.replays() => Some(message_bytes),
            Shape::Stream { .. } | Shape::Transactions(_) => None,
        }
    }

    /// Whether its sender takes a pace.
    #[must_use]
    pub(crate) fn takes_pace(self) -> bool {
        matches!(self.pace(), Some(Pace::Optional | Pace::OpenLoop { .. }))
    }

    /// Default pace of an open loop, bit/s of payload.
    #[must_use]
    pub(crate) fn default_pace_bps(self) -> Option<u64> {
        match self.pace() {
            Some(Pace::OpenLoop { default_bps }) => Some(default_bps),
            _ => None,
        }
    }

    /// Whether its sender keeps its pace whether or not the last message arrived.
    #[must_use]
    pub fn is_open_loop(self) -> bool {
        matches!(self.pace(), Some(Pace::OpenLoop { .. } | Pace::Trace))
    }

    /// Does its sender replay a trace?
    #[must_use]
    pub fn replays(self) -> bool {
        self.pace() == Some(Pace::Trace)
    }

    /// Whether its traffic can pause, so that its cells can take turns.
    #[must_use]
    pub fn pauses(self) -> bool {
        self.info().turn.is_some()
    }

    /// The window of a turn, if its cells can take turns.
    #[must_use]
    pub fn turn(self) -> Option<Duration> {
        self.info().turn
    }

    /// Whether each transaction has a connection of its own.
    #[must_use]
    pub fn connects_anew(self) -> bool {
        matches!(
            self.info().shape,
            Shape::Transactions(Connection::PerTransaction | Connection::AtInstants { .. })
        )
    }

    /// Default connections per second; `None` if connections are not opened at planned instants.
    #[must_use]
    pub fn default_connections_per_s(self) -> Option<u32> {
        match self.info().shape {
            Shape::Transactions(Connection::AtInstants { default_per_s }) => Some(default_per_s),
            Shape::Transactions(_) | Shape::Stream { .. } => None,
        }
    }

    /// Whether its client begins each message or connection at a planned instant, whatever happened to earlier ones.
    #[must_use]
    pub fn keeps_instants(self) -> bool {
        self.default_pace_bps().is_some() || self.default_connections_per_s().is_some()
    }

    /// Whether it makes transactions over flows that last as long as the traffic.
    #[must_use]
    pub fn has_standing_transactions(self) -> bool {
        self.info().shape == Shape::Transactions(Connection::Standing)
    }

    /// Can its sender ask the kernel to send from its memory (axis `zerocopy`)?
    #[must_use]
    pub fn sends_without_copies(self) -> bool {
        self.is_stream() && !self.is_numbered()
    }

    /// Has the worker event loops for it (axis `api`)?
    #[must_use]
    pub fn has_event_loops(self) -> bool {
        matches!(
            self.info().loops,
            LoopKind::Streams | LoopKind::Transactions
        )
    }

    /// Does it open fresh sockets before its traffic, to time the first exchange of each?
    #[must_use]
    pub fn times_first_exchanges(self) -> bool {
        !self.is_tcp() && self.has_standing_transactions()
    }

    /// Whether each flow has one TCP connection that lasts as long as the traffic.
    #[must_use]
    pub fn has_standing_connections(self) -> bool {
        self.is_tcp() && !self.connects_anew()
    }
}

#[cfg(test)]
mod tests;
