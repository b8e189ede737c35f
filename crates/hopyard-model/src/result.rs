//! The document `hopyard/run/1`: what a run amounts to, for scripts (`--json`) and for every report.
//!
//! Fields are only ever added. SI base units are in the names. What was not measured is absent.

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

/// The document `hopyard/run/1`: one run with all that was estimated from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// Always `hopyard/run/1`.
    pub schema: String,
    /// What was run, when, how long and on which machine.
    pub run: RunSummary,
    /// What the plan's report published, a table each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// What offloads do, where the run is a sweep of them (`hopyard doctor --offloads`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloads: Option<OffloadReport>,
    /// What to choose by load, where there is something to choose from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<Recommendation>,
    /// One entry per cell, in the plan's order.
    pub cells: Vec<CellReport>,
    /// How quantities run against a count, an entry for each set of cells that differ in nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<CurveReport>,
    /// What the gate says of the comparisons with the base, where one was asked for (`--fail-on`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// What a reader must know before trusting a figure.
    pub warnings: Vec<Warning>,
}

/// What was run, when, how long and on which machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Its id: time and plan.
    pub id: String,
    /// Name of the plan.
    pub plan: String,
    /// Seed of every random order.
    pub seed: u64,
    /// RFC 3339 time of the beginning.
    pub started: String,
    /// Path, or value of an axis (`ports=2`), that others are compared with; a cell without it names
    /// another in its verdicts. `offload`: all offloads on or off, whichever the cell has but for single
    /// flags; for all off itself, all on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Number of complete blocks: each has a sample of every cell.
    pub blocks: u32,
    /// Length of a measured window, s.
    pub window_s: f64,
    /// Dropped before each window, s.
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
    /// Did every cell reach that width?
    pub half_width_reached: bool,
    /// Fewer blocks than a verdict needs: figures without verdicts.
    pub quick_look: bool,
    /// Was the run carried out to its end?
    pub complete: bool,
    /// What else used the machine in the measured windows; absent where nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<MachineOverhead>,
    /// The turns, where cells took turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnsReport>,
    /// The settings of this host that were compared, where a run compares two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsReport>,
    /// The traces that were replayed (load `udp_trace`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceSummary>,
    /// The machine and kernel that the run was made on.
    pub environment: Environment,
}

/// Short windows of cells that are compared, taken in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnsReport {
    /// Length of the longest, s.
    pub window_s: f64,
    /// Length of the shortest, s, where loads differ by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortest_window_s: Option<f64>,
    /// How many were taken, all cells and blocks together.
    pub taken: u32,
    /// How many of them something else disturbed, by what it was; rounds with such turns are taken again while time allows.
    pub disturbed: BTreeMap<Disturbance, u32>,
    /// Fewest and most rounds of a block, those taken again included.
    pub rounds: (u32, u32),
}

/// Use of the machine by others than the load, all measured windows together; shares of all CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineOverhead {
    /// CPU time of processes that do not belong to hopyard.
    pub foreign_ratio: f64,
    /// Taken by the hypervisor.
    pub steal_ratio: f64,
    /// CPU time of hopyard's controller, which drives the workers.
    pub controller_ratio: f64,
    /// The quiet machine by itself.
    pub baseline_ratio: f64,
    /// Sum of the columns of /proc/stat over the time that passed; 1 where they add up.
    pub closure: f64,
}

/// Did the cell give figures?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CellStatus {
    /// It gave figures.
    Ok,
    /// It gave none or not all of them: see `cause`.
    Failed,
    /// This host cannot build it: see `cause`.
    Unsupported,
}

/// One cell with its estimates, verdicts and evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellReport {
    /// A path of the registry.
    pub path: String,
    /// Whom the endpoint talks to.
    pub peer: Peer,
    /// The traffic.
    pub load: LoadKind,
    /// Values of every axis that matters for this load.
    pub axes: Axes,
    /// Did it give figures?
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
    /// Windows that never settled.
    pub unsettled_samples: u32,
    /// Number of samples that failed and are in no estimate.
    pub failed_samples: u32,
    /// Share of the sender's busy time that TCP was held back by the receiver's window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window_limited_ratio: Option<f64>,
    /// Share of the sender's busy time that TCP was held back by its send buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_limited_ratio: Option<f64>,
    /// CPU time of the load split as the kernel's ticks see it, shares of busy time: `user`, `system`,
    /// `irq`, `softirq`. Left out where /proc/stat does not add up within 1 %.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu_split_ratio: BTreeMap<String, f64>,
    /// Packets that devices of the lab dropped, all windows together; absent where nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_drops: Option<u64>,
    /// Datagrams that the sender handed over and the receiver never read, all windows together; absent where nothing was measured, and
    /// of TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_datagrams: Option<u64>,
    /// The search of each sample, in the order of blocks, where a rate was searched for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<Searched>,
    /// Each flow of numbered datagrams, all windows together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowArrivals>,
    /// How its round trips, or one-way times, are distributed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyReport>,
    /// How rate and jitter of numbered datagrams went on in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesReport>,
    /// Offload flags of the way's devices as they really were: `flag` → `on`, `off`, `mixed`, `differs`.
    pub offloads: BTreeMap<String, String>,
    /// The same device by device, where devices differ or were switched one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offloads_by_device: Vec<DeviceOffloadsSeen>,
    /// The ends of the link and their flow control, where the traffic passes one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkEnd>,
    /// Do packet filter rules of the hub (nftables, iptables) see its traffic?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_sees: Option<bool>,
    /// What its path offers beside its speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offers: Option<Vec<Feature>>,
    /// Who filters its traffic where rules of the hub do not see it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules_instead: Option<String>,
    /// Chains of the user's rules in the hub (axis `ruleset`), with what they saw when its lab was tried; none where the path has no
    /// hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chains: Option<Vec<FilterChain>>,
    /// What forwarded, where the path can be built in more than one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datapath: Option<Datapath>,
    /// The guest that an endpoint was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUsed>,
    /// The endpoints, where nothing was built for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<EndpointsUsed>,
    /// How well the clocks of its two ends are known, where each has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClocksReport>,
    /// CPU time that the hypervisor took from the machine of each end, as a share of its CPUs, where workers read it: `client`,
    /// `server`, `both`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machine_steal_ratio: BTreeMap<String, f64>,
    /// Proof of the way.
    pub way: WayReport,
    /// Where the CPU time goes, where the run took profiles.
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
    /// Samples with one-way times, and all that would have them by their load; absent of loads that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_samples: Option<(u32, u32)>,
}

/// Proof of the way over all samples of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WayReport {
    /// Proved in every sample; not where there is none.
    pub proved: bool,
    /// What did not hold, a sentence each, without repetition.
    pub problems: Vec<String>,
    /// Devices of the lab with their packets, all windows together.
    pub devices: Vec<DeviceSeen>,
}

/// Offload flags of one device as they really were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceOffloadsSeen {
    /// Namespace by its role in the lab.
    pub namespace: String,
    /// Name of the device in its namespace. Of devices that containers have one each of, one in each state.
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
    /// Packets (one per skb), both ways.
    pub packets: u64,
}
