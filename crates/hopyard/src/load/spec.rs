//! What one load does, as both ends are told.

use serde::{Deserialize, Serialize};

use crate::model::{Axes, LoadKind};

/// Everything the two ends of a load must agree on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// The traffic.
    pub kind: LoadKind,
    /// Flows. The streams of one CPU share a thread, all others have one each.
    pub flows: u32,
    /// Bytes per send call of a stream.
    pub message_size: u32,
    /// Bytes per request.
    pub request_size: u32,
    /// Bytes per response.
    pub response_size: u32,
    /// `SO_SNDBUF` and `SO_RCVBUF`; `None` leaves the kernel's own sizing.
    pub socket_buffer: Option<u32>,
    /// TCP congestion control that every connection must have.
    pub congestion: Option<String>,
    /// Self-timed work of the responder before each response, ns (known extra cost for `verify`).
    #[serde(default)]
    pub service_time_ns: u64,
}

/// Largest UDP payload over IPv4 (RFC 768, RFC 791).
pub const MAX_DATAGRAM: u32 = 65507;

impl LoadSpec {
    /// The load of a cell.
    #[must_use]
    pub fn new(kind: LoadKind, axes: &Axes) -> Self {
        Self {
            kind,
            flows: axes.flows,
            message_size: axes.message_size_bytes.unwrap_or(1),
            request_size: axes.request_size_bytes.unwrap_or(1),
            response_size: axes.response_size_bytes.unwrap_or(1),
            socket_buffer: axes.socket_buffer_bytes,
            congestion: axes.congestion.clone(),
            service_time_ns: 0,
        }
    }

    /// What is wrong with it, if anything: the bounds that hold for every endpoint.
    ///
    /// # Errors
    /// A sentence naming the value and its bound.
    pub fn check(&self) -> Result<(), String> {
        let sizes = [
            ("message_size", self.message_size),
            ("request_size", self.request_size),
            ("response_size", self.response_size),
        ];
        for (name, size) in sizes {
            if size == 0 {
                return Err(format!("{name} is 0: a message has at least one byte"));
            }
            if !self.kind.is_tcp() && size > MAX_DATAGRAM {
                return Err(format!(
                    "{name} {size} is too large for {}: a datagram holds at most {MAX_DATAGRAM} bytes",
                    self.kind
                ));
            }
        }
        if self.flows == 0 || self.flows > 256 {
            return Err(format!("{} flows: between 1 and 256", self.flows));
        }
        Ok(())
    }
}
