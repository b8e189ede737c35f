//! The axes: everything that can be swept, as one registry.
//!
//! A new axis is one field of [`Axes`] and one entry of [`AXES`]; the command line, plans, `list axes`
//! and the report walk the registry.

mod axis;
mod kinds;
mod registry;
mod values;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub use axis::{Axis, AxisError, Decides};
#[cfg(test)]
pub(crate) use registry::tests::OTHERS;
pub use registry::{AXES, MOST_FLOWS, axis};
pub use values::{
    Attach, Containers, Cpus, Distribution, Family, Hook, Join, OffloadFlag, Placement, Rate,
    Scheduler, Segments, Setting, Steering, Switch,
};

use super::{LoadKind, Peer, SearchFor, Start};

/// The value of every axis that matters for a cell. What does not apply is absent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axes {
    /// Connections or datagram flows side by side.
    pub flows: u32,
    /// What the senders of the flows are; absent is one process for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containers: Option<Containers>,
    /// Bytes handed to the kernel per call (streams).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_size_bytes: Option<u32>,
    /// Bytes of a request (request/response).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_size_bytes: Option<u32>,
    /// Bytes of a response (request/response).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_size_bytes: Option<u32>,
    /// `SO_SNDBUF` and `SO_RCVBUF` asked for; absent leaves the kernel's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_buffer_bytes: Option<u32>,
    /// TCP congestion control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Where the two ends run.
    pub placement: Placement,
    /// CPUs of the client's flows, in turn; absent leaves them to the placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpus: Option<Cpus>,
    /// How the client's flows are scheduled; absent is as everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// IP version.
    pub family: Family,
    /// MTU of every device of the path, bytes.
    pub mtu_bytes: u32,
    /// Rate of the wire (peer `far`).
    #[serde(
        default,
        deserialize_with = "there",
        skip_serializing_if = "Option::is_none"
    )]
    pub rate_bps: Option<Rate>,
    /// What the sender of a stream offers at most, bit/s of payload, all flows together; absent is as
    /// fast as it can.
    #[serde(
        default,
        deserialize_with = "there",
        skip_serializing_if = "Option::is_none"
    )]
    pub pace_bps: Option<Rate>,
    /// How the times between messages of `udp_paced` are spread; absent is constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// What rate is searched for, instead of a pace that is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchFor>,
    /// When the flows begin; absent is all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// Devices attached to the hub's switch, with those that nobody uses; absent leaves it at those in
    /// use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<u32>,
    /// Rules that match nothing, in the hub's forward hook; absent is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<u32>,
    /// Containers that forward, one behind the other; absent is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<u32>,
    /// What lies between two neighbours of a chain; absent is a veth pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<Segments>,
    /// CPUs of a guest; absent is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_cpus: Option<u32>,
    /// Memory of a guest, bytes; absent is 512 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_memory_bytes: Option<u32>,
    /// What a guest's card is attached to; absent is a bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach: Option<Attach>,
    /// Queues of each multi-queue device; absent leaves the path's own number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
    /// Who chooses among them; absent leaves the path's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<Steering>,
    /// Which frames of a TCP flow the tap switch joins; absent leaves its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<Join>,
    /// Where the programs of the direct switch run; absent is tcx, and clsact for many ports or where there is no tcx.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Hook>,
    /// All offload flags that can be changed at once; absent leaves the kernel's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<Switch>,
    /// TCP segmentation offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tso: Option<Switch>,
    /// Generic segmentation offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gso: Option<Switch>,
    /// Generic receive offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gro: Option<Switch>,
    /// Large receive offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lro: Option<Switch>,
    /// Transmit checksum offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_checksum: Option<Switch>,
    /// Which of two settings of this host, where a run compares two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<Setting>,
}

/// A rate that is there, if as `null`: none is a rate too, and what does not apply is not there at all.
fn there<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Rate>, D::Error> {
    Rate::deserialize(input).map(Some)
}

impl Default for Axes {
    /// The default of every axis, as `hopyard list axes` shows them.
    fn default() -> Self {
        Self {
            flows: 1,
            containers: None,
            message_size_bytes: None,
            request_size_bytes: Some(1),
            response_size_bytes: Some(1),
            socket_buffer_bytes: None,
            congestion: Some("cubic".to_owned()),
            placement: Placement::Split,
            client_cpus: None,
            scheduler: None,
            family: Family::V4,
            mtu_bytes: 1500,
            rate_bps: Some(Rate(None)),
            pace_bps: None,
            distribution: None,
            search: None,
            start: None,
            ports: None,
            rules: None,
            chain: None,
            segments: None,
            guest_cpus: None,
            guest_memory_bytes: None,
            attach: None,
            queues: None,
            steering: None,
            join: None,
            hook: None,
            offload: None,
            tso: None,
            gso: None,
            gro: None,
            lro: None,
            tx_checksum: None,
            setting: None,
        }
    }
}

impl Axes {
    /// These values with what does not apply left out, and what the load chooses by itself filled in.
    /// `own` are the axes that the path has beyond those of all paths.
    #[must_use]
    pub fn for_cell(&self, load: LoadKind, peer: Peer, own: &[&str]) -> Self {
        let mut axes = self.clone();
        if load.is_stream() && axes.message_size_bytes.is_none() {
            axes.message_size_bytes = Some(default_message_size(load));
        }
        // No pace is what a search begins with.
        if axes.search.is_some() && axes.pace_bps == Some(Rate(None)) {
            axes.pace_bps = None;
        }
        if load == LoadKind::UdpPaced && axes.pace_bps.is_none() && axes.search.is_none() {
            axes.pace_bps = Some(Rate(Some(DEFAULT_PACE_BPS)));
        }
        for axis in AXES.iter().filter(|axis| !axis.applies(load, peer, own)) {
            (axis.clear)(&mut axes);
        }
        axes
    }

    /// What of these values a lab depends on; everything else is at its default.
    #[must_use]
    pub fn of_lab(&self) -> Self {
        self.only(|axis| match axis.decides {
            Decides::Lab => true,
            Decides::LabOfProcesses => self.containers.is_some(),
            Decides::Message | Decides::Traffic => false,
        })
    }

    /// What of these values the size of a message depends on; everything else is at its default.
    #[must_use]
    pub fn of_message(&self) -> Self {
        self.only(|axis| axis.decides == Decides::Message)
    }

    fn only(&self, stays: impl Fn(&Axis) -> bool) -> Self {
        let mut axes = self.clone();
        for axis in AXES.iter().filter(|axis| !stays(axis)) {
            (axis.clear)(&mut axes);
        }
        axes
    }

    /// These values at a pace, bit/s of payload, which is not searched for.
    #[must_use]
    pub fn at_pace(&self, pace_bps: u64) -> Self {
        Self {
            pace_bps: Some(Rate(Some(pace_bps))),
            search: None,
            ..self.clone()
        }
    }

    /// How many endpoints the client is: one, or a container for each flow.
    #[must_use]
    pub fn container_count(&self) -> Option<u32> {
        (self.containers == Some(Containers::Own)).then_some(self.flows)
    }

    /// How many processes make the client's load.
    #[must_use]
    pub fn client_processes(&self) -> u32 {
        self.containers.map_or(1, |_| self.flows)
    }

    /// What one offload flag shall be on every device: the flag's own axis, else `offload`.
    #[must_use]
    pub fn offload_wanted(&self, flag: OffloadFlag) -> Option<Switch> {
        self.offload_named(flag).or(self.offload)
    }

    /// The flag's own axis alone.
    #[must_use]
    pub fn offload_named(&self, flag: OffloadFlag) -> Option<Switch> {
        match flag {
            OffloadFlag::Tso => self.tso,
            OffloadFlag::Gso => self.gso,
            OffloadFlag::Gro => self.gro,
            OffloadFlag::Lro => self.lro,
            OffloadFlag::TxChecksum => self.tx_checksum,
        }
    }

    /// The flag's own axis, to be changed.
    pub(crate) fn offload_named_mut(&mut self, flag: OffloadFlag) -> &mut Option<Switch> {
        match flag {
            OffloadFlag::Tso => &mut self.tso,
            OffloadFlag::Gso => &mut self.gso,
            OffloadFlag::Gro => &mut self.gro,
            OffloadFlag::Lro => &mut self.lro,
            OffloadFlag::TxChecksum => &mut self.tx_checksum,
        }
    }
}

/// Of `udp_paced`, payload of all flows: some 9,000 messages/s, which every path here can carry.
const DEFAULT_PACE_BPS: u64 = 100_000_000;

/// netperf sends 16 KiB by default over TCP; datagrams stay under every MTU in use, as in the 2007 report.
fn default_message_size(load: LoadKind) -> u32 {
    if load.is_udp_stream() {
        1400
    } else {
        16 * 1024
    }
}
