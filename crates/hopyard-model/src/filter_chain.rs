//! Chains of the user's packet filter rules.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A chain of the user's rules at a netfilter hook in the hub, and whether it sees the traffic of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilterChain {
    /// Address family of its table: `inet`, `bridge`, `ip`, `netdev`.
    pub family: String,
    /// Its table.
    pub table: String,
    /// Its name, unique in its table.
    pub name: String,
    /// The hook: `prerouting`, `forward`, `ingress`.
    pub hook: String,
    /// Whether its policy drops packets that no rule decides about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drops: bool,
    /// Packets that reached it while the lab was tried with traffic of the load, before the run.
    pub packets: u64,
    /// Which part of the traffic these are.
    pub sees: Sees,
}

/// The part of a lab's traffic that reaches a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sees {
    /// A packet for at least every second transaction or datagram, or for 128 KiB of a stream.
    Traffic,
    /// Fewer: the first packets of connections (chains of NAT), or packets of neighbour discovery.
    FewPackets,
    /// None.
    Nothing,
    /// There was too little traffic to decide.
    Unknown,
}

/// From this many transactions, datagrams or largest packets, the traffic can be told from other packets.
const ENOUGH: u64 = 20;

impl Sees {
    /// Judged by the packets that reached the chain and what the receiver counted meanwhile: transactions, datagrams,
    /// or 64 KiB of a stream.
    #[must_use]
    pub fn of(packets: u64, units: u64) -> Self {
        match packets {
            _ if units < ENOUGH => Self::Unknown,
            0 => Self::Nothing,
            packets if packets.saturating_mul(2) >= units => Self::Traffic,
            _ => Self::FewPackets,
        }
    }
}

impl fmt::Display for FilterChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!(
            "{} {} {} (hook {})",
            self.family, self.table, self.name, self.hook
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_packets_are_not_the_traffic() {
        for (packets, units, sees) in [
            (0, 0, Sees::Unknown),
            (1, 0, Sees::Unknown),
            (19, 19, Sees::Unknown),
            (20, 20, Sees::Traffic),
            (0, 100, Sees::Nothing),
            (1, 100, Sees::FewPackets),
            (49, 100, Sees::FewPackets),
            (50, 100, Sees::Traffic),
            (200, 100, Sees::Traffic),
        ] {
            assert_eq!(Sees::of(packets, units), sees, "{packets} of {units}");
        }
    }
}
