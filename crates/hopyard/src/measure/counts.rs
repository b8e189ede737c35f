//! From what was read at a window's edges to a measurement.

use super::Error;
use super::beside::Passed;
use crate::lab::{Lab, Topology};
use crate::load::protocol::Tallied;
use crate::meter::way::{self, Traffic};
use crate::model::{Arrived, Cell, Counted, CpuUse, DeviceCount, Direction, LoadKind, Measurement};

/// All that was counted of one window.
pub(super) struct Counts {
    pub(super) observed: Observed,
    pub(super) client: Tallied,
    pub(super) server: Tallied,
}

/// What was read at the two edges of a window.
pub(super) struct Observed {
    pub(super) cpu: CpuUse,
    pub(super) devices: Vec<DeviceCount>,
    /// Between the two readings of the devices, ns.
    pub(super) devices_ns: u64,
    pub(super) beside: Passed,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "spans of a window are far below 2^53 ns"
)]
fn float(ns: u64) -> f64 {
    ns as f64
}

pub(super) fn assemble(
    cell: &Cell,
    lab: &Lab,
    counts: Counts,
    quiet_cores: f64,
) -> Result<Measurement, Error> {
    let Counts {
        observed,
        client,
        server,
    } = counts;
    let Observed {
        mut cpu,
        devices,
        devices_ns,
        beside,
    } = observed;
    cpu.baseline_ns = quiet_cores * cpu.elapsed_ns;
    // The receiver of a stream counts it; transactions are the client's.
    let (receiver, sender) = match cell.load {
        LoadKind::TcpMaerts => (&client, &server),
        load if load.is_stream() => (&server, &client),
        _ => (&client, &client),
    };
    let received = receiver.received;
    let sent = if cell.load.is_udp_stream() {
        // A sender's worker that waits for its turn on a busy CPU sees another window.
        let windows = float(receiver.window_ns) / float(sender.window_ns.max(1));
        sender.sent.times(windows)
    } else if cell.load.is_stream() {
        sender.sent
    } else {
        Counted::default()
    };
    if received == Counted::default() {
        return Err(Error::Nothing {
            drops: devices.iter().map(|d| d.dropped).sum::<u64>()
                + receiver.arrivals.as_ref().map_or(0, |a| a.socket_drops),
        });
    }
    // The devices were watched for a little more or less time than the ends counted.
    let stretch = float(devices_ns) / float(receiver.window_ns.max(1));
    let traffic = Traffic {
        load: cell.load,
        axes: &cell.axes,
        sent: sent.times(stretch),
        received: taken_in(cell.load, receiver).times(stretch),
    };
    let way = way::prove(&lab.topology.way, &devices, traffic);
    let mut tcp = sender.tcp;
    if let (Some(tcp), Some(other)) = (
        &mut tcp,
        if cell.load.is_stream() {
            None
        } else {
            server.tcp
        },
    ) {
        tcp.retransmits += other.retransmits;
    }
    if let (Some(tcp), Some(receiver)) = (&mut tcp, receiver.tcp) {
        tcp.bytes_received = receiver.bytes_received;
    }
    let mut measurement = Measurement {
        window_ns: receiver.window_ns,
        received,
        sent,
        send_errors: sender.send_errors,
        timeouts: client.timeouts,
        slices: receiver.slices.clone(),
        cpu,
        latency: receiver.latency.clone(),
        arrivals: receiver.arrivals.clone(),
        tcp,
        arrived: arrived(cell.load, &lab.topology, &devices),
        devices: touched(devices, &lab.topology),
        offloads: lab.offloads.clone(),
        queue_changes: None,
        guest_steal_ratio: None,
        datapath: lab.datapath(),
        guest: lab.guest_used(),
        way,
    };
    beside.note(cell.axes.flows, &mut measurement);
    if !one_clock(&lab.topology) {
        measurement.forget_one_way_times();
    }
    Ok(measurement)
}

/// Do both ends run on this kernel? A guest's clocks are its own.
fn one_clock(topology: &Topology) -> bool {
    let ends = [&topology.client, &topology.server];
    ends.iter().all(|end| end.guest_cpus.is_none())
}

/// What the receiver's kernel took in. A program that was behind when the window opened reads what had come
/// before, megabytes of it, and the devices know nothing of that.
fn taken_in(load: LoadKind, receiver: &Tallied) -> Counted {
    let mut received = receiver.received;
    if let (LoadKind::TcpStream | LoadKind::TcpMaerts, Some(tcp)) = (load, receiver.tcp) {
        received.bytes = tcp.bytes_received;
    }
    if let Some(arrivals) = &receiver.arrivals {
        received.messages = arrivals.packets();
        received.bytes = arrivals.bytes();
    }
    received
}

/// The devices on the way and all others that saw a packet: idle ports may be many.
fn touched(mut devices: Vec<DeviceCount>, topology: &Topology) -> Vec<DeviceCount> {
    devices.retain(|device| {
        let on_way = topology
            .way
            .iter()
            .any(|hop| hop.namespace == device.namespace && hop.device == device.name);
        on_way || device.rx_packets + device.tx_packets + device.dropped > 0
    });
    devices
}

/// What the receiving end's own device took in.
fn arrived(load: LoadKind, topology: &Topology, devices: &[DeviceCount]) -> Option<Arrived> {
    let hop = match load {
        LoadKind::TcpMaerts => topology.way.first()?,
        load if load.is_stream() => topology.way.last()?,
        _ => return None,
    };
    let device = devices
        .iter()
        .find(|d| d.namespace == hop.namespace && d.name == hop.device)?;
    // TCP_MAERTS runs the other way; loopback counts both ways as forward.
    let counts = if load == LoadKind::TcpMaerts && !hop.backward.is_empty() {
        hop.backward
    } else {
        hop.forward
    };
    let receives = counts.contains(&Direction::Rx);
    let (bytes, skbs) = if receives {
        (device.rx_bytes, device.rx_packets)
    } else {
        (device.tx_bytes, device.tx_packets)
    };
    Some(Arrived { bytes, skbs })
}
