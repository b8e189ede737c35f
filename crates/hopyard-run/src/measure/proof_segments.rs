//! Path proof if each container has its own part of the path.

use std::collections::HashMap;

use crate::lab::Topology;
use crate::load::protocol::Tallied;
use crate::meter::path_proof::{self, Bracket, ProofSegment, Traffic, Watched};
use crate::model::{Axes, Counted, DeviceCount, Hop, PathProof, Scheduler};
use crate::units::float;

/// The traffic as the ends of its flows counted it.
pub(super) struct Parts<'a> {
    /// Each client.
    pub(super) clients: &'a [Tallied],
    /// The receiver of it, all flows in their order.
    pub(super) receiver: &'a Tallied,
    pub(super) watched: Watched,
}

/// Name for all containers together.
const TOGETHER: &str = "containers";

/// Compares the counters of a lab's devices with the traffic: devices that all traffic passes, the containers' own
/// devices added up, and those of each container.
pub(super) fn prove(
    topology: &Topology,
    devices: &[DeviceCount],
    traffic: Traffic<'_>,
    parts: &Parts<'_>,
) -> PathProof {
    let all = |hops| ProofSegment {
        hops,
        traffic,
        burst: None,
    };
    let (sums, hops) = together(topology, devices);
    let joined = topology.joined(traffic.load, traffic.axes);
    let [client_side, server_side] = sides(topology, traffic);
    let mut segments = vec![client_side, server_side, all(&hops), all(&joined)];
    let burst = traffic
        .sent
        .most
        .plus(traffic.received.most)
        .times(turn_ns(traffic.axes) / float(parts.watched.shortest_ns.max(1)));
    // The receiver's flows are in the order of the containers, whichever end it is. A flow without counts may not have
    // arrived.
    let flows = parts.receiver.flows.iter().copied();
    let flows = flows.chain(std::iter::repeat(Counted::default()));
    let ends = flows.zip(parts.clients);
    for (container, (received, client)) in topology.containers.iter().zip(ends) {
        segments.push(ProofSegment {
            hops: &container.way,
            traffic: part(traffic, received, client, parts),
            burst: Some(burst),
        });
    }
    path_proof::prove_segments(&segments, &[devices, &sums].concat())
}

/// The devices that all traffic passes, on each side of a program that ends connections and makes its own. Without such
/// a program, all of them are on the server's side. Data waiting in the program's sockets has passed the sender's side.
/// In a window of a stream it may be more than what arrives.
fn sides<'a>(topology: &'a Topology, traffic: Traffic<'a>) -> [ProofSegment<'a>; 2] {
    let (before, behind) = topology.way.split_at(topology.spliced_at.unwrap_or(0));
    let waits = topology.spliced_at.is_some() && traffic.load.is_stream();
    let side = |hops, is_senders| ProofSegment {
        hops,
        traffic,
        // One full socket buffer is always allowed for.
        burst: (waits && is_senders).then(Counted::default),
    };
    let from_server = traffic.load.is_from_server();
    [side(before, !from_server), side(behind, from_server)]
}

/// How long one of many senders may keep its CPU, ns: a slice of `SCHED_RR` (`sched_rr_timeslice_ms`), or a few slices
/// of the default scheduler.
fn turn_ns(axes: &Axes) -> f64 {
    match axes.scheduler {
        Some(Scheduler::RoundRobin) => 100e6,
        _ => 10e6,
    }
}

/// One container's part of the traffic.
fn part<'a>(
    traffic: Traffic<'a>,
    received: Counted,
    client: &Tallied,
    parts: &Parts<'_>,
) -> Traffic<'a> {
    let load = traffic.load;
    let (sender, sent) = if load.is_from_server() {
        (parts.receiver, received)
    } else if load.is_stream() {
        (client, client.sent)
    } else {
        (client, Counted::default())
    };
    Traffic {
        sent: Bracket::over(sent, sender.window_ns, parts.watched),
        received: Bracket::over(received, parts.receiver.window_ns, parts.watched),
        ..traffic
    }
}

/// The counters of the containers' own devices, added up by their position on the path.
fn together(topology: &Topology, devices: &[DeviceCount]) -> (Vec<DeviceCount>, Vec<Hop>) {
    let by_name = devices.iter().map(|d| ((&*d.namespace, &*d.name), d));
    let by_name: HashMap<_, _> = by_name.collect();
    // All traffic passes the positions that every container has.
    let lengths = topology.containers.iter().map(|c| c.way.len());
    let places = lengths.min().unwrap_or(0);
    let sum = |place: usize| {
        let own = topology.containers.iter().filter_map(|c| c.way.get(place));
        let counts = own.filter_map(|hop| by_name.get(&(hop.namespace, &*hop.device)));
        let mut sum = DeviceCount::new(TOGETHER, place.to_string(), [0, 0, 0, 0]);
        for count in counts {
            sum.rx_packets += count.rx_packets;
            sum.rx_bytes += count.rx_bytes;
            sum.tx_packets += count.tx_packets;
            sum.tx_bytes += count.tx_bytes;
        }
        sum
    };
    let sums: Vec<_> = (0..places).map(sum).collect();
    let first = topology.containers.first();
    let like = first.into_iter().flat_map(|first| &first.way).zip(&sums);
    let hops = like.map(|(hop, sum)| Hop {
        namespace: TOGETHER,
        device: sum.name.clone(),
        ..hop.clone()
    });
    let hops = hops.collect();
    (sums, hops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{Addresses, Endpoint};
    use crate::model::{LoadKind, Peer};

    /// Bytes that left the program, of which the device on one side has counted this many.
    fn proved(load: LoadKind, spliced_at: Option<usize>, on_tap: u64, on_wire: u64) -> bool {
        let end = |role| Endpoint::new(role, "eth0", Addresses::LOOPBACK);
        let topology = Topology {
            client: end("a"),
            server: end("far"),
            way: vec![Hop::tx("a", "tap0"), Hop::tx("hub", "up0")],
            containers: Vec::new(),
            spliced_at,
        };
        let axes = Axes::default().for_cell(load, Peer::Far, &[]);
        let counted = Counted {
            bytes: 5_000_000,
            messages: 300,
            transactions: 0,
        };
        let traffic = Traffic {
            load,
            axes: &axes,
            sent: counted.into(),
            received: counted.into(),
        };
        let device = |namespace: &str, name: &str, bytes: u64| {
            DeviceCount::new(namespace, name, [bytes / 1000, bytes, bytes / 1000, bytes])
        };
        let devices = [device("a", "tap0", on_tap), device("hub", "up0", on_wire)];
        path_proof::prove_segments(&sides(&topology, traffic), &devices).proved
    }

    /// A program in between had bytes of the warm-up in its sockets, which pass the wire in the window.
    #[test]
    fn bytes_that_waited_in_a_program_have_passed_the_senders_side() {
        const ALL: u64 = 5_100_000;
        const FEW: u64 = 600_000;
        let sent = LoadKind::TcpStream;
        assert!(proved(sent, Some(1), ALL, ALL));
        assert!(proved(sent, Some(1), FEW, ALL));
        assert!(
            !proved(sent, None, FEW, ALL),
            "without a program both count alike"
        );
        assert!(
            !proved(sent, Some(1), ALL, FEW),
            "what came passed the receiver's side"
        );
        assert!(!proved(sent, Some(1), 0, ALL), "nothing passed the tap");
        assert!(
            !proved(sent, Some(1), 60 * ALL, ALL),
            "too much to have waited"
        );
        // In the other direction, the sender's side is the wire.
        let fetched = LoadKind::TcpMaerts;
        assert!(proved(fetched, Some(1), ALL, FEW));
        assert!(!proved(fetched, Some(1), FEW, ALL));
    }
}
