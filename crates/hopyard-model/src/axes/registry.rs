//! The registry: an entry for every axis, which generates the fields of [`Axes`], their defaults and [`AXES`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::api::Api;
use super::axis::Decides;
use super::chain::{Routed, Segments};
use super::cpus::{ClientCpus, Placement, Scheduler};
use super::device_offload::DeviceOffloads;
use super::flows::Containers;
use super::guest::Attach;
use super::hook::Hook;
use super::hub::HostLink;
use super::ip::Family;
use super::napi::Napi;
use super::offloads::Switch;
use super::pauses::Pause;
use super::rates::{Distribution, Rate};
use super::ruleset::Ruleset;
use super::setting::Setting;
use super::taps::{Join, Steering};
use super::trace::Trace;
use super::{
    api, chain, connection_rate, cpus, device_offload, flows, gso_max, guest, hook, hub, ip,
    messages, napi, offloads, outstanding, pauses, rates, ruleset, services, setting, sockets,
    steering, taps, trace,
};
use crate::names::AxisError;
use crate::{LoadKind, Peer, SearchFor, Start, UnknownName};

/// One axis for the other crates: its [`Descriptor`](super::descriptor::Descriptor) and its field of [`Axes`].
pub struct Axis {
    /// Name on the command line and in plans.
    pub name: &'static str,
    /// Its field in JSON, which ends with the unit.
    pub key: &'static str,
    /// A line about it.
    pub summary: &'static str,
    /// The values it takes, as text for people.
    pub values: &'static str,
    /// A value that is not its default.
    pub other: &'static str,
    /// Sets it from text.
    pub set: fn(&mut Axes, &str) -> Result<(), AxisError>,
    /// Its value as text; `None` if it is left to the kernel or does not apply.
    pub show: fn(&Axes) -> Option<String>,
    /// Removes it from a cell: absent, or its default if every cell has a value. Cells that differ in nothing else are
    /// then equal.
    pub clear: fn(&mut Axes),
    /// Whether it applies to this load and peer.
    pub fits: fn(LoadKind, Peer) -> bool,
    /// Whether only paths that name it have it.
    pub of_path: bool,
    /// Only paths with devices have it.
    pub of_devices: bool,
    /// What depends on it.
    pub decides: Decides,
    /// Whether it counts something. Cells that differ in nothing else make a curve.
    pub counts: bool,
    /// Whether its values are amounts (counts, bytes, rates, times), with values between two of them.
    pub is_quantity: bool,
}

impl Axis {
    /// Whether it applies to this load and peer, on a path with these axes of its `own`.
    #[must_use]
    pub fn applies(&self, load: LoadKind, peer: Peer, own: &[&str]) -> bool {
        (self.fits)(load, peer) && (!self.of_path || own.contains(&self.name))
    }

    /// Does it mean nothing for the path of a cell with this load and these axes? It shows where other paths always have a value.
    #[must_use]
    pub fn is_lacked(&self, load: LoadKind, axes: &Axes) -> bool {
        let always = self.of_path || (self.show)(&Axes::default()).is_some();
        (self.of_devices && axes.lack_devices(load)) || (always && (self.show)(axes).is_none())
    }

    /// Its value for a cell with this load and these axes as text; `None` too where the path has no such thing.
    #[must_use]
    pub fn value(&self, load: LoadKind, axes: &Axes) -> Option<String> {
        (self.show)(axes).filter(|_| !self.is_lacked(load, axes))
    }
}

/// The value of an axis in a cell. One that is absent has no key in JSON.
trait Value {
    fn is_absent(&self) -> bool {
        false
    }
}

impl<T> Value for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl Value for u32 {}
impl Value for Placement {}
impl Value for Family {}

/// Makes of each `key: type = descriptor` a field of [`Axes`], its default, and an entry of [`AXES`]. The key is that
/// of JSON and of CSV.
macro_rules! axes {
    ($($(#[$attribute:meta])* $key:ident: $value:ty = $axis:expr,)+) => {
        /// The value of every axis that matters for a cell. Axes that do not apply are absent.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Axes {
            $(
                $(#[$attribute])*
                #[serde(skip_serializing_if = "Value::is_absent")]
                pub $key: $value,
            )+
        }

        impl Default for Axes {
            /// The default of every axis, as `hopyard list axes` shows them.
            fn default() -> Self {
                Self {
                    $($key: ($axis.default)(),)+
                }
            }
        }

        /// Every axis.
        pub static AXES: &[Axis] = &[
            $(Axis {
                name: $axis.name,
                key: stringify!($key),
                summary: $axis.summary,
                values: $axis.values,
                other: $axis.other,
                set: |axes, text| {
                    axes.$key = $axis.read(text)?;
                    Ok(())
                },
                show: |axes| ($axis.print)(&axes.$key),
                clear: |axes| axes.$key = ($axis.absent)(),
                fits: $axis.fits,
                of_path: $axis.of_path,
                of_devices: $axis.of_devices,
                decides: $axis.decides,
                counts: $axis.counts,
                is_quantity: $axis.is_quantity,
            },)+
        ];

        const _: () = {
            $(assert!($axis.is_complete(), "an axis lacks a text");)+
        };
    };
}

axes! {
    /// Number of parallel connections or datagram flows.
    flows: u32 = flows::FLOWS,
    /// What sends the flows; absent is one process for all of them.
    containers: Option<Containers> = flows::CONTAINERS,
    /// Bytes passed to the kernel per call (streams).
    message_size_bytes: Option<u32> = messages::MESSAGE_SIZE,
    /// Bytes of a request (request/response).
    request_size_bytes: Option<u32> = messages::REQUEST_SIZE,
    /// Bytes of a response (request/response).
    response_size_bytes: Option<u32> = messages::RESPONSE_SIZE,
    /// Requests of a flow in flight (request/response over standing flows); absent is one.
    outstanding: Option<u32> = outstanding::OUTSTANDING,
    /// By which calls both ends send and receive; absent is calls that wait.
    api: Option<Api> = api::API,
    /// Does the sender of a stream send from its memory, without a copy? Absent is no.
    zerocopy: Option<Switch> = sockets::ZERO_COPY,
    /// `SO_SNDBUF` and `SO_RCVBUF` asked for; absent leaves the kernel's own.
    socket_buffer_bytes: Option<u32> = sockets::SOCKET_BUFFER,
    /// `SO_SNDBUF` alone asked for; absent is as the other.
    send_buffer_bytes: Option<u32> = sockets::SEND_BUFFER,
    /// TCP congestion control.
    congestion: Option<String> = sockets::CONGESTION,
    /// Whether connections use Multipath TCP; absent is off.
    mptcp: Option<Switch> = sockets::MPTCP,
    /// Where the two ends run.
    placement: Placement = cpus::PLACEMENT,
    /// CPUs of the client's flows, in turn; absent leaves them to the placement.
    client_cpus: Option<ClientCpus> = cpus::CLIENT_CPUS,
    /// How the client's flows are scheduled; absent is as everything else.
    scheduler: Option<Scheduler> = cpus::SCHEDULER,
    /// IP version.
    family: Family = ip::FAMILY,
    /// MTU of every device of the path, bytes.
    mtu_bytes: u32 = ip::MTU,
    /// Rate of the wire (peer `far`).
    #[serde(default, deserialize_with = "rates::there")]
    rate_bps: Option<Rate> = rates::WIRE_RATE,
    /// How long a wire with a rate rests at a time, ns; absent where it holds back each frame by itself.
    wire_pause_ns: Option<Pause> = pauses::WIRE_PAUSE,
    /// What the sender of a stream offers at most, bit/s of payload, all flows together; absent is as
    /// fast as it can.
    #[serde(default, deserialize_with = "rates::there")]
    pace_bps: Option<Rate> = rates::PACE,
    /// How long a paced sender rests at a time, ns; absent is a sleep for each message.
    pace_pause_ns: Option<Pause> = pauses::PACE_PAUSE,
    /// Connections that `tcp_conns` opens per second, all flows together.
    connections_per_s: Option<u32> = connection_rate::CONNECTION_RATE,
    /// Distribution of the times between messages of `udp_paced`, or connections of `tcp_conns`; absent is constant.
    distribution: Option<Distribution> = rates::DISTRIBUTION,
    /// The datagrams that `udp_trace` sends, with their times.
    trace: Option<Trace> = trace::TRACE,
    /// What rate is searched for, instead of a pace that is given.
    search: Option<SearchFor> = rates::SEARCH,
    /// When the flows begin; absent is all at once.
    start: Option<Start> = flows::START,
    /// Where the host has its address on a bridge; absent is the bridge's own device.
    host_link: Option<HostLink> = hub::HOST_LINK,
    /// Devices attached to the hub's switch, idle ones included; absent is those in use.
    ports: Option<u32> = hub::PORTS,
    /// Rules that match nothing, in the hub's forward hook; absent is none.
    rules: Option<u32> = hub::RULES,
    /// Packet filter rules of the user in the hub; absent is none.
    ruleset: Option<Ruleset> = ruleset::RULESET,
    /// Services that the hub translates; absent is one.
    services: Option<u32> = services::SERVICES,
    /// Connections that the hub tracks before the traffic begins; absent is none.
    conntrack: Option<u32> = services::CONNTRACK,
    /// Forwarding containers in a row; absent is one.
    chain: Option<u32> = chain::CHAIN,
    /// What connects two neighbours of a chain; absent is a veth pair.
    segments: Option<Segments> = chain::SEGMENTS,
    /// Which senders' traffic passes a routing container; absent is that of all.
    routed: Option<Routed> = chain::ROUTED,
    /// CPUs of a guest; absent is one.
    guest_cpus: Option<u32> = guest::GUEST_CPUS,
    /// Memory of a guest, bytes; absent is 512 MiB.
    guest_memory_bytes: Option<u32> = guest::GUEST_MEMORY,
    /// What a guest's card is attached to; absent is a bridge.
    attach: Option<Attach> = guest::ATTACH,
    /// Does vhost-net carry the frames of a guest's card? Absent is yes where the device is there.
    vhost: Option<Switch> = guest::VHOST,
    /// Queues of each multi-queue device; absent leaves the path's own number.
    queues: Option<u32> = taps::QUEUES,
    /// Threads of the tap switch that serve them; absent is one for each.
    queue_threads: Option<u32> = taps::QUEUE_THREADS,
    /// What chooses among them; absent leaves the path's own.
    steering: Option<Steering> = taps::STEERING,
    /// Frames that each queue of a multi-queue tap holds; absent leaves the tap switch's own number.
    queue_length: Option<u32> = taps::QUEUE_LENGTH,
    /// Which frames of a TCP flow the tap switch joins; absent leaves its own.
    join: Option<Join> = taps::JOIN,
    /// Where the programs of the direct switch run; absent is tcx, and clsact for many ports or without tcx.
    hook: Option<Hook> = hook::HOOK,
    /// All offload flags that can be changed, at once; absent leaves the kernel's defaults.
    offload: Option<Switch> = offloads::ALL_OFFLOADS,
    /// TCP segmentation offload.
    tso: Option<Switch> = offloads::TSO,
    /// Generic segmentation offload.
    gso: Option<Switch> = offloads::GSO,
    /// Generic receive offload.
    gro: Option<Switch> = offloads::GRO,
    /// Large receive offload.
    lro: Option<Switch> = offloads::LRO,
    /// Transmit checksum offload.
    tx_checksum: Option<Switch> = offloads::TX_CHECKSUM,
    /// Offload flags of single devices, as `gro@br0=off+tso@hub/up0=on`; absent is none.
    device_offload: Option<DeviceOffloads> = device_offload::DEVICE_OFFLOAD,
    /// Largest GSO and GRO packets of every device, bytes; absent leaves them as the kernel makes the device.
    gso_max_bytes: Option<u32> = gso_max::GSO_MAX,
    /// Who polls every device that has NAPI; absent is a softirq.
    napi: Option<Napi> = napi::NAPI,
    /// Receive packet steering on every device; absent is off.
    rps: Option<Switch> = steering::RPS,
    /// Receive flow steering on every device; absent is off.
    rfs: Option<Switch> = steering::RFS,
    /// Transmit packet steering on every device with several transmit queues; absent is off.
    xps: Option<Switch> = steering::XPS,
    /// Which of two settings of this host, where a run compares two.
    setting: Option<Setting> = setting::SETTING,
}

/// The axis with that name.
///
/// # Errors
/// There is none; the error lists them all.
pub fn axis(name: &str) -> Result<&'static Axis, UnknownName> {
    let found = AXES.iter().find(|axis| axis.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = AXES.iter().map(|axis| axis.name).collect();
        UnknownName::new("axis", name, names)
    })
}

#[cfg(test)]
mod tests;
