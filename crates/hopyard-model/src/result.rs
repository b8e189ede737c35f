//! The document `hopyard/run/1`: the results of a run, for scripts (`--json`) and for every report.
//!
//! Fields are only ever added. Names contain SI base units. What was not measured is absent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Axes, CurveReport, Datapath, Disturbance, EndpointsUsed, Environment, Feature, FilterChain,
    FlowArrivals, Gate, GuestUsed, LatencyReport, LinkEnd, LoadKind, OffloadReport, Peer,
    ProfileReport, Published, Recommendation, Searched, SeriesReport, SettingsReport, TraceSummary,
    VerdictReport, Warning,
};
use hopyard_stats::Estimate;

/// The document `hopyard/run/1`: one run with everything estimated from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// Always `hopyard/run/1`.
    pub schema: String,
    /// What was run, when, for how long and on which machine.
    pub run: RunSummary,
    /// Published figures of the plan's report, one entry per table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Effects of offloads, if the run is a sweep of them (`hopyard doctor --offloads`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloads: Option<OffloadReport>,
    /// The recommendation by load, if there is something to choose from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<Recommendation>,
    /// One entry per cell, in the plan's order.
    pub cells: Vec<CellReport>,
    /// Quantities as functions of a count, one entry for each set of cells that differ in nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<CurveReport>,
    /// Result of the gate on the comparisons with the base, if there was one (`--fail-on`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// What a reader must know before trusting a figure.
    pub warnings: Vec<Warning>,
}

/// What was run, when, for how long and on which machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Its id: time and plan.
    pub id: String,
    /// Name of the plan.
    pub plan: String,
    /// Seed of every random order.
    pub seed: u64,
    /// When it began (RFC 3339).
    pub started: String,
    /// Path, or value of an axis (`ports=2`), that others are compared with; a cell without it names another one in its
    /// verdicts. `offload`: all offloads on or off, as the cell has them apart from single flags; a cell with all off
    /// is compared with all on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Number of complete blocks: each has a sample of every cell.
    pub blocks: u32,
    /// Length of a measured window, s.
    pub window_s: f64,
    /// Traffic before each window that is not counted, s.
    pub warm_up_s: f64,
    /// From the start of the first sample to the end of the last one, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_s: Option<f64>,
    /// Confidence of every interval.
    pub confidence: f64,
    /// Difference below which two cells count as equivalent, as a share.
    pub margin: f64,
    /// Half-width at which measuring may stop, as a share.
    pub half_width: f64,
    /// Whether every cell reached that width.
    pub half_width_reached: bool,
    /// Fewer blocks than a verdict needs: figures without verdicts.
    pub quick_look: bool,
    /// Whether the run ended as planned.
    pub complete: bool,
    /// Other use of the machine in the measured windows; absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<MachineOverhead>,
    /// The turns, if cells took turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnsReport>,
    /// The settings of this host, if the run compares two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsReport>,
    /// The traces that were replayed (load `udp_trace`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceSummary>,
    /// The machine and kernel that the run was made on.
    pub environment: Environment,
}

/// Short windows of compared cells, taken side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnsReport {
    /// Length of the longest, s.
    pub window_s: f64,
    /// Length of the shortest, s, if loads differ by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortest_window_s: Option<f64>,
    /// How many were taken, all cells and blocks together.
    pub taken: u32,
    /// How many of them were disturbed, by cause; such turns are repeated while time allows.
    pub disturbed: BTreeMap<Disturbance, u32>,
    /// Fewest and most rounds of a block, repeated ones included.
    pub rounds: (u32, u32),
}

/// Use of the machine by everything except the load, over all measured windows; shares of all CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineOverhead {
    /// CPU time of processes that do not belong to hopyard.
    pub foreign_ratio: f64,
    /// Taken by the hypervisor.
    pub steal_ratio: f64,
    /// CPU time of hopyard's controller, which drives the workers.
    pub controller_ratio: f64,
    /// The idle machine's own use.
    pub baseline_ratio: f64,
    /// Sum of the columns of /proc/stat over the time that passed; 1 if they add up.
    pub closure: f64,
}

/// Whether the cell has figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CellStatus {
    /// It has figures.
    Ok,
    /// It has none, or not all of them: see `cause`.
    Failed,
    /// This host cannot build it: see `cause`.
    Unsupported,
}

/// One cell with its estimates, verdicts and evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellReport {
    /// Name of the path.
    pub path: String,
    /// Where the other end is.
    pub peer: Peer,
    /// The load.
    pub load: LoadKind,
    /// Values of every axis that matters for this load.
    pub axes: Axes,
    /// Whether it has figures.
    pub status: CellStatus,
    /// Why not, or why some samples are missing.
    pub cause: Option<String>,
    /// Name of the quantity (with its unit) → estimate.
    pub estimates: BTreeMap<String, Estimate>,
    /// Name of the quantity → comparison with the base path.
    pub verdicts: BTreeMap<String, VerdictReport>,
    /// Two groups of values in one cell, per quantity: both centres.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub two_modes: BTreeMap<String, [f64; 2]>,
    /// How long it was measured in a block, s: the mean of all. Less than [`RunSummary::window_s`] where a time limit came first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// Windows that never settled.
    pub unsettled_samples: u32,
    /// Number of samples that failed and are in no estimate.
    pub failed_samples: u32,
    /// Share of the sender's busy time in which the receiver's window limited TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window_limited_ratio: Option<f64>,
    /// Share of the sender's busy time in which the send buffer limited TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_limited_ratio: Option<f64>,
    /// CPU time of the load by the kernel's ticks, as shares of busy time: `user`, `system`, `irq`, `softirq`. Absent
    /// if /proc/stat does not add up within 1 %.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu_split_ratio: BTreeMap<String, f64>,
    /// Packets that devices of the lab dropped, all windows together; absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_drops: Option<u64>,
    /// Datagrams that the sender gave to its kernel and the receiver never read, all windows together (requests by turns: all traffic);
    /// absent for TCP and if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_datagrams: Option<u64>,
    /// The search of each sample, in the order of blocks, if a rate was searched for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<Searched>,
    /// Each flow of numbered datagrams, all windows together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowArrivals>,
    /// Distribution of its round trips, or one-way times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyReport>,
    /// Rate and jitter of numbered datagrams over the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesReport>,
    /// Offload flags of the path's devices as they really were: `flag` → `on`, `off`, `mixed`, `differs`.
    pub offloads: BTreeMap<String, String>,
    /// The same device by device, if devices differ or were switched one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offloads_by_device: Vec<DeviceOffloadsSeen>,
    /// The ends of the wire and their flow control, if the traffic passes one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkEnd>,
    /// Whether packet filter rules of the hub (nftables, iptables) see its traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_sees: Option<bool>,
    /// What its path offers besides speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offers: Option<Vec<Feature>>,
    /// Where its traffic can be filtered if rules of the hub do not see it, as text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules_instead: Option<String>,
    /// Chains of the user's rules in the hub (axis `ruleset`), with what they saw when its lab was tried; none if the
    /// path has no hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chains: Option<Vec<FilterChain>>,
    /// What forwarded, if the path can be built in more than one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datapath: Option<Datapath>,
    /// The guest, if an endpoint was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUsed>,
    /// The endpoints, if nothing was built for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<EndpointsUsed>,
    /// How well the clocks of its two ends are known, if they are on different machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClocksReport>,
    /// CPU time that the hypervisor took from the machine of each end, as a share of its CPUs, if workers read it:
    /// `client`, `server`, `both`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machine_steal_ratio: BTreeMap<String, f64>,
    /// The path proof.
    pub way: WayReport,
    /// The CPU cost by subsystem, if the run took profiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileReport>,
}

/// The clocks of two ends over all samples of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClocksReport {
    /// In every window the offset between them is known to this, ns.
    pub bound_ns: u64,
    /// Most that it moved from before a window to after it, ns.
    pub drift_ns: u64,
    /// Every window opened and closed at both ends within this, ns.
    pub edges_within_ns: u64,
    /// Number of samples with one-way times, and number of all samples; absent for loads without one-way times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_samples: Option<(u32, u32)>,
}

/// The path proof over all samples of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WayReport {
    /// Whether it succeeded in every sample; false without samples.
    pub proved: bool,
    /// What failed, a sentence each, without repetition.
    pub problems: Vec<String>,
    /// Devices of the lab with their packets, all windows together.
    pub devices: Vec<DeviceSeen>,
}

/// Offload flags of one device as they really were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceOffloadsSeen {
    /// Namespace by its role in the lab.
    pub namespace: String,
    /// Name of the device in its namespace. If each container has one, there is an entry for one device in each state.
    pub name: String,
    /// `flag` → `on`, `off`, `mixed`, `differs`.
    pub flags: BTreeMap<String, String>,
}

/// One device and what passed through it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceSeen {
    /// Namespace by its role in the lab.
    pub namespace: String,
    /// Name of the device in its namespace.
    pub name: String,
    /// Packets (one per skb), both directions.
    pub packets: u64,
}
