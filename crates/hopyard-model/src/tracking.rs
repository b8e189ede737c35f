//! Counters of the hub's connection tracking and of the kernel's queues of received packets in a window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::largest;

/// Connection tracking (nf_conntrack) of the hub.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrackingCounts {
    /// Connections in the table when the window closed.
    pub entries: u64,
    /// The most there may be (`nf_conntrack_max`); 0 if the kernel does not report it.
    pub limit: u64,
    /// Packets dropped in the window because the table was full or no entry could be made.
    pub dropped: u64,
    /// Entries removed in the window to make room for new ones.
    pub early_dropped: u64,
    /// Entries that could not be inserted in the window.
    pub insert_failed: u64,
}

impl TrackingCounts {
    /// The difference to an earlier reading; the size of the table is the current one.
    #[must_use]
    pub fn since(self, start: Self) -> Self {
        Self {
            dropped: self.dropped.saturating_sub(start.dropped),
            early_dropped: self.early_dropped.saturating_sub(start.early_dropped),
            insert_failed: self.insert_failed.saturating_sub(start.insert_failed),
            ..self
        }
    }

    /// Whether it rejected packets or connections.
    #[must_use]
    pub fn has_losses(self) -> bool {
        self.dropped + self.early_dropped + self.insert_failed > 0
    }

    /// Whether there is hardly any room left. The kernel also counts entries that are being removed.
    #[must_use]
    pub fn is_full(self) -> bool {
        self.limit > 0 && self.entries >= self.limit - self.limit / 50
    }

    /// The largest of its counts, to be compared with what is possible.
    #[must_use]
    pub fn largest(self) -> u64 {
        largest(&[
            self.entries,
            self.limit,
            self.dropped,
            self.early_dropped,
            self.insert_failed,
        ])
    }
}

/// The connections between clients and server as the hub tracked them when the window closed. They prove a path that
/// translates addresses or forwards by a flow table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// The address that the clients connected to: the server's, or a service's.
    pub to: String,
    /// Connections to it in the table.
    pub tracked: u64,
    /// What the path does with them.
    pub expected: Treatment,
    /// Connections for which this was so when the window closed. A flow table drops a connection that ends, so there it is the larger
    /// of the counts at both edges of the window.
    pub as_expected: u64,
    /// Connections that a rule handed to a flow table since the lab was built, if the path has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<u64>,
}

impl Connections {
    /// With the number of an earlier reading, if more connections were as expected then.
    #[must_use]
    pub fn with_earlier(self, earlier: Option<Self>) -> Self {
        let earlier = earlier.map_or(0, |earlier| earlier.as_expected);
        Self {
            as_expected: self.as_expected.max(earlier),
            ..self
        }
    }

    /// The largest of its counts.
    #[must_use]
    pub fn largest(&self) -> u64 {
        largest(&[
            self.tracked,
            self.as_expected,
            self.handed_over.unwrap_or(0),
        ])
    }
}

/// What the hub does with connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// They leave with another source address.
    SourceTranslated,
    /// They leave for another destination address.
    DestinationTranslated,
    /// A flow table forwards them.
    Offloaded,
}

impl Treatment {
    /// The treatment in words, as said about a connection.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::SourceTranslated => "has its source address translated",
            Self::DestinationTranslated => "is translated to the server's address",
            Self::Offloaded => "is forwarded by the flow table",
        }
    }
}
