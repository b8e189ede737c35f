//! The registry: every axis with how it is named, read and shown, and where it applies.

use super::values::{
    ATTACHES, CONTAINERS, DISTRIBUTIONS, FAMILIES, PLACEMENTS, SCHEDULERS, SEGMENTS, STEERINGS,
    SWITCHES, choice,
};
use super::{Axis, AxisError};
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

macro_rules! offload_axis {
    ($field:ident, $name:literal, $summary:literal) => {
        Axis {
            name: $name,
            summary: $summary,
            values: "on, off (default: as the kernel makes the device)",
            set: |axes, text| {
                axes.$field = Some(choice($name, text, &SWITCHES)?);
                Ok(())
            },
            show: |axes| axes.$field.map(|value| value.to_string()),
            clear: |axes| axes.$field = None,
            fits: |_, _| true,
            of_path: false,
        }
    };
}

macro_rules! size_axis {
    ($field:ident, $name:literal, $summary:literal, $values:literal, $low:literal..=$high:expr, $applies:expr) => {
        Axis {
            name: $name,
            summary: $summary,
            values: $values,
            set: |axes, text| {
                axes.$field = Some(bounded($name, text, $low, $high)?);
                Ok(())
            },
            show: |axes| axes.$field.map(units::show_bytes),
            clear: |axes| axes.$field = None,
            fits: $applies,
            of_path: false,
        }
    };
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
        clear: |_| {},
        fits: |_, _| true,
        of_path: false,
    },
    Axis {
        name: "containers",
        summary: "a process for each flow's sender: all in one endpoint, or each in a container",
        values: "native, own (default: one process, a thread for each flow)",
        set: |axes, text| {
            axes.containers = Some(choice("containers", text, &CONTAINERS)?);
            Ok(())
        },
        show: |axes| axes.containers.map(|containers| containers.to_string()),
        clear: |axes| axes.containers = None,
        fits: |_, _| true,
        of_path: true,
    },
    size_axis!(
        message_size_bytes,
        "message_size",
        "bytes per send call of a stream",
        "1 B to 1 MiB; 65507 at most over UDP, 32 at least of numbered datagrams (default 16 KiB TCP, 1400 B UDP)",
        1..=1024 * 1024,
        |load, _| load.is_stream()
    ),
    size_axis!(
        request_size_bytes,
        "request_size",
        "bytes per request",
        "1 B to 64 KiB; 65507 at most over UDP (default 1)",
        1..=64 * 1024,
        |load, _| !load.is_stream()
    ),
    size_axis!(
        response_size_bytes,
        "response_size",
        "bytes per response",
        "1 B to 64 KiB; 65507 at most over UDP (default 1)",
        1..=64 * 1024,
        |load, _| !load.is_stream()
    ),
    size_axis!(
        socket_buffer_bytes,
        "socket_buffer",
        "send and receive buffer asked for on every data socket",
        "4 KiB to 64 MiB (default: the kernel's own sizing)",
        4096..=64 * 1024 * 1024,
        |_, _| true
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
        clear: |_| {},
        fits: |_, _| true,
        of_path: false,
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
    },
    Axis {
        name: "scheduler",
        summary: "how the kernel schedules the client's flows",
        values: "default, round-robin (SCHED_RR), groups (a CPU share for each process; takes `containers`)",
        set: |axes, text| {
            axes.scheduler = Some(choice("scheduler", text, &SCHEDULERS)?);
            Ok(())
        },
        show: |axes| axes.scheduler.map(|scheduler| scheduler.to_string()),
        clear: |axes| axes.scheduler = None,
        fits: |_, _| true,
        of_path: false,
    },
    Axis {
        name: "family",
        summary: "IP version",
        values: "4, 6 (default 4)",
        set: |axes, text| {
            axes.family = choice("family", text, &FAMILIES)?;
            Ok(())
        },
        show: |axes| Some(axes.family.to_string()),
        clear: |_| {},
        fits: |_, _| true,
        of_path: false,
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
        clear: |_| {},
        fits: |_, _| true,
        of_path: false,
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
    },
    Axis {
        name: "distribution",
        summary: "of the times between messages of udp_paced",
        values: "constant, poisson (default constant)",
        set: |axes, text| {
            axes.distribution = Some(choice("distribution", text, &DISTRIBUTIONS)?);
            Ok(())
        },
        show: |axes| {
            axes.distribution
                .map(|distribution| distribution.to_string())
        },
        clear: |axes| axes.distribution = None,
        fits: |load, _| load == LoadKind::UdpPaced,
        of_path: false,
    },
    Axis {
        name: "ports",
        summary: "devices attached to the hub's switch; beyond those in use, they are idle",
        values: "2 to 1000 (default: those in use)",
        set: |axes, text| {
            axes.ports = Some(bounded("ports", text, 2, 1000)?);
            Ok(())
        },
        show: |axes| axes.ports.map(|ports| ports.to_string()),
        clear: |axes| axes.ports = None,
        fits: |_, _| true,
        of_path: true,
    },
    Axis {
        name: "rules",
        summary: "nftables rules that match nothing, in the hub's forward hook",
        values: "0 to 10000 (default 0)",
        set: |axes, text| {
            axes.rules = Some(bounded("rules", text, 0, 10_000)?);
            Ok(())
        },
        show: |axes| axes.rules.map(|rules| rules.to_string()),
        clear: |axes| axes.rules = None,
        fits: |_, _| true,
        of_path: true,
    },
    Axis {
        name: "chain",
        summary: "containers that forward, one behind the other",
        values: "1 to 8 (default 1)",
        set: |axes, text| {
            axes.chain = Some(bounded("chain", text, 1, 8)?);
            Ok(())
        },
        show: |axes| axes.chain.map(|chain| chain.to_string()),
        clear: |axes| axes.chain = None,
        fits: |_, _| true,
        of_path: true,
    },
    Axis {
        name: "segments",
        summary: "what lies between two neighbours of a chain",
        values: "veth, bridge, macvlan, direct (default veth)",
        set: |axes, text| {
            axes.segments = Some(choice("segments", text, &SEGMENTS)?);
            Ok(())
        },
        show: |axes| axes.segments.map(|segments| segments.to_string()),
        clear: |axes| axes.segments = None,
        fits: |_, _| true,
        of_path: true,
    },
    Axis {
        name: "guest_cpus",
        summary: "CPUs of a guest",
        values: "1 to 64 (default 1)",
        set: |axes, text| {
            axes.guest_cpus = Some(bounded("guest_cpus", text, 1, 64)?);
            Ok(())
        },
        show: |axes| axes.guest_cpus.map(|cpus| cpus.to_string()),
        clear: |axes| axes.guest_cpus = None,
        fits: |_, _| true,
        of_path: true,
    },
    Axis {
        name: "queues",
        summary: "queues of each multi-queue tap, with a thread of the switch for each; of a guest's card",
        values: "1 to 256 (default 2; of a guest, one for each CPU)",
        set: |axes, text| {
            axes.queues = Some(bounded("queues", text, 1, 256)?);
            Ok(())
        },
        show: |axes| axes.queues.map(|queues| queues.to_string()),
        clear: |axes| axes.queues = None,
        fits: |_, _| true,
        of_path: true,
    },
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
    },
    Axis {
        name: "attach",
        summary: "what a guest's card is attached to in the hub",
        values: "bridge, direct, macvtap (default bridge)",
        set: |axes, text| {
            axes.attach = Some(choice("attach", text, &ATTACHES)?);
            Ok(())
        },
        show: |axes| axes.attach.map(|attach| attach.to_string()),
        clear: |axes| axes.attach = None,
        fits: |_, _| true,
        of_path: true,
    },
    Axis {
        name: "steering",
        summary: "who chooses the queue of a tap by which a frame leaves the kernel",
        values: "kernel, hash, cpu (default hash)",
        set: |axes, text| {
            axes.steering = Some(choice("steering", text, &STEERINGS)?);
            Ok(())
        },
        show: |axes| axes.steering.map(|steering| steering.to_string()),
        clear: |axes| axes.steering = None,
        fits: |_, _| true,
        of_path: true,
    },
    offload_axis!(
        offload,
        "offload",
        "all offload flags below that a device lets one change"
    ),
    offload_axis!(tso, "tso", "TCP segmentation offload on every device"),
    offload_axis!(gso, "gso", "generic segmentation offload on every device"),
    offload_axis!(gro, "gro", "generic receive offload on every device"),
    offload_axis!(lro, "lro", "large receive offload on every device"),
    offload_axis!(
        tx_checksum,
        "tx_checksum",
        "transmit checksum offload on every device"
    ),
];

#[cfg(test)]
mod tests;
