//! Path proof: every device on the path counted what the traffic must have caused, and no other device did.
//!
//! Counters are per skb, so a 64 KiB segment counts once; bytes include all of it. The bounds are wide enough for
//! acknowledgements, headers and the edges of the window, and much too narrow for traffic that took another path.

mod bounds;

use std::collections::{HashMap, HashSet};

use self::bounds::{Bounds, CHATTER_PACKETS, expected};
pub use self::bounds::{Bracket, Watched};
use crate::model::{Axes, Counted, DeviceCount, Direction, Hop, LoadKind, PathProof};
use crate::units::float;

/// What was counted at the ends.
#[derive(Debug, Clone, Copy)]
pub struct Traffic<'a> {
    pub load: LoadKind,
    /// Values of the axes that decide sizes and offloads.
    pub axes: &'a Axes,
    /// Given to the sender's kernel.
    pub sent: Bracket,
    /// Received by the receiver's kernel.
    pub received: Bracket,
}

/// The most problems of a kind that are listed, because a lab may have many devices.
const TOLD: usize = 8;
/// Share of the busiest hop's count that other devices may have.
const ELSEWHERE: f64 = 0.01;

/// Devices that the same traffic must pass.
#[derive(Debug, Clone, Copy)]
pub struct ProofSegment<'a> {
    /// The devices of this segment.
    pub hops: &'a [Hop],
    /// Traffic that must pass each of them.
    pub traffic: Traffic<'a>,
    /// Tolerance for traffic that takes this device only partly. Devices and ends are not read at the same instant, and
    /// many senders on few CPUs send in bursts.
    pub burst: Option<Counted>,
}

/// Compares the counters of all devices of a lab with the traffic.
#[must_use]
pub fn prove(hops: &[Hop], devices: &[DeviceCount], traffic: Traffic<'_>) -> PathProof {
    let segment = ProofSegment {
        hops,
        traffic,
        burst: None,
    };
    prove_segments(&[segment], devices)
}

/// The same if some devices see only part of the traffic.
#[must_use]
pub(crate) fn prove_segments(segments: &[ProofSegment<'_>], devices: &[DeviceCount]) -> PathProof {
    let name = |device: &DeviceCount| (device.namespace.clone(), device.name.clone());
    let by_name: HashMap<_, _> = devices.iter().map(|d| (name(d), d)).collect();
    let mut on_way = HashSet::new();
    let mut problems = Vec::new();
    let mut busiest = 0;
    for (segment, hop) in segments
        .iter()
        .flat_map(|segment| segment.hops.iter().map(move |hop| (segment, hop)))
    {
        let of_hop = (hop.namespace.to_owned(), hop.device.clone());
        let Some(device) = by_name.get(&of_hop) else {
            problems.push(format!("{}/{} has no counters", hop.namespace, hop.device));
            continue;
        };
        on_way.insert(of_hop);
        busiest = busiest.max(device.rx_packets + device.tx_packets);
        for (forward, direction) in directions(hop) {
            let bounds = expected(segment.traffic, forward).map(|bounds| bounds.of(segment));
            if let Some(problem) = check(device, direction, bounds) {
                problems.push(problem);
            }
        }
    }
    let mut beside = Vec::new();
    for device in devices {
        let on_way = on_way.contains(&name(device));
        let packets = device.rx_packets + device.tx_packets;
        let allowed = float(busiest) * ELSEWHERE + CHATTER_PACKETS;
        if !on_way && float(packets) > allowed {
            beside.push(format!(
                "{}/{} is not on the path, but {packets} packets passed through it",
                device.namespace, device.name
            ));
        }
    }
    shorten(&mut beside, "beside it");
    shorten(&mut problems, "on the path");
    problems.extend(beside);
    PathProof {
        proved: problems.is_empty(),
        problems,
    }
}

/// Keeps some problems of a kind, and adds how many more there are.
fn shorten(problems: &mut Vec<String>, kind: &str) {
    if problems.len() > TOLD + 1 {
        let more = problems.len() - TOLD;
        problems.truncate(TOLD);
        problems.push(format!("… {kind}: {more} more"));
    }
}

/// For every count of a hop: whether it is client to server, and the counter.
fn directions(hop: &Hop) -> impl Iterator<Item = (bool, Direction)> {
    let forward = hop.forward.iter().map(|d| (true, *d));
    forward.chain(hop.backward.iter().map(|d| (false, *d)))
}

fn check(device: &DeviceCount, direction: Direction, bounds: Option<Bounds>) -> Option<String> {
    let Bounds { unit, low, high } = bounds?;
    let (packets, bytes, verb) = match direction {
        Direction::Rx => (device.rx_packets, device.rx_bytes, "received"),
        Direction::Tx => (device.tx_packets, device.tx_bytes, "sent"),
    };
    let seen = float(if unit == "packets" { packets } else { bytes });
    (!(low..=high).contains(&seen)).then(|| {
        format!(
            "{}/{} {verb} {seen:.0} {unit}, where the traffic must make {low:.0} to {high:.0}",
            device.namespace, device.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Peer;

    fn device(namespace: &str, name: &str, rx: (u64, u64), tx: (u64, u64)) -> DeviceCount {
        DeviceCount::new(namespace, name, [rx.0, rx.1, tx.0, tx.1])
    }

    fn prove_stream(received: u64, devices: &[DeviceCount]) -> PathProof {
        let axes = Axes::default().for_cell(LoadKind::TcpStream, Peer::Local, &[]);
        let counted = Counted {
            bytes: received,
            ..Counted::default()
        };
        let traffic = Traffic {
            load: LoadKind::TcpStream,
            axes: &axes,
            sent: counted.into(),
            received: counted.into(),
        };
        prove(
            &[Hop::tx("a", "eth0"), Hop::rx("b", "eth0")],
            devices,
            traffic,
        )
    }

    #[test]
    fn the_expected_devices_alone_prove_it() {
        let gib = 1 << 30;
        let a = device("a", "eth0", (9000, 600_000), (16_500, gib + 1_000_000));
        let b = device("b", "eth0", (16_500, gib + 1_000_000), (9000, 600_000));
        let idle = device("hub", "br0", (3, 200), (3, 200));
        assert_eq!(
            prove_stream(gib, &[a, b, idle]),
            PathProof {
                proved: true,
                problems: vec![]
            }
        );
    }

    /// Between two readings of one edge the traffic may have stopped or gone on; both are allowed.
    #[test]
    fn who_reads_late_refutes_nothing() {
        let axes = Axes::default().for_cell(LoadKind::TcpRr, Peer::Local, &[]);
        let hops = [Hop::tx("a", "eth0")];
        let prove = |transactions: u64, watched: Watched, packets: u64| {
            let counted = Counted {
                bytes: transactions,
                messages: transactions,
                transactions,
            };
            let traffic = Traffic {
                load: LoadKind::TcpRr,
                axes: &axes,
                sent: Bracket::default(),
                received: Bracket::over(counted, 100, watched),
            };
            let seen = device("a", "eth0", (packets, 0), (packets, 0));
            prove(&hops, &[seen], traffic).proved
        };
        // The devices were watched a third longer, in which nothing happened, or everything went on.
        let longer = Watched::from(133);
        assert!(prove(10_000, longer, 10_000));
        assert!(prove(10_000, longer, 2 * 13_300));
        assert!(!prove(10_000, longer, 8_000));
        assert!(!prove(10_000, longer, 80_000));
        // The devices were watched a third less: all of it fell into that time, or the same rate as before.
        let shorter = Watched::from(67);
        assert!(prove(10_000, shorter, 4 * 10_000));
        assert!(prove(10_000, shorter, 6_700));
        assert!(!prove(10_000, shorter, 5_000));
        assert!(!prove(10_000, shorter, 50_000));
        // Some devices a third longer and some a third less, wherever the reading of all of them was held up.
        for some in [Watched::between(0..33, 100..133), longer.and(shorter)] {
            assert!(prove(10_000, some, 6_700));
            assert!(prove(10_000, some, 2 * 13_300));
            assert!(!prove(10_000, some, 5_000));
            assert!(!prove(10_000, some, 80_000));
        }
    }

    /// A receiver that had no CPU counts what passed the devices before the window opened.
    #[test]
    fn what_was_sent_before_the_window_passed_before() {
        let over = |bytes| {
            [("a", (0, 0), (9000, bytes)), ("b", (9000, bytes), (0, 0))]
                .map(|(space, rx, tx)| device(space, "eth0", rx, tx))
        };
        let mib = 1 << 20;
        assert!(prove_stream(4 * mib, &over(3 * mib)).proved);
        // Not so much of it.
        assert!(!prove_stream(4 * mib, &over(mib)).proved);
        assert!(prove_stream(100 * mib, &over(83 * mib)).proved);
        assert!(!prove_stream(100 * mib, &over(81 * mib)).proved);
    }

    #[test]
    fn a_device_passed_by_is_a_problem() {
        let gib = 1 << 30;
        let a = device("a", "eth0", (9000, 600_000), (16_500, gib));
        let b = device("b", "eth0", (4, 300), (4, 300));
        let way = prove_stream(gib, &[a, b]);
        assert_eq!(way.problems.len(), 1);
        assert!(way.problems[0].starts_with("b/eth0 received 300 bytes, where the traffic must"));
    }

    #[test]
    fn traffic_elsewhere_is_a_problem() {
        let gib = 1 << 30;
        let a = device("a", "eth0", (9000, 600_000), (16_500, gib));
        let b = device("b", "eth0", (16_500, gib), (9000, 600_000));
        let lo = device("hub", "lo", (16_500, gib), (16_500, gib));
        let way = prove_stream(gib, &[a, b, lo]);
        assert_eq!(
            way.problems,
            ["hub/lo is not on the path, but 33000 packets passed through it"]
        );
    }

    /// A container's segment: if its sender sent nothing, its device may count nothing.
    #[test]
    fn who_had_no_turn_refutes_nothing() {
        let still = device("c1", "eth0", (2, 120), (2, 120));
        let burst = Some(Counted {
            bytes: 1 << 20,
            messages: 1000,
            transactions: 1000,
        });
        let hops = [Hop::tx("c1", "eth0")];
        let prove = |load: LoadKind, sent: u64, device: &DeviceCount| {
            let axes = Axes::default().for_cell(load, Peer::Local, &[]);
            let sent = Counted {
                bytes: sent,
                messages: sent / 1400,
                transactions: 0,
            };
            let traffic = Traffic {
                load,
                axes: &axes,
                sent: sent.into(),
                received: Bracket::default(),
            };
            let segment = ProofSegment {
                hops: &hops,
                traffic,
                burst,
            };
            prove_segments(&[segment], std::slice::from_ref(device)).proved
        };
        let silent = device("c1", "eth0", (0, 0), (0, 0));
        assert!(prove(LoadKind::UdpFlood, 0, &silent));
        assert!(prove(LoadKind::UdpFlood, 0, &still));
        assert!(!prove(LoadKind::UdpFlood, 14_000, &silent));
        // A stream that only fills a socket's buffer has also sent nothing in the window.
        assert!(!prove(LoadKind::TcpStream, 0, &silent));
        assert!(!prove(LoadKind::TcpMaerts, 0, &silent));
        assert!(!prove(LoadKind::UdpRr, 0, &silent));
        // It must not have counted another container's traffic, as before.
        let busy = device("c1", "eth0", (0, 0), (20_000, 20 << 20));
        assert!(!prove(LoadKind::UdpFlood, 0, &busy));
    }

    #[test]
    fn of_many_problems_some_are_told() {
        let gib = 1 << 30;
        let a = device("a", "eth0", (9000, 600_000), (16_500, gib));
        let b = device("b", "eth0", (16_500, gib), (9000, 600_000));
        let others = (0..100).map(|n| device("hub", &format!("p{n}"), (16_500, gib), (0, 0)));
        let devices: Vec<_> = [a, b].into_iter().chain(others).collect();
        let way = prove_stream(gib, &devices);
        assert_eq!(way.problems.len(), TOLD + 1);
        assert_eq!(way.problems[TOLD], "… beside it: 92 more");
    }

    #[test]
    fn a_missing_device_is_a_problem() {
        assert!(!prove_stream(1000, &[]).proved);
    }

    #[test]
    fn transactions_need_packets_both_ways() {
        let axes = Axes::default().for_cell(LoadKind::TcpRr, Peer::Local, &[]);
        let received = Counted {
            bytes: 10_000,
            messages: 10_000,
            transactions: 10_000,
        };
        let traffic = Traffic {
            load: LoadKind::TcpRr,
            axes: &axes,
            sent: Bracket::default(),
            received: received.into(),
        };
        let hops = [Hop::tx("a", "eth0")];
        let good = device("a", "eth0", (10_100, 700_000), (10_100, 700_000));
        assert!(prove(&hops, &[good], traffic).proved);
        let one_way = device("a", "eth0", (0, 0), (10_100, 700_000));
        assert_eq!(prove(&hops, &[one_way], traffic).problems.len(), 1);
        // A stalled window has few transactions. A device that none of them passed is not on the path.
        let few = Traffic {
            received: Bracket::from(Counted {
                transactions: 10,
                ..received
            }),
            ..traffic
        };
        let quiet = device("a", "eth0", (10, 700), (0, 0));
        assert_eq!(prove(&hops, &[quiet], few).problems.len(), 1);
    }
}
