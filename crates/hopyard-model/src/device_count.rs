//! What a device counted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::largest;

/// Counters of one device over the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCount {
    /// Namespace by its role in the lab: `a`, `b`, `hub`, `far`.
    pub namespace: String,
    /// Name of the device in its namespace.
    pub name: String,
    /// Packets (one per skb) received.
    pub rx_packets: u64,
    /// Bytes received, as the device counts them.
    pub rx_bytes: u64,
    /// Packets (one per skb) sent.
    pub tx_packets: u64,
    /// Bytes sent, as the device counts them.
    pub tx_bytes: u64,
    /// Packets dropped on receipt or sending.
    pub dropped: u64,
}

impl DeviceCount {
    /// What a device received and sent, packets and bytes of each; it dropped nothing.
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        [rx_packets, rx_bytes, tx_packets, tx_bytes]: [u64; 4],
    ) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            rx_packets,
            rx_bytes,
            tx_packets,
            tx_bytes,
            dropped: 0,
        }
    }

    /// The largest of its counts, to be compared with what is possible.
    pub(crate) fn largest(&self) -> u64 {
        largest(&[
            self.rx_packets,
            self.rx_bytes,
            self.tx_packets,
            self.tx_bytes,
            self.dropped,
        ])
    }
}
