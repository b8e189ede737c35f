//! Comparisons within a run: verdicts, the gate, and warnings about a result.

use hopyard_stats::{Estimate, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A comparison with the base path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictReport {
    /// The base: a path, `AXIS=VALUE`, or `offload`; in a contrast of offloads, the other combination.
    pub base: String,
    /// This cell over the base.
    pub ratio: Estimate,
    /// The verdict; absent in a quick look, and if fewer blocks than a verdict needs have the quantity in both cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Smallest |ratio − 1| that this run would have detected four times out of five; absent if it could detect
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_detectable: Option<f64>,
    /// Whether it fails the gate. Absent without a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trips_gate: Option<bool>,
    /// Smallest loss, as a share, that would fail the gate four times out of five; absent if none would, or without a
    /// gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_catches_ratio: Option<f64>,
}

/// A gate: whether any cell is shown to be worse by more than the allowed loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// The loss that is still allowed, as a share.
    pub fail_on_ratio: f64,
    /// Whether any comparison failed it.
    pub failed: bool,
    /// Comparisons that it checked.
    pub comparisons: usize,
    /// Comparisons that failed it.
    pub tripped: usize,
    /// Comparisons that leave such a loss open: those that are too noisy, that saw one and do not show it, that have no verdict, or whose
    /// cell failed in some or all samples. In a diff also cells that B lacks, and those whose figures of B are doubtful.
    pub blind: usize,
    /// How many of `blind` are blind because samples failed or figures are missing, not because of scatter or too few blocks.
    #[serde(default)]
    pub incomplete: usize,
    /// No comparison failed it, but some leave such a loss open: it has neither passed nor failed.
    #[serde(default)]
    pub undecided: bool,
    /// Blocks that a run needs for its gate to detect such a loss in every comparison; absent if it already can, or if
    /// this cannot be estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_needed: Option<u32>,
    /// The same for the gate of a diff: runs that each side needs. It is a minimum if it is not known how much runs of
    /// one thing differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_needed: Option<u32>,
}

/// A warning about a result: a full sentence with advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Kind, stable for scripts.
    pub code: WarningCode,
    /// A full sentence with advice, for people.
    pub message: String,
}

/// Kinds of warnings, stable for scripts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// Other processes used more than 2 % of the machine.
    ForeignCpu,
    /// Other programs started many processes during the measurement: their CPU time may be missed.
    ForeignForks,
    /// The hypervisor took more than 1 %.
    Steal,
    /// Samples have no figures of CPU time, because it is not known precisely enough.
    CpuUnknown,
    /// Cells rest on disturbed turns.
    DisturbedTurns,
    /// /proc/stat does not add up: no split into user, system, softirq.
    Closure,
    /// Both ends ran on one CPU although the plan did not ask for it.
    SharedCpu,
    /// A result within 10 % of what the generator can do without any path.
    GeneratorCeiling,
    /// The machine's default congestion control is not the one used.
    CongestionControl,
    /// The kernel carries debug or tracing features that slow it down.
    DebugKernel,
    /// CPU frequency scaling is active.
    FrequencyScaling,
    /// An offload flag is not what was asked for.
    Offload,
    /// Fewer blocks than a verdict needs.
    QuickLook,
    /// The machine is emulated: shape only.
    Emulated,
    /// Some cell's interval is wider than asked for.
    Width,
    /// A cell has two modes.
    TwoModes,
    /// Windows never settled.
    Unsettled,
    /// Blocks are not independent, or drift.
    Dependent,
    /// The path proof failed.
    Way,
    /// Some cells failed in all or some blocks.
    Failed,
    /// The run ended early.
    CutShort,
    /// CPU time comes from a clock too coarse for the window, or is missing.
    CpuAccounting,
    /// Paths left out because this host cannot build them.
    LeftOut,
    /// A switch forwarded in userspace, because its kernel datapath is missing.
    Datapath,
    /// The pace asked for was not kept.
    Pace,
    /// A trace is longer than the windows that replay it.
    Trace,
    /// A search for a rate ended without both bounds, or with bounds too far apart.
    Search,
    /// A receiver of numbered datagrams did not keep up: its sockets dropped, or its CPU was full.
    Receiver,
    /// Connection tracking of the hub rejected packets or connections.
    Tracking,
    /// A CPU's queue of received packets was full.
    Backlog,
    /// The kernel copied what was to be sent without a copy.
    ZeroCopy,
    /// Nothing arrived of some flows in a window.
    SilentFlows,
    /// Windows were measured again because the machine missed them.
    MissedWindows,
    /// Cells have no counterpart at the base.
    NotCompared,
    /// The two endpoints of `as-is` differ in kernel, CPU, clock source, congestion control, driver, MTU or offloads.
    EndsDiffer,
}

impl WarningCode {
    /// The kind of warning, as text for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::ForeignCpu => "CPU time of other processes",
            Self::ForeignForks => "processes started by others",
            Self::DisturbedTurns => "disturbed turns",
            Self::Steal => "CPU time taken by the hypervisor",
            Self::Closure => "CPU times that do not add up",
            Self::SharedCpu => "both ends on one CPU",
            Self::GeneratorCeiling => "the limit of the load generator",
            Self::CongestionControl => "another congestion control",
            Self::DebugKernel => "debug features of the kernel",
            Self::FrequencyScaling => "frequency scaling",
            Self::Offload => "offloads other than asked for",
            Self::QuickLook => "too few blocks",
            Self::Emulated => "an emulated machine",
            Self::Width => "wide intervals",
            Self::TwoModes => "cells with two modes",
            Self::Unsettled => "windows that never settled",
            Self::Dependent => "blocks that are not independent",
            Self::Way => "a failed path proof",
            Self::Failed => "cells that failed",
            Self::CutShort => "a run that was cut short",
            Self::CpuAccounting => "a coarse clock of CPU time",
            Self::LeftOut => "paths left out",
            Self::Datapath => "forwarding in user space",
            Self::Pace => "a pace that was not kept",
            Self::Trace => "a trace that is longer than a window",
            Self::Search => "a search without both bounds",
            Self::Receiver => "a receiver that did not keep up",
            Self::Tracking => "connections that tracking turned away",
            Self::Backlog => "full queues of received packets",
            Self::ZeroCopy => "copies in place of sends without a copy",
            Self::SilentFlows => "flows of which nothing arrived",
            Self::MissedWindows => "windows measured again",
            Self::NotCompared => "cells without a base",
            Self::EndsDiffer => "endpoints that are not alike",
            Self::CpuUnknown => "CPU time that is not known",
        }
    }
}
