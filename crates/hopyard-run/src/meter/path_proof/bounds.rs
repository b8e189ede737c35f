//! Bounds of a device's counters, by what the ends counted.

use std::ops::Range;

use super::{ProofSegment, Traffic};
use crate::loads::Passing;
use crate::model::{Counted, MOST_OPEN};
use crate::units::float;

/// Share of the counted traffic that may fall outside the window at its edges.
const EDGE: f64 = 0.10;
/// Packets besides the load (ARP, neighbour discovery).
pub(super) const CHATTER_PACKETS: f64 = 64.0;
/// One full socket buffer may be counted at one end and not yet at the other, and be read later.
const IN_FLIGHT_BYTES: f64 = 8.0 * 1024.0 * 1024.0;
/// The largest share of what a receiver counts in a window that may have been sent before the window opened. On a slow path a full
/// socket buffer holds more than a window carries.
const SENT_BEFORE: f64 = 0.5;
/// The most packets of a transaction in one direction, with a connection of its own.
const MOST_PACKETS: f64 = 10.0;
/// Ethernet, IPv6, TCP with options, and a tunnel's headers, bytes.
const HEADERS_BYTES: f64 = 200.0;

/// A count over one span, converted to another span that begins or ends at slightly different times: traffic may have
/// stopped between the two, or gone on as before.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bracket {
    /// Smallest possible count.
    pub least: Counted,
    /// Largest possible count.
    pub most: Counted,
}

impl Bracket {
    /// From a count over `counted_ns`, for devices that were watched this long.
    #[must_use]
    pub fn over(count: Counted, counted_ns: u64, watched: Watched) -> Self {
        let stretch = |watched_ns: u64| float(watched_ns) / float(counted_ns.max(1));
        Self {
            least: count.times(stretch(watched.shortest_ns).min(1.0)),
            most: count.times(stretch(watched.longest_ns).max(1.0)),
        }
    }
}

/// How long devices were watched. They are read one after the other, so that each is watched for a time of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// No device was watched for less, ns.
    pub shortest_ns: u64,
    /// None for longer, ns.
    pub longest_ns: u64,
}

impl Watched {
    /// Between two readings of all of them, each with the instants at which it began and ended, ns.
    #[must_use]
    pub fn between(first: Range<u64>, last: Range<u64>) -> Self {
        Self {
            shortest_ns: last.start.saturating_sub(first.end),
            longest_ns: last.end.saturating_sub(first.start),
        }
    }

    /// Of these devices and of others that were watched elsewhere.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            shortest_ns: self.shortest_ns.min(other.shortest_ns),
            longest_ns: self.longest_ns.max(other.longest_ns),
        }
    }
}

/// All of them were watched equally long.
impl From<u64> for Watched {
    fn from(ns: u64) -> Self {
        Self {
            shortest_ns: ns,
            longest_ns: ns,
        }
    }
}

impl From<Counted> for Bracket {
    fn from(count: Counted) -> Self {
        Self {
            least: count,
            most: count,
        }
    }
}

impl Traffic<'_> {
    /// Whether its sender sent nothing. For datagrams this means that it did not run; with other loads the sender may
    /// have waited for an answer.
    fn had_no_turn(&self) -> bool {
        self.load.is_udp_stream() && [self.sent, self.received] == [Bracket::default(); 2]
    }
}

/// Bounds of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    pub(super) unit: &'static str,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Bounds {
    /// Bounds with the tolerance for bursts, if the segment has one. A device that counted nothing is not on the path,
    /// unless nothing was sent: a sender that did not run on a crowded CPU proves nothing either way.
    pub(super) fn of(self, segment: &ProofSegment<'_>) -> Self {
        let Some(burst) = segment.burst else {
            return self;
        };
        let burst = match self.unit {
            "packets" => CHATTER_PACKETS + MOST_PACKETS * float(burst.transactions),
            _ => IN_FLIGHT_BYTES + float(burst.bytes),
        };
        Self {
            low: (self.low - burst).max(if segment.traffic.had_no_turn() {
                0.0
            } else {
                1.0
            }),
            high: self.high + burst,
            ..self
        }
    }
}

/// What one direction must carry. `None`: anything, as for acknowledgements of a stream.
pub(super) fn expected(traffic: Traffic<'_>, forward: bool) -> Option<Bounds> {
    let axes = traffic.axes;
    let segment = f64::from(axes.mtu_bytes) - 100.0;
    let received = float(traffic.received.least.bytes);
    let low = ((1.0 - EDGE) * received - IN_FLIGHT_BYTES).max((1.0 - SENT_BEFORE) * received);
    let carries_data = forward != traffic.load.is_from_server();
    match traffic.load.info().passing {
        Passing::Segments if carries_data => {
            let bytes = float(traffic.sent.most.bytes.max(traffic.received.most.bytes));
            let most = bytes * (1.0 + EDGE) * (1.0 + HEADERS_BYTES / segment);
            Some(Bounds {
                unit: "bytes",
                low,
                high: most + IN_FLIGHT_BYTES,
            })
        }
        Passing::Datagrams if carries_data => {
            let messages = float(traffic.sent.most.messages);
            let packets = match axes.message_size_bytes {
                Some(message) => messages * (f64::from(message) / segment).ceil(),
                // Each has a size of its own.
                None => messages + float(traffic.sent.most.bytes) / segment,
            };
            let most = (float(traffic.sent.most.bytes) + packets * HEADERS_BYTES) * (1.0 + EDGE);
            Some(Bounds {
                unit: "bytes",
                low,
                high: most + IN_FLIGHT_BYTES,
            })
        }
        Passing::Segments | Passing::Datagrams => None,
        Passing::Exchanges {
            least: at_least,
            most_beside_data,
        } => {
            let size = if forward {
                axes.request_size_bytes
            } else {
                axes.response_size_bytes
            };
            let segments = (f64::from(size.unwrap_or(1)) / segment).ceil();
            let at_most = most_beside_data + 2.0 * segments;
            let Bracket { least, most } = traffic.received;
            let flying = f64::from(axes.outstanding.unwrap_or(1));
            // TCP may join requests in flight into one packet.
            let joined = if traffic.load.is_tcp() { flying } else { 1.0 };
            // Everything in flight may pass before or after the window. Packets of connections that do not end belong
            // to no transaction.
            let flows = f64::from(axes.flows);
            let begun = (flying - 1.0) * flows;
            let unfinished = match axes.connections_per_s {
                Some(_) => f64::from(MOST_OPEN) * flows,
                None => 0.0,
            };
            Some(Bounds {
                unit: "packets",
                // However few: a device that counted nothing fails the proof.
                low: ((1.0 - EDGE) * float(least.transactions) * at_least / joined
                    - CHATTER_PACKETS
                    - begun)
                    .max(1.0),
                high: ((1.0 + EDGE) * float(most.transactions) + begun + unfinished) * at_most
                    + CHATTER_PACKETS,
            })
        }
    }
}
