//! The registry: every axis with how it is named, read and shown, and where it applies.

use super::kinds::{choice_axis, count_axis, offload_axis, size_axis};
use super::values::{
    ATTACHES, CONTAINERS, DISTRIBUTIONS, FAMILIES, HOOKS, JOINS, PLACEMENTS, SCHEDULERS, SEGMENTS,
    SETTINGS, STEERINGS, SWITCHES, choice,
};
use super::{Axes, Axis, AxisError, Decides};
use crate::model::{LoadKind, Peer, UnknownName};
use crate::units;

/// The axis of that name.
///
/// # Errors
/// There is none; the error lists them all.
pub fn axis(name: &str) -> Result<&'static Axis, UnknownName> {
    AXES.iter()
        .find(|axis| axis.name == name)
        .ok_or_else(|| UnknownName {
            kind: "axis",
            name: name.to_owned(),
            choices: AXES
                .iter()
                .map(|axis| axis.name)
                .collect::<Vec<_>>()
                .join(", "),
        })
}

fn bounded(axis: &'static str, text: &str, low: u32, high: u32) -> Result<u32, AxisError> {
    let value = units::parse_bytes(text)?;
    if (low..=high).contains(&value) {
        Ok(value)
    } else {
        Err(AxisError::Bounds {
            axis,
            text: text.to_owned(),
            low,
            high,
        })
    }
}

/// Most flows of a load.
pub const MOST_FLOWS: u32 = 1000;

/// Every axis.
pub static AXES: &[Axis] = &[
    Axis {
        name: "flows",
        summary: "connections or datagram flows side by side",
        values: "1 to 1000 (default 1)",
        set: |axes, text| {
            axes.flows = bounded("flows", text, 1, MOST_FLOWS)?;
            Ok(())
        },
        show: |axes| Some(axes.flows.to_string()),
        clear: |axes| axes.flows = Axes::default().flows,
        fits: |_, _| true,
        of_path: false,
        decides: Decides::LabOfProcesses,
        counts: true,
    },
    choice_axis!(
        containers,
        &CONTAINERS,
        "a process for each flow's sender: all in one endpoint, or each in a container",
        "native, own (default: one process, a thread for each flow)",
        |_, _| true,
        of_path: true,
        decides: Decides::Lab
    ),
    size_axis!(
        message_size_bytes,
        "message_size",
        "bytes per send call of a stream",
        "1 B to 1 MiB; 65507 at most over UDP, 32 at least of numbered datagrams (default 16 KiB TCP, 1400 B UDP)",
        1..=1024 * 1024,
        |load, _| load.is_stream(),
        Decides::Message
    ),
    size_axis!(
        request_size_bytes,
        "request_size",
        "bytes per request",
        "1 B to 64 KiB; 65507 at most over UDP (default 1)",
        1..=64 * 1024,
        |load, _| !load.is_stream(),
        Decides::Message
    ),
    size_axis!(
        response_size_bytes,
        "response_size",
        "bytes per response",
        "1 B to 64 KiB; 65507 at most over UDP (default 1)",
        1..=64 * 1024,
        |load, _| !load.is_stream(),
        Decides::Message
    ),
    size_axis!(
        socket_buffer_bytes,
        "socket_buffer",
        "send and receive buffer asked for on every data socket",
        "4 KiB to 64 MiB (default: the kernel's own sizing)",
        4096..=64 * 1024 * 1024,
        |_, _| true,
        Decides::Traffic
    ),
    Axis {
        name: "congestion",
        summary: "TCP congestion control",
        values: "what net.ipv4.tcp_available_congestion_control lists (default cubic)",
        set: |axes, text| {
            axes.congestion = Some(text.to_owned());
            Ok(())
        },
        show: |axes| axes.congestion.clone(),
        clear: |axes| axes.congestion = None,
        fits: |load, _| load.is_tcp(),
        of_path: false,
        decides: Decides::Traffic,
        counts: false,
    },
    Axis {
        name: "placement",
        summary: "CPUs of the two ends",
        values: "same, split, free (default split)",
        set: |axes, text| {
            axes.placement = choice("placement", text, &PLACEMENTS)?;
            Ok(())
        },
        show: |axes| Some(axes.placement.to_string()),
        clear: |axes| axes.placement = Axes::default().placement,
        fits: |_, _| true,
        of_path: false,
        decides: Decides::Lab,
        counts: false,
    },
    Axis {
        name: "client_cpus",
        summary: "CPUs of the client's flows, in turn, whatever the placement",
        values: "0, 0-3, 0+2, … (default: by the placement)",
        set: |axes, text| {
            axes.client_cpus = Some(text.parse()?);
            Ok(())
        },
        show: |axes| axes.client_cpus.as_ref().map(ToString::to_string),
        clear: |axes| axes.client_cpus = None,
        fits: |_, _| true,
        of_path: false,
        decides: Decides::Traffic,
        counts: false,
    },
    choice_axis!(
        scheduler,
        &SCHEDULERS,
        "how the kernel schedules the client's flows",
        "default, round-robin (SCHED_RR), groups (a CPU share for each process; takes `containers`)",
        |_, _| true,
        of_path: false,
        decides: Decides::Lab
    ),
    Axis {
        name: "family",
        summary: "IP version",
        values: "4, 6 (default 4)",
        set: |axes, text| {
            axes.family = choice("family", text, &FAMILIES)?;
            Ok(())
        },
        show: |axes| Some(axes.family.to_string()),
        clear: |axes| axes.family = Axes::default().family,
        fits: |_, _| true,
        of_path: false,
        decides: Decides::Lab,
        counts: false,
    },
    Axis {
        name: "mtu",
        summary: "MTU of every device of the path",
        values: "1280 to 65535 (default 1500)",
        set: |axes, text| {
            axes.mtu_bytes = bounded("mtu", text, 1280, 65535)?;
            Ok(())
        },
        show: |axes| Some(axes.mtu_bytes.to_string()),
        clear: |axes| axes.mtu_bytes = Axes::default().mtu_bytes,
        fits: |_, _| true,
        of_path: false,
        decides: Decides::Lab,
        counts: false,
    },
    Axis {
        name: "rate",
        summary: "rate of the wire, both ways (peer far)",
        values: "100mbit, 1gbit, 10gbit, …, none (default none)",
        set: |axes, text| {
            axes.rate_bps = Some(text.parse()?);
            Ok(())
        },
        show: |axes| axes.rate_bps.map(|rate| rate.to_string()),
        clear: |axes| axes.rate_bps = None,
        fits: |_, peer| peer == Peer::Far,
        of_path: false,
        decides: Decides::Lab,
        counts: false,
    },
    Axis {
        name: "pace",
        summary: "what the sender of a stream offers at most, payload of all flows",
        values: "10mbit, 940mbit, …, none (default none: as fast as it can; udp_paced 100mbit)",
        set: |axes, text| {
            axes.pace_bps = Some(text.parse()?);
            Ok(())
        },
        show: |axes| axes.pace_bps.map(|pace| pace.to_string()),
        clear: |axes| axes.pace_bps = None,
        fits: |load, _| load.is_stream() && load != LoadKind::UdpFlood,
        of_path: false,
        decides: Decides::Traffic,
        counts: false,
    },
    choice_axis!(
        distribution,
        &DISTRIBUTIONS,
        "of the times between messages of udp_paced",
        "constant, poisson (default constant)",
        |load, _| load == LoadKind::UdpPaced,
        of_path: false,
        decides: Decides::Traffic
    ),
    Axis {
        name: "search",
        summary: "the rate of udp_paced at which no more than this is lost, found by trials (RFC 9971)",
        values: "ndr (nothing), pdr (0.5 %), pdr:SHARE (default: none, the pace is given)",
        set: |axes, text| {
            axes.search = Some(text.parse()?);
            Ok(())
        },
        show: |axes| axes.search.map(|search| search.to_string()),
        clear: |axes| axes.search = None,
        fits: |load, _| load == LoadKind::UdpPaced,
        of_path: false,
        decides: Decides::Traffic,
        counts: false,
    },
    Axis {
        name: "start",
        summary: "when the flows begin; the window opens after the last of them has",
        values: "simultaneous, staggered:TIME (default simultaneous)",
        set: |axes, text| {
            axes.start = Some(text.parse()?);
            Ok(())
        },
        show: |axes| axes.start.map(|start| start.to_string()),
        clear: |axes| axes.start = None,
        fits: |_, _| true,
        of_path: false,
        decides: Decides::Traffic,
        counts: false,
    },
    count_axis!(
        ports,
        2..=1000,
        "devices attached to the hub's switch; beyond those in use, they are idle",
        "2 to 1000 (default: those in use)"
    ),
    count_axis!(
        rules,
        0..=10_000,
        "nftables rules that match nothing, in the hub's forward hook",
        "0 to 10000 (default 0)"
    ),
    count_axis!(
        chain,
        1..=8,
        "containers that forward, one behind the other",
        "1 to 8 (default 1)"
    ),
    choice_axis!(
        segments,
        &SEGMENTS,
        "what lies between two neighbours of a chain",
        "veth, bridge, macvlan, direct (default veth)",
        |_, _| true,
        of_path: true,
        decides: Decides::Lab
    ),
    count_axis!(guest_cpus, 1..=64, "CPUs of a guest", "1 to 64 (default 1)"),
    count_axis!(
        queues,
        1..=256,
        "queues of each multi-queue tap, with a thread of the switch for each; of a guest's card",
        "1 to 256 (default 2; of a guest, one for each CPU)"
    ),
    Axis {
        name: "guest_memory",
        summary: "memory of a guest",
        values: "256 MiB to 2048 MiB (default 512 MiB)",
        set: |axes, text| {
            let value = bounded("guest_memory", text, 256 << 20, 2 << 30)?;
            axes.guest_memory_bytes = Some(value);
            Ok(())
        },
        show: |axes| axes.guest_memory_bytes.map(units::show_bytes),
        clear: |axes| axes.guest_memory_bytes = None,
        fits: |_, _| true,
        of_path: true,
        decides: Decides::Lab,
        counts: false,
    },
    choice_axis!(
        attach,
        &ATTACHES,
        "what a guest's card is attached to in the hub",
        "bridge, direct, macvtap (default bridge)",
        |_, _| true,
        of_path: true,
        decides: Decides::Lab
    ),
    choice_axis!(
        steering,
        &STEERINGS,
        "who chooses the queue of a tap by which a frame leaves the kernel",
        "kernel, hash, cpu (default hash)",
        |_, _| true,
        of_path: true,
        decides: Decides::Lab
    ),
    choice_axis!(
        join,
        &JOINS,
        "which frames of a TCP flow the tap switch joins: none, as GRO does, or all that follow each other",
        "off, packets, stream (default stream)",
        |_, _| true,
        of_path: true,
        decides: Decides::Lab
    ),
    choice_axis!(
        hook,
        &HOOKS,
        "where the kernel runs the programs of the direct switch",
        "tcx, clsact (default tcx; clsact for more than 64 ports and before Linux 6.6)",
        |_, _| true,
        of_path: true,
        decides: Decides::Lab
    ),
    offload_axis!(
        offload,
        "all offload flags below that a device lets one change"
    ),
    offload_axis!(tso, "TCP segmentation offload on every device"),
    offload_axis!(gso, "generic segmentation offload on every device"),
    offload_axis!(gro, "generic receive offload on every device"),
    offload_axis!(lro, "large receive offload on every device"),
    offload_axis!(tx_checksum, "transmit checksum offload on every device"),
    Axis {
        name: "setting",
        summary: "one of two settings of this host, which the commands of --a and --b make",
        values: "a, b (given by --a and --b alone)",
        set: |axes, text| {
            axes.setting = Some(choice("setting", &text.to_uppercase(), &SETTINGS)?);
            Ok(())
        },
        show: |axes| axes.setting.map(|setting| setting.to_string()),
        clear: |axes| axes.setting = None,
        fits: |_, _| true,
        of_path: false,
        decides: Decides::Traffic,
        counts: false,
    },
];

#[cfg(test)]
pub(crate) mod tests;
