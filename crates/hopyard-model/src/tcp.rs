//! What TCP itself counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::largest;

/// TCP's counters in the window, summed over the flows (`tcp_info`, include/uapi/linux/tcp.h).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpSummary {
    /// Segments sent again, both ends.
    pub retransmits: u64,
    /// Payload that the receiver's kernel received, whether or not the program read it, bytes.
    #[serde(default)]
    pub bytes_received: u64,
    /// Time the sender had data in flight or to send, ns.
    pub busy_ns: u64,
    /// Part of that limited by the receiver's window, ns.
    pub receive_window_limited_ns: u64,
    /// Part of that limited by the send buffer, ns.
    pub send_buffer_limited_ns: u64,
    /// Time in which all this was counted, ns: of cells that take turns also what passed between their windows. 0: the window.
    #[serde(default)]
    pub span_ns: u64,
}

impl TcpSummary {
    /// Sum over flows.
    #[must_use]
    pub fn sum(flows: &[Self]) -> Self {
        flows
            .iter()
            .fold(Self::default(), |sum, flow| sum.plus(*flow))
    }

    /// The difference to an earlier reading.
    #[must_use]
    pub fn since(self, start: Self) -> Self {
        Self {
            retransmits: self.retransmits - start.retransmits,
            bytes_received: self.bytes_received - start.bytes_received,
            busy_ns: self.busy_ns - start.busy_ns,
            receive_window_limited_ns: self.receive_window_limited_ns
                - start.receive_window_limited_ns,
            send_buffer_limited_ns: self.send_buffer_limited_ns - start.send_buffer_limited_ns,
            span_ns: self.span_ns,
        }
    }

    /// Sums of two flows.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            retransmits: self.retransmits + other.retransmits,
            bytes_received: self.bytes_received + other.bytes_received,
            busy_ns: self.busy_ns + other.busy_ns,
            receive_window_limited_ns: self.receive_window_limited_ns
                + other.receive_window_limited_ns,
            send_buffer_limited_ns: self.send_buffer_limited_ns + other.send_buffer_limited_ns,
            span_ns: self.span_ns.max(other.span_ns),
        }
    }

    /// The largest of its counts, to be compared with what is possible.
    #[must_use]
    pub fn largest(self) -> u64 {
        largest(&[
            self.retransmits,
            self.bytes_received,
            self.busy_ns,
            self.receive_window_limited_ns,
            self.send_buffer_limited_ns,
            self.span_ns,
        ])
    }
}
