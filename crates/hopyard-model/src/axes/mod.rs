//! The axes: everything that can be swept, as one registry.
//!
//! A new axis is a [`Descriptor`](descriptor::Descriptor) in a file here and an entry in `registry.rs`. The command line,
//! plans, `list axes`, the store and every report walk the registry. See `docs/adding-an-axis.md`.

mod api;
mod asked;
mod axis;
mod chain;
mod connection_rate;
mod cpus;
mod descriptor;
mod device_offload;
mod digested;
mod flows;
mod gso_max;
mod guest;
mod hook;
mod hub;
mod ip;
mod messages;
mod napi;
mod offloads;
mod outstanding;
mod pauses;
mod rates;
mod registry;
mod ruleset;
mod services;
mod setting;
mod sockets;
mod steering;
mod taps;
mod trace;

pub use api::Api;
pub use axis::Decides;
pub use chain::{Routed, Segments};
pub use connection_rate::MOST_OPEN;
pub use cpus::{ClientCpuNumber, ClientCpus, Cpus, Placement, Scheduler};
pub use device_offload::{DeviceOffload, DeviceOffloads, as_axis, together};
pub use digested::short_digest;
pub use flows::{Containers, MOST_FLOWS};
pub use guest::Attach;
pub use hook::Hook;
pub use hub::HostLink;
pub use ip::Family;
pub use napi::Napi;
pub use offloads::{OffloadFlag, Switch};
pub use outstanding::MOST_OUTSTANDING;
pub use pauses::Pause;
pub use rates::{Distribution, Rate};
pub use registry::{AXES, Axes, Axis, axis};
pub use ruleset::{RulesSample, Ruleset};
pub use setting::Setting;
pub use taps::{Join, Steering};
pub use trace::Trace;

use super::loads::Packets;
use super::{LoadKind, Peer};

impl Axes {
    /// These values without those that do not apply, and with the values that the load chooses itself. `own` are the
    /// axes that the path has beyond those of all paths.
    #[must_use]
    pub fn for_cell(&self, load: LoadKind, peer: Peer, own: &[&str]) -> Self {
        let mut axes = self.clone();
        axes.message_size_bytes = axes.message_size_bytes.or(load.default_message_size());
        // A search begins without a pace.
        if axes.search.is_some() && axes.pace_bps == Some(Rate(None)) {
            axes.pace_bps = None;
        }
        if let Some(pace) = load.default_pace_bps()
            && axes.pace_bps.is_none()
            && axes.search.is_none()
        {
            axes.pace_bps = Some(Rate(Some(pace)));
        }
        axes.connections_per_s = axes.connections_per_s.or(load.default_connections_per_s());
        for axis in AXES.iter().filter(|axis| !axis.applies(load, peer, own)) {
            (axis.clear)(&mut axes);
        }
        axes
    }

    /// These values with those left out that are about devices, or about IP.
    #[must_use]
    pub fn without_devices(&self) -> Self {
        self.only(|axis| !axis.of_devices)
    }

    /// Is that what they are? A load of TCP has a congestion control wherever it goes by TCP; some other axes have a value in
    /// every cell.
    pub(crate) fn lack_devices(&self, load: LoadKind) -> bool {
        load.is_tcp() && self.congestion.is_none()
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

    /// The values that the size of a message depends on; all others are at their default.
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

    /// These values at a given pace, bit/s of payload, without a search.
    #[must_use]
    pub fn at_pace(&self, pace_bps: u64) -> Self {
        Self {
            pace_bps: Some(Rate(Some(pace_bps))),
            search: None,
            ..self.clone()
        }
    }

    /// The packet sizes that loads check their bounds against.
    #[must_use]
    pub fn packets(&self) -> Packets {
        Packets {
            message_bytes: self.message_size_bytes.unwrap_or(1),
            mtu_bytes: self.mtu_bytes,
            is_ipv6: self.family == Family::V6,
        }
    }

    /// How many containers the client is; `None` if it is one endpoint.
    #[must_use]
    pub fn container_count(&self) -> Option<u32> {
        (self.containers == Some(Containers::Own)).then_some(self.flows)
    }

    /// How many processes make the client's load.
    #[must_use]
    pub fn client_processes(&self) -> u32 {
        self.containers.map_or(1, |_| self.flows)
    }
}
