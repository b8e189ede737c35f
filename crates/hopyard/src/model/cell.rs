//! Cells: one combination of path, peer, load and axis values.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Axes;

/// A name that is not in its list; says what would have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} `{name}`: choose {choices}")]
pub struct UnknownName {
    /// What was looked for: `path`, `load`, `axis`, …
    pub kind: &'static str,
    /// The name that was asked for.
    pub name: String,
    /// The names to choose from.
    pub choices: String,
}

/// Whom an endpoint talks to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// A second endpoint on the same path.
    Local,
    /// Namespace `far`, over the wire.
    Far,
    /// The hub itself.
    Host,
}

impl Peer {
    /// Every peer there is.
    pub const ALL: [Self; 3] = [Self::Local, Self::Far, Self::Host];

    /// The name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Far => "far",
            Self::Host => "host",
        }
    }
}

/// The traffic, by netperf's names.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// Bulk TCP from the client to the server.
    TcpStream,
    /// Bulk TCP from the server to the client.
    TcpMaerts,
    /// One request and one response at a time over a standing TCP connection.
    TcpRr,
    /// A TCP connection for each request and response.
    TcpCrr,
    /// Datagrams from the client to the server as fast as the client can.
    UdpStream,
    /// The same from many senders, with numbered datagrams whose arrival is timed.
    UdpFlood,
    /// Numbered datagrams at given instants, whether or not the last one got through (open loop).
    UdpPaced,
    /// One request and one response at a time over UDP.
    UdpRr,
}

impl LoadKind {
    /// Every load there is.
    pub const ALL: [Self; 8] = [
        Self::TcpStream,
        Self::TcpMaerts,
        Self::TcpRr,
        Self::TcpCrr,
        Self::UdpStream,
        Self::UdpFlood,
        Self::UdpPaced,
        Self::UdpRr,
    ];

    /// netperf's name in lower case, as on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TcpStream => "tcp_stream",
            Self::TcpMaerts => "tcp_maerts",
            Self::TcpRr => "tcp_rr",
            Self::TcpCrr => "tcp_crr",
            Self::UdpStream => "udp_stream",
            Self::UdpFlood => "udp_flood",
            Self::UdpPaced => "udp_paced",
            Self::UdpRr => "udp_rr",
        }
    }

    /// What the load does, in a line.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::TcpStream => "bulk TCP, client to server",
            Self::TcpMaerts => "bulk TCP, server to client",
            Self::TcpRr => "request/response over a standing TCP connection",
            Self::TcpCrr => "connect, request, response, close over TCP",
            Self::UdpStream => "datagrams, client to server, as fast as the client can",
            Self::UdpFlood => "best-effort senders side by side: loss, jitter and bursts by flow",
            Self::UdpPaced => "datagrams at given instants (open loop): one-way latency and jitter",
            Self::UdpRr => "request/response over UDP",
        }
    }

    /// Does it carry bulk data one way (counted in bytes) rather than transactions?
    #[must_use]
    pub fn is_stream(self) -> bool {
        matches!(self, Self::TcpStream | Self::TcpMaerts) || self.is_udp_stream()
    }

    /// Does it carry datagrams one way?
    #[must_use]
    pub fn is_udp_stream(self) -> bool {
        self == Self::UdpStream || self.is_numbered()
    }

    /// Does each datagram carry its number and the time it was sent?
    #[must_use]
    pub fn is_numbered(self) -> bool {
        matches!(self, Self::UdpFlood | Self::UdpPaced)
    }

    /// Does it run over TCP?
    #[must_use]
    pub fn is_tcp(self) -> bool {
        matches!(
            self,
            Self::TcpStream | Self::TcpMaerts | Self::TcpRr | Self::TcpCrr
        )
    }
}

/// Display and `FromStr` of what has names and a list of all.
macro_rules! named {
    ($type:ty, $kind:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                Self::ALL
                    .into_iter()
                    .find(|v| v.name() == text)
                    .ok_or_else(|| UnknownName {
                        kind: $kind,
                        name: text.to_owned(),
                        choices: Self::ALL.map(Self::name).join(", "),
                    })
            }
        }
    };
}

pub(super) use named;

named!(Peer, "peer");
named!(LoadKind, "load");

/// One combination of path, peer, load and axis values; the unit that is measured and compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// A path of the registry.
    pub path: String,
    /// Whom the endpoint talks to.
    pub peer: Peer,
    /// The traffic.
    pub load: LoadKind,
    /// The values of every axis that matters for this load.
    pub axes: Axes,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.path, self.peer, self.load)
    }
}
