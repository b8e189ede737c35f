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
    /// What else differs between the first kernel that has a run and another, by that one's name.
    pub differences: BTreeMap<String, Vec<Difference>>,
}

/// One kernel and its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelRun {
    /// Its release, after what it was named by where another has the same.
    pub name: String,
    /// As it was named: `6.1`, a file, `host`.
    pub asked: String,
    /// Its release, as it says itself; absent where nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Was its CPU a program? Then it has no figures.
    pub is_emulated: bool,
    /// Where its run is.
    pub directory: String,
    /// Why it ended early, or why nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What a path is on each kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelsRow {
    pub path: String,
    /// Absent where no kernel can build it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// One for each kernel, in their order.
    pub findings: Vec<KernelFinding>,
}

/// What a path is on one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelFinding {
    /// Of all loads the worst.
    pub works: Works,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The main figure of each load, in the unit of its quantity; none where the CPU was emulated, or the load was measured at
    /// several values of an axis.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<LoadKind, Estimate>,
}

/// Does a path work on a kernel? From best to worst: of several loads the worst is told.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Works {
    /// Traffic passed, and its way was proved.
    Proved,
    /// The kernel cannot build it.
    CannotBuild,
    /// Nothing is known of it, since its run ended before.
    Unknown,
    /// Traffic passed over other devices than the path's.
    OtherWay,
    /// No traffic passed, or none was measured.
    Failed,
}

impl Works {
    /// In a table.
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
