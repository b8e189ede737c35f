//! The document `hopyard/kernels/1`: one plan under several kernels.
//!
//! Fields are only ever added.

use std::collections::BTreeMap;

use hopyard_stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Difference, LoadKind, Peer};

/// Name and version of the document.
pub const KERNELS_SCHEMA: &str = "hopyard/kernels/1";

/// The whole document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelsReport {
    /// [`KERNELS_SCHEMA`].
    pub schema: String,
    /// The kernels, in the order in which they were named.
    pub kernels: Vec<KernelRun>,
    /// A row for each path and peer.
    pub rows: Vec<KernelsRow>,
    /// What else differs between the first kernel that has a run and each other one, by the name of the other.
    pub differences: BTreeMap<String, Vec<Difference>>,
}

/// One kernel and its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelRun {
    /// Its release; with the name it was given in front, if another kernel has the same release.
    pub name: String,
    /// The name it was given: `6.1`, a file, `host`.
    pub asked: String,
    /// Its release as the kernel reports it; absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Whether its CPU was emulated. Then it has no figures.
    pub is_emulated: bool,
    /// The directory of its run.
    pub directory: String,
    /// Why it ended early, or why nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The result of a path on each kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelsRow {
    pub path: String,
    /// Absent if no kernel can build it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// One for each kernel, in their order.
    pub findings: Vec<KernelFinding>,
}

/// The result of a path on one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelFinding {
    /// The worst result of all loads.
    pub works: Works,
    /// Why it does not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The main figure of each load, in the unit of its quantity. None if the CPU was emulated, or if the load was
    /// measured at several values of an axis.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<LoadKind, Estimate>,
}

/// Whether a path works on a kernel, from best to worst. For several loads, the worst counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Works {
    /// Traffic passed, with path proof.
    Proved,
    /// The kernel cannot build it.
    CannotBuild,
    /// Not known: the run ended early.
    Unknown,
    /// Traffic passed over other devices than the path's.
    OtherWay,
    /// No traffic passed, or none was measured.
    Failed,
}

impl Works {
    /// The word in a table.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::OtherWay => "another way",
            Self::Failed => "failed",
            Self::CannotBuild => "cannot build",
            Self::Unknown => "not known",
        }
    }
}
