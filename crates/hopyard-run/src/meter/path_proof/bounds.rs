//! Within which bounds a device's counters must be, by what was counted at the ends.

use super::{ProofSegment, Traffic};
use crate::loads::Passing;
use crate::model::{Counted, MOST_OPEN};
use crate::units::float;

/// Share of the counted traffic that may fall beside the window at its edges.
const EDGE: f64 = 0.10;
/// Packets that come and go without the load (ARP, neighbour discovery).
pub(super) const CHATTER_PACKETS: f64 = 64.0;
/// One full socket buffer may be counted at one end and not yet at the other.
const IN_FLIGHT_BYTES: f64 = 8.0 * 1024.0 * 1024.0;
/// Of a transaction one way, with a connection of its own.
const MOST_PACKETS: f64 = 10.0;
/// Ethernet, IPv6, TCP with options, and a tunnel's headers on top, bytes.
const HEADERS_BYTES: f64 = 200.0;

/// What was counted over one span, for another that begins or ends a little apart from it: it may have stopped
/// between the two, or gone on as before.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bracket {
    /// Smallest count that fits.
    pub least: Counted,
    /// Largest count that fits.
    pub most: Counted,
}

impl Bracket {
    /// Of a count, for a span longer by the factor `stretch` than the one that it was counted over.
    #[must_use]
    pub fn over(count: Counted, stretch: f64) -> Self {
        Self {
            least: count.times(stretch.min(1.0)),
            most: count.times(stretch.max(1.0)),
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
    /// Did its sender send nothing? Of datagrams that says that it never ran: anybody else's may wait for an answer.
    fn had_no_turn(&self) -> bool {
        self.load.is_udp_stream() && [self.sent, self.received] == [Bracket::default(); 2]
    }
}

/// Of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    pub(super) unit: &'static str,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Bounds {
    /// With room for a burst, where the segment is a part of the whole; a device that nothing passed is no part of it,
    /// unless nothing was sent: who got no turn on a crowded CPU proves nothing and refutes nothing.
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

/// What one direction must carry. `None`: anything (acknowledgements of a stream come as they like).
pub(super) fn expected(traffic: Traffic<'_>, forward: bool) -> Option<Bounds> {
    let axes = traffic.axes;
    let segment = f64::from(axes.mtu_bytes) - 100.0;
    let low = (1.0 - EDGE) * float(traffic.received.least.bytes);
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
            // TCP may join what is in flight into one packet.
            let joined = if traffic.load.is_tcp() { flying } else { 1.0 };
            // All of what is in flight may pass before the window, or after it; and packets of connections that do not end
            // belong to no transaction.
            let flows = f64::from(axes.flows);
            let begun = (flying - 1.0) * flows;
            let unfinished = match axes.connections_per_s {
                Some(_) => f64::from(MOST_OPEN) * flows,
                None => 0.0,
            };
            Some(Bounds {
                unit: "packets",
                // However few: a device that nothing passed refutes the way.
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
