//! Comparisons within a run: verdicts and the gate; and doubts about a result.

use hopyard_stats::{Estimate, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A comparison with the base path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictReport {
    /// The base: a path, `AXIS=VALUE`, or `offload`; in a contrast of offloads the other combination.
    pub base: String,
    /// This cell over the base.
    pub ratio: Estimate,
    /// The verdict; absent in a quick look, and where fewer blocks than a verdict needs have the quantity in both cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Smallest |ratio − 1| that this run would have shown four times out of five; absent where it could show nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_detectable: Option<f64>,
    /// Does it trip the gate? Absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trips_gate: Option<bool>,
    /// Smallest loss, as a share, that would trip the gate four times out of five; absent where none would, or there is no gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_catches_ratio: Option<f64>,
}

/// A gate: is any cell shown to be worse in B by more than so much?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// The loss that is still let through, as a share.
    pub fail_on_ratio: f64,
    /// Did anything trip it?
    pub failed: bool,
    /// Comparisons that it looked at.
    pub comparisons: usize,
    /// Of those, the ones that tripped it.
    pub tripped: usize,
    /// Of those, the ones that could not tell a loss of that size from none: too noisy, or without a verdict.
    pub blind: usize,
    /// Nothing tripped it, but it could not have seen such a loss everywhere: it has neither passed nor failed.
    #[serde(default)]
    pub undecided: bool,
    /// Blocks that a run would need for its gate to see such a loss everywhere; absent where it can, or nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_needed: Option<u32>,
    /// The same of the gate of a diff: runs that each side would need. It is the least number where it is not known how much
    /// runs of one thing differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_needed: Option<u32>,
}

/// A doubt about a result: a full sentence with advice.
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
    /// Other people's processes used more than 2 % of the machine.
    ForeignCpu,
    /// Many processes were started by others while measuring: their CPU time may be missed.
    ForeignForks,
    /// The hypervisor took more than 1 %.
    Steal,
    /// Samples have no figures of CPU time, because it is not known closely enough.
    CpuUnknown,
    /// Cells are made of turns that something disturbed.
    DisturbedTurns,
    /// /proc/stat does not add up: no split into user, system, softirq.
    Closure,
    /// Both ends ran on one CPU though nobody asked for it.
    SharedCpu,
    /// A result within 10 % of what the generator can do with no path at all.
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
    /// The way could not be proved.
    Way,
    /// Some cells failed in all or some blocks.
    Failed,
    /// The run ended before its plan did.
    CutShort,
    /// CPU time comes from a clock too coarse for the window, or is missing.
    CpuAccounting,
    /// Paths left out because this host cannot build them.
    LeftOut,
    /// A switch forwarded in userspace for want of its kernel datapath.
    Datapath,
    /// The pace asked for was not kept.
    Pace,
    /// A trace is longer than the windows that replay it.
    Trace,
    /// A search for a rate ended without both bounds, or with bounds too far apart.
    Search,
    /// A receiver of numbered datagrams did not keep up: its sockets dropped, or its CPU was full.
    Receiver,
    /// Connection tracking of the hub turned packets or connections away.
    Tracking,
    /// A CPU's queue of received packets was full.
    Backlog,
    /// The kernel copied what was to be sent without a copy.
    ZeroCopy,
    /// Nothing arrived of some flows in a window.
    SilentFlows,
    /// Windows were measured again because the machine was taken away.
    MissedWindows,
    /// Cells have no counterpart at the base that others are compared with.
    NotCompared,
    /// The two endpoints of `as-is` differ in kernel, CPU, clock source, congestion control, driver, MTU or offloads.
    EndsDiffer,
}

impl WarningCode {
    /// What it is, for people.
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
            Self::Way => "a way that was not proved",
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
