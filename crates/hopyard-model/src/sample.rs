//! Samples: the raw record of one window of one cell in one block.
//!
//! Everything that estimates need is here, so that a report can be made again from the stored samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::{Counted, InvalidSample, Latency, largest, plausible, size};
use super::device_count::DeviceCount;
use super::units::float;
use super::{
    Arrivals, BusyCpus, ClocksCompared, Connections, CpuUse, Datapath, EndpointsUsed, GuestUsed,
    LinkEnd, MachineUse, OffloadFlag, OpenLoop, QueueChanges, QueueFrames, Scheduling, Searched,
    Switch, TcpSummary, TrackingCounts, Turn, ZeroCopied,
};

/// One cell in one block: a fresh lab, fresh sockets, one measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Block, from 0. The unit of pairing.
    pub block: u32,
    /// 0, or how often this block was begun before: by a run that was interrupted, or by older versions where there was steal.
    pub attempt: u32,
    /// Index of the cell in the run's list.
    pub cell: usize,
    /// Index of this sample in the order of the whole run.
    pub order: u32,
    /// When the sample began, ns since the run began.
    pub started_ns: u64,
    /// How long it took, building and removing the lab included, ns.
    pub took_ns: u64,
    pub outcome: Outcome,
}

impl Sample {
    /// What was measured; `None` if it failed.
    #[must_use]
    pub fn measurement(&self) -> Option<&Measurement> {
        match &self.outcome {
            Outcome::Measured(m) => Some(m),
            Outcome::Failed { .. } => None,
        }
    }

    /// Why it failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&String> {
        match &self.outcome {
            Outcome::Measured(_) => None,
            Outcome::Failed { cause } => Some(cause),
        }
    }
}

/// The result of a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The window was measured.
    Measured(Box<Measurement>),
    /// It failed; the cause is a sentence.
    Failed {
        /// Operation, object and advice.
        cause: String,
    },
}

/// What was counted in one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Length of the window as the receiver saw it, ns.
    pub window_ns: u64,
    /// What arrived (for request/response: what the client completed).
    pub received: Counted,
    /// What was given to the kernel in the same window.
    pub sent: Counted,
    /// Calls that the sender's kernel refused for want of buffers.
    pub send_errors: u64,
    /// Requests without an answer in time (`udp_rr`).
    pub timeouts: u64,
    /// Requests with an answer in the traffic to which `timeouts` belongs, if cells take turns: all traffic of the generation, because
    /// a request waits for longer than a turn. Otherwise both belong to the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<u64>,
    /// The received units in equal parts of the window: bytes of a stream, transactions otherwise.
    pub slices: Vec<u64>,
    /// CPU use of the whole machine in the window; of both machines together, if the ends are on different ones.
    pub cpu: CpuUse,
    /// CPU use of each machine, if workers read it: endpoints of `as-is` that are not both on hopyard's machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineUse>,
    /// How well the clocks of the two ends are known, if they are on different machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClocksCompared>,
    /// Round-trip times, if the load has them; for `udp_paced` the one-way times from when a datagram was due to when
    /// the receiver had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Times of the first packet of a flow. `tcp_crr`: times to connect, from SYN to established. `udp_rr`: round trips
    /// of the first datagrams of fresh sockets, sent before the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_packet: Option<Latency>,
    /// How numbered datagrams arrived, and whether the receiver kept up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// The units that were due and how many arrived (`udp_paced` if the two ends have one clock; `tcp_conns`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// The search, if this is a trial at its lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Searched>,
    /// What became of sends without a copy, where the sender made such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_copy: Option<ZeroCopied>,
    /// What TCP did and what held it back, where the load has standing connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpSummary>,
    /// How the client's threads were scheduled, over all its processes.
    #[serde(default)]
    pub client_scheduling: Scheduling,
    /// Use of the CPUs that the client's flows may run on. Absent for a guest, and if the clock covers only all CPUs
    /// together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpus: Option<BusyCpus>,
    /// The same of the server's, absent in runs of versions that did not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpus: Option<BusyCpus>,
    /// Use of all CPUs that the run may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_cpus: Option<BusyCpus>,
    /// What the receiving end's device received, in data direction only (streams).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived: Option<Arrived>,
    /// Counters of every device in every namespace of the lab over the window.
    pub devices: Vec<DeviceCount>,
    /// Offload flags of every device of the path, as read back.
    pub offloads: Vec<OffloadState>,
    /// The ends of the wire, if the traffic passes one; empty in runs of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkEnd>,
    /// Changes of queue of the flows, if there are several queues and the switch counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_changes: Option<QueueChanges>,
    /// What each tap gave its switch, by queue, over the same time as `queue_changes`; empty under the same conditions, and in runs
    /// of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue_frames: Vec<QueueFrames>,
    /// Flows of which nothing arrived in the window; absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_flows: Option<u32>,
    /// Windows before this one that were taken again. The machine missed them: an end or the controller had no CPU when they opened
    /// or closed, or nothing arrived while other processes used a CPU for half of the window. Or the hypervisor or other processes
    /// used the machine in them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed_windows: u32,
    /// What forwarded, if the path can be built in more than one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datapath: Option<Datapath>,
    /// Share of the guests' CPU time for which they waited for a CPU of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_steal_ratio: Option<f64>,
    /// The guest, if an endpoint was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUsed>,
    /// The endpoints, if nothing was built for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<EndpointsUsed>,
    /// Counters of the hub's connection tracking, if the path proof uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking: Option<TrackingCounts>,
    /// The connections as the hub tracked them, if the path proof uses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Packets that this machine dropped in the window because a CPU's queue of received packets was full
    /// (`/proc/net/softnet_stat`); absent in runs of older versions, and where the ends are on other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_drops: Option<u64>,
    /// The short windows that this is the sum of, if cells took turns. Counts of devices and queues, TCP's own account and
    /// problems of the path proof then cover all traffic of the block, warm-ups included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// The path proof.
    pub way: PathProof,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Measurement {
    /// Removes everything that needs both ends of a one-way load to have one clock.
    pub fn forget_one_way_times(&mut self) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.forget_instants();
            self.latency = None;
            self.open_loop = None;
        }
    }

    /// The same if the receiver converted the sender's instants to its own clock. Then the datagrams due in the window
    /// are known exactly, and so is how delays differ; only the delays are uncertain. They are removed if `clocks` knows them
    /// no better than their own size.
    pub fn forget_uncertain_delays(&mut self, mut clocks: ClocksCompared) {
        if let Some(arrivals) = &mut self.arrivals {
            let delay_ns = match &self.latency {
                Some(latency) => Some(latency.mean_ns),
                None => arrivals.mean_delay_ns(),
            };
            if let Some(delay_ns) = delay_ns {
                let is_told = float(clocks.bound_ns) < delay_ns;
                clocks.one_way_told = Some(is_told);
                if !is_told {
                    arrivals.forget_delays();
                    self.latency = None;
                }
            }
        }
        self.clocks = Some(clocks);
    }

    /// Checks whether the values are possible: stored ones may be damaged, and sums over samples must be exact.
    ///
    /// # Errors
    /// A figure is larger than any window can hold, or the window is empty.
    pub fn check(&self) -> Result<(), InvalidSample> {
        if self.window_ns == 0 {
            return Err(InvalidSample::NoTime("window_ns"));
        }
        self.cpu.check()?;
        self.machines.iter().try_for_each(MachineUse::check)?;
        self.clocks.as_ref().map_or(Ok(()), ClocksCompared::check)?;
        let busy = [self.client_cpus, self.server_cpus, self.allowed_cpus];
        plausible(&[
            ("window_ns", self.window_ns),
            ("received", self.received.largest()),
            ("sent", self.sent.largest()),
            ("send_errors", self.send_errors),
            ("timeouts", self.timeouts),
            ("answered", self.answered.unwrap_or(0)),
            ("slices", largest(&self.slices)),
            ("latency", self.latency.as_ref().map_or(0, Latency::largest)),
            (
                "first_packet",
                self.first_packet.as_ref().map_or(0, Latency::largest),
            ),
            ("tcp", self.tcp.map_or(0, TcpSummary::largest)),
            ("zero_copy", self.zero_copy.map_or(0, ZeroCopied::largest)),
            ("client_scheduling", self.client_scheduling.largest()),
            ("arrived", self.arrived.map_or(0, |a| a.bytes.max(a.skbs))),
            (
                "arrivals",
                self.arrivals.as_ref().map_or(0, Arrivals::largest),
            ),
            (
                "open_loop",
                self.open_loop.map_or(0, |o| o.due.max(o.arrived)),
            ),
            ("forks", self.cpu.forks),
            (
                "busy_ratio",
                size(busy.into_iter().flatten().map(|cpus| cpus.busy_ratio)),
            ),
            ("guest_steal_ratio", size(self.guest_steal_ratio)),
            ("search", self.search.as_ref().map_or(0, Searched::largest)),
            ("tracking", self.tracking.map_or(0, TrackingCounts::largest)),
            (
                "connections",
                self.connections.as_ref().map_or(0, Connections::largest),
            ),
            ("backlog_drops", self.backlog_drops.unwrap_or(0)),
            (
                "queue_changes",
                self.queue_changes.map_or(0, |c| c.count.max(c.span_ns)),
            ),
            (
                "queue_frames",
                self.queue_frames
                    .iter()
                    .map(QueueFrames::largest)
                    .max()
                    .unwrap_or(0),
            ),
        ])?;
        self.turns.iter().try_for_each(Turn::check)?;
        self.devices
            .iter()
            .try_for_each(|device| plausible(&[("devices", device.largest())]))
    }
}

/// Data as the receiving end's device saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Arrived {
    /// Bytes, headers of each skb included once.
    pub bytes: u64,
    /// Number of skbs.
    pub skbs: u64,
}

/// One offload flag of one device as it really was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadState {
    /// Namespace by its role in the lab.
    pub namespace: String,
    /// Name of the device in its namespace.
    pub device: String,
    /// The flag whose state this is.
    pub flag: OffloadFlag,
    /// `on`, `off`, or `mixed` (parts of it on), as active in the kernel.
    pub state: String,
    /// Whether the kernel allows no change.
    pub fixed: bool,
    /// The state asked for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Switch>,
}

/// Direction of a packet through a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The device receives it.
    Rx,
    /// The device sends it.
    Tx,
}

/// Path proof: whether every device on the path counted the expected amount, and no other device did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathProof {
    /// Whether everything held.
    pub proved: bool,
    /// What did not hold, a sentence each.
    pub problems: Vec<String>,
}

impl Turn {
    /// The turn as a measurement, without what only a whole sample has.
    #[must_use]
    pub fn measurement(&self) -> Measurement {
        Measurement {
            window_ns: self.window_ns,
            received: self.received,
            sent: self.sent,
            cpu: self.cpu,
            machines: Vec::new(),
            clocks: None,
            send_errors: 0,
            timeouts: 0,
            answered: None,
            slices: Vec::new(),
            latency: None,
            first_packet: None,
            arrivals: None,
            open_loop: None,
            search: None,
            zero_copy: None,
            tcp: None,
            client_scheduling: Scheduling::default(),
            client_cpus: None,
            server_cpus: None,
            allowed_cpus: None,
            arrived: None,
            devices: Vec::new(),
            offloads: Vec::new(),
            link: Vec::new(),
            queue_changes: None,
            queue_frames: Vec::new(),
            silent_flows: None,
            missed_windows: 0,
            datapath: None,
            guest_steal_ratio: None,
            guest: None,
            endpoints: None,
            tracking: None,
            connections: None,
            backlog_drops: None,
            turns: Vec::new(),
            way: PathProof {
                proved: true,
                problems: Vec::new(),
            },
        }
    }
}
