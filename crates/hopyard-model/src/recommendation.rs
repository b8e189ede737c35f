//! The recommendation: the best path for each load, and the reasons.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::names::named;
use super::{Axes, LoadKind, Peer, VerdictReport};
use hopyard_stats::Estimate;

/// A property that a user may need of a path besides its speed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// Packet filter rules of the host see the traffic.
    Filter,
    /// It puts an endpoint into a VLAN by itself: untagged inside, tagged on the wire.
    Vlan,
    /// The endpoint reaches the host's own addresses, and the host needs no further device for that.
    HostAccess,
    /// A user without privilege can build it in a user namespace of their own.
    Unprivileged,
    /// It finds further Ethernet addresses behind an endpoint by itself: those of a bridge inside a container.
    Learning,
}

impl Feature {
    /// Every feature there is.
    pub const ALL: [Self; 5] = [
        Self::Filter,
        Self::Vlan,
        Self::HostAccess,
        Self::Unprivileged,
        Self::Learning,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Vlan => "vlan",
            Self::HostAccess => "host-access",
            Self::Unprivileged => "unprivileged",
            Self::Learning => "learning",
        }
    }
}

named!(Feature, "need");

/// The recommendation by load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// What a path must offer to be recommended.
    pub needs: Vec<Feature>,
    /// One for each load, peer and setting with something to choose from.
    pub choices: Vec<Choice>,
    /// What would change it, a sentence each.
    pub conditions: Vec<String>,
}

/// The recommendation for one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Where the other end is.
    pub peer: Peer,
    /// The load.
    pub load: LoadKind,
    /// Axis values that all candidates share.
    pub axes: Axes,
    /// The quantity by which candidates are ranked.
    pub quantity: String,
    /// The recommended path; several paths are a tie; empty if none can be recommended, see `reason`.
    pub best: Vec<Candidate>,
    /// The other candidates, the best of them first: shown to be slower than the fastest, or not among the cheapest.
    pub others: Vec<Candidate>,
    /// Paths that were not candidates, and why.
    pub left_out: Vec<NoCandidate>,
    /// Why none is recommended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A path that could be chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Name of the path.
    pub path: String,
    /// Its axis values, its own included.
    pub axes: Axes,
    /// Estimate of [`Choice::quantity`], by which candidates are ranked.
    pub figure: Estimate,
    /// Its CPU cost, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Estimate>,
    /// Name of the quantity → comparison with the candidate with the best figure (the `base`); empty for that one
    /// itself. All comparisons of a recommendation are judged together.
    pub versus: BTreeMap<String, VerdictReport>,
}

/// A path that could not be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoCandidate {
    /// Name of the path.
    pub path: String,
    /// Why not, as the text that follows its name in a sentence.
    pub reason: String,
}
