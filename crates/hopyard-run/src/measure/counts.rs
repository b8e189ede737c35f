//! From the readings at the edges of a window to a measurement.

use std::collections::{HashMap, HashSet};

use super::aux_counters::Passed;
use super::machines::Machines;
use super::proof_segments::{self, Parts};
use super::used_cpus::UsedCpus;
use super::{Error, QuietCores, connections, elsewhere};
use crate::lab::{Client, Lab, Topology, is_beside_the_wire};
use crate::load::protocol::Tallied;
use crate::meter::devices;
use crate::meter::path_proof::{Bracket, Traffic, Watched};
use crate::model::{
    Arrivals, Arrived, BusyCpus, Cell, ClocksCompared, Connections, Counted, CpuUse, DeviceCount,
    Direction, Hop, LoadKind, Measurement, OpenLoop, QueueChanges,
};
use crate::units::float;

/// Every device of a lab that its path may pass, and what is counted beside them or in their place.
pub(super) fn read_devices(lab: &Lab) -> Result<Vec<DeviceCount>, Error> {
    let mut counts = devices::read(lab.spaces().iter().map(|s| (s.role, &s.handle)))?;
    counts.retain(|device| !is_beside_the_wire(&device.namespace, &device.name));
    counts.extend(lab.counted()?);
    Ok(counts)
}

/// All counts of one window.
pub(super) struct Counts {
    pub(super) observed: Observed,
    /// All clients together.
    pub(super) client: Tallied,
    /// Each of them.
    pub(super) clients: Vec<Tallied>,
    pub(super) server: Tallied,
    /// What read the CPU time.
    pub(super) machines: Machines,
    /// If each end has a clock of its own.
    pub(super) clocks: Option<ClocksCompared>,
    /// The planned length of the window, ns.
    pub(super) planned_ns: u64,
}

/// The readings at the two edges of a window.
pub(super) struct Observed {
    pub(super) cpu: CpuUse,
    pub(super) devices: Vec<DeviceCount>,
    pub(super) watched: Watched,
    /// How much later than planned the devices were read at an edge, ns.
    pub(super) late_ns: u64,
    pub(super) beside: Passed,
    /// How busy the CPUs are.
    pub(super) busy: UsedCpus<Option<BusyCpus>>,
    /// As the hub tracks them at the end, before they are closed.
    pub(super) connections: Option<Connections>,
    /// As the kernel lists those of Unix sockets while the traffic goes.
    pub(super) unix_connections: Option<u64>,
}

pub(super) fn assemble(
    cell: &Cell,
    lab: &Lab,
    counts: Counts,
    quiet: QuietCores,
) -> Result<Measurement, Error> {
    let Counts {
        observed,
        client,
        clients,
        server,
        machines,
        clocks,
        planned_ns,
    } = counts;
    let Observed {
        cpu: mut cpu_here,
        mut devices,
        mut watched,
        late_ns: _,
        beside,
        busy,
        connections,
        unix_connections,
    } = observed;
    quiet.note_in(&mut cpu_here);
    let (cpu, machines) = machines.used(cpu_here, &client, &server);
    let is_here = machines.is_empty();
    if let Some((read, watched_there)) = elsewhere::devices(lab, &client, &server) {
        watched = match watched_there {
            Some(there) if devices.is_empty() => there,
            Some(there) => watched.and(there),
            None => watched,
        };
        devices.extend(read);
    }
    let (receiver, sender) = receiver_and_sender(cell.load, &client, &server);
    let received = receiver.received;
    let handed_over = if cell.load.is_stream() {
        sender.sent
    } else {
        Counted::default()
    };
    let sent = if cell.load.is_udp_stream() {
        // A sender's worker that waits for a busy CPU counts over another span.
        let windows = float(receiver.window_ns) / float(sender.window_ns.max(1));
        handed_over.times(windows)
    } else {
        handed_over
    };
    if received == Counted::default() {
        return Err(Error::Nothing {
            timeouts: client.timeouts,
            was_taken: taken_ns(&cpu) >= float(planned_ns) / 2.0,
            drops: devices.iter().map(|d| d.dropped).sum::<u64>()
                + receiver.arrivals.as_ref().map_or(0, |a| a.socket_drops),
        });
    }
    // Numbered datagrams belong to the window as planned.
    let received_ns = match receiver.arrivals {
        Some(_) => planned_ns,
        None => receiver.window_ns,
    };
    let traffic = Traffic {
        load: cell.load,
        axes: &cell.axes,
        sent: Bracket::over(handed_over, sender.window_ns, watched),
        received: Bracket::over(taken_in(cell.load, receiver), received_ns, watched),
    };
    let parts = Parts {
        clients: &clients,
        receiver,
        watched,
    };
    let mut way = proof_segments::prove(&lab.topology, &devices, traffic, &parts);
    if let Some(connections) = &connections {
        connections::hold(&mut way, connections, cell, received.transactions);
    }
    if let Some(seen) = unix_connections {
        connections::hold_unix(&mut way, seen, cell);
    }
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
        answered: None,
        slices: receiver.slices.clone(),
        cpu,
        machines,
        clocks: None,
        latency: receiver.latency.clone(),
        first_packet: client.first_packet.clone(),
        arrivals: receiver.arrivals.clone(),
        open_loop: sender
            .due
            .zip(client.finished.or(receiver.due))
            .map(|(due, arrived)| OpenLoop { due, arrived }),
        search: None,
        zero_copy: sender.zero_copy,
        tcp,
        client_scheduling: client.scheduling,
        // Only CPUs of hopyard's machine.
        client_cpus: busy.client.filter(|_| is_here),
        server_cpus: busy.server.filter(|_| is_here),
        allowed_cpus: busy.allowed.filter(|_| is_here),
        arrived: arrived(cell.load, &lab.topology, &devices),
        devices: touched(devices, &lab.topology),
        offloads: lab.offloads.clone(),
        link: lab.link.clone(),
        queue_changes: beside.queues.as_ref().map(|queues| QueueChanges {
            count: queues.changes,
            flows: cell.axes.flows,
            span_ns: beside.span_ns,
        }),
        queue_frames: beside.queues.map_or_else(Vec::new, |queues| queues.frames),
        guest_steal_ratio: beside.guest_steal_ratio,
        silent_flows: silent(receiver),
        missed_windows: 0,
        turns: Vec::new(),
        datapath: lab.datapath(),
        guest: lab.guest_used(),
        endpoints: lab.endpoints_used(),
        tracking: beside.tracking,
        connections,
        // Those of hopyard's machine.
        backlog_drops: beside.backlog_drops.filter(|_| is_here),
        way,
    };
    match clocks {
        Some(clocks) => measurement.forget_uncertain_delays(ClocksCompared {
            edges_within_ns: clocks
                .bound_ns
                .saturating_add(client.late_ns.max(server.late_ns)),
            ..clocks
        }),
        None if !lab.has_one_clock() => measurement.forget_one_way_times(),
        None => {}
    }
    Ok(measurement)
}

/// The two counts as (receiver, sender): the receiver of a stream counts it; the client counts transactions.
pub(super) fn receiver_and_sender<'a>(
    load: LoadKind,
    client: &'a Tallied,
    server: &'a Tallied,
) -> (&'a Tallied, &'a Tallied) {
    if load.is_stream() && !load.is_from_server() {
        (server, client)
    } else if load.is_stream() {
        (client, server)
    } else {
        (client, client)
    }
}

/// Flows of which nothing arrived, if the receiver counts by flow.
fn silent(receiver: &Tallied) -> Option<u32> {
    let (silent, all) = match &receiver.arrivals {
        Some(Arrivals { flows, .. }) => {
            (flows.iter().filter(|f| f.packets == 0).count(), flows.len())
        }
        None => {
            let flows = &receiver.flows;
            let silent = flows.iter().filter(|f| **f == Counted::default());
            (silent.count(), flows.len())
        }
    };
    (all > 0).then(|| u32::try_from(silent).unwrap_or(u32::MAX))
}

/// What the receiver's kernel received. A program that was behind when the window opened reads older data, megabytes of
/// it, which the devices did not count in the window.
fn taken_in(load: LoadKind, receiver: &Tallied) -> Counted {
    let mut received = receiver.received;
    if let Some(tcp) = receiver.tcp.filter(|_| load.is_stream()) {
        received.bytes = tcp.bytes_received;
    }
    if let Some(arrivals) = &receiver.arrivals {
        received.messages = arrivals.packets();
        received.bytes = arrivals.bytes();
    }
    received
}

/// The devices of the path, and all others that saw a packet: there may be many idle ports.
fn touched(mut devices: Vec<DeviceCount>, topology: &Topology) -> Vec<DeviceCount> {
    let hops = topology.hops();
    let on_way: HashSet<_> = hops.map(|hop| (hop.namespace, &*hop.device)).collect();
    devices.retain(|device| {
        on_way.contains(&(&*device.namespace, &*device.name))
            || device.rx_packets + device.tx_packets + device.dropped > 0
    });
    devices
}

/// What the receiving end's own device received: of all flows, or of each.
fn arrived(load: LoadKind, topology: &Topology, devices: &[DeviceCount]) -> Option<Arrived> {
    let backwards = load.is_from_server();
    let shared = if backwards && !topology.containers.is_empty() {
        None
    } else if backwards {
        topology.way.first()
    } else {
        topology.way.last()
    };
    let each = |container: &'_ Client| -> Option<Hop> {
        let hop = if backwards {
            container.way.first()
        } else {
            container.way.last()
        };
        hop.cloned()
    };
    let hops: Vec<Hop> = match shared {
        Some(hop) => vec![hop.clone()],
        None => topology.containers.iter().filter_map(each).collect(),
    };
    if !load.is_stream() || hops.is_empty() {
        return None;
    }
    let by_name = devices.iter().map(|d| ((&*d.namespace, &*d.name), d));
    let by_name: HashMap<_, _> = by_name.collect();
    let mut all = Arrived { bytes: 0, skbs: 0 };
    for hop in hops {
        let device = by_name.get(&(hop.namespace, &*hop.device))?;
        let (bytes, skbs) = counted(device, &hop, backwards);
        all.bytes += bytes;
        all.skbs += skbs;
    }
    Some(all)
}

/// Bytes and packets of one direction through a device; loopback counts both directions as forward.
fn counted(device: &DeviceCount, hop: &Hop, backwards: bool) -> (u64, u64) {
    let counts = if backwards && !hop.backward.is_empty() {
        hop.backward
    } else {
        hop.forward
    };
    if counts.contains(&Direction::Rx) {
        (device.rx_bytes, device.rx_packets)
    } else {
        (device.tx_bytes, device.tx_packets)
    }
}

/// CPU time that the load could not have, ns: what was stolen, and what others used. A container does not see the processes of
/// others, so all that the CPUs did beside the load and the controller is taken for theirs, where that is more.
fn taken_ns(cpu: &CpuUse) -> f64 {
    let beside_ns = match cpu.workers_ns {
        Some(workers_ns) => cpu.busy_ns - workers_ns - cpu.controller_ns,
        None => 0.0,
    };
    cpu.steal_ns + cpu.foreign_ns.max(beside_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assess::testing::measured;

    #[test]
    fn others_have_what_they_use_or_what_the_load_leaves_of_busy_cpus() {
        let taken = |busy_ns, workers_ns, foreign_ns, steal_ns| {
            taken_ns(&CpuUse {
                busy_ns,
                workers_ns,
                foreign_ns,
                steal_ns,
                controller_ns: 1.0,
                ..measured(1).cpu
            })
        };
        assert_eq!(taken(100.0, Some(20.0), 5.0, 3.0), 82.0);
        assert_eq!(taken(100.0, Some(20.0), 90.0, 3.0), 93.0);
        // Nothing is known of the load's own: it may be all.
        assert_eq!(taken(100.0, None, 5.0, 3.0), 8.0);
        // Stolen time that is also idle makes the busy time too low.
        assert_eq!(taken(-10.0, Some(20.0), 0.0, 40.0), 40.0);
    }
}
