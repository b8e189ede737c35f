//! Where frames go.

use etherparse::PacketBuilder;
use hopyard_net::cpu;
use hopyard_tap::switch::{Choice, NewPort, NewSwitch, QueueCount, Reason, Switch};
use hopyard_tap::{Device, Error, NewDevice, Queues, TunLayer};

use crate::stations::{BROADCAST, TAP, frame, heard, joined, mac, until};

#[test]
fn frames_go_where_their_address_was_heard_and_else_everywhere() {
    let (switch, stations) = joined(3, NewSwitch::default());
    let hear = || [0, 1, 2].map(|at| heard(&switch, &stations, at));
    assert!(stations[0].send(&frame(BROADCAST, mac(1), 1)));
    assert_eq!(hear(), [vec![], vec![1], vec![1]]);
    // Not known yet.
    assert!(stations[0].send(&frame(mac(2), mac(1), 2)));
    assert_eq!(hear(), [vec![], vec![2], vec![2]]);
    assert!(stations[1].send(&frame(mac(1), mac(2), 3)));
    assert_eq!(hear(), [vec![3], vec![], vec![]]);
    assert!(stations[0].send(&frame(mac(2), mac(1), 4)));
    assert_eq!(hear(), [vec![], vec![4], vec![]]);
    // A station that moves is known from its first frame.
    assert!(stations[2].send(&frame(mac(1), mac(2), 5)));
    assert_eq!(hear(), [vec![5], vec![], vec![]]);
    assert!(stations[0].send(&frame(mac(2), mac(1), 6)));
    assert_eq!(hear(), [vec![], vec![], vec![6]]);
    // The destination is at the port it came from.
    assert!(stations[2].send(&frame(mac(2), mac(3), 7)));
    assert_eq!(hear().concat(), Vec::<u32>::new());

    let ports = switch.state().ports;
    assert_eq!(ports[2].counters.moved, 1);
    assert_eq!(ports[2].counters.drops, [(Reason::SamePort, 1)]);
    assert_eq!(ports[0].counters.flooded, 2);
    let moved = ports.iter().map(|p| p.counters.tx_frames).sum::<u64>();
    let dropped = ports.iter().map(|p| p.counters.dropped()).sum::<u64>();
    let read = ports.iter().map(|p| p.counters.rx_frames).sum::<u64>();
    let copies = ports.iter().map(|p| p.counters.flooded).sum::<u64>();
    assert_eq!(moved + dropped, read + copies, "{ports:#?}");
}

#[test]
fn a_flow_that_changes_its_queue_is_counted() {
    let new = NewSwitch {
        queues: QueueCount::Fixed(2),
        steering: Choice::Cpu,
        ..NewSwitch::default()
    };
    let (switch, stations) = joined(2, new);
    let before = switch.state().ports[1].counters.tx_frames;
    let mut datagram = Vec::new();
    PacketBuilder::ethernet2(mac(1), mac(2))
        .ipv4([10, 7, 0, 1], [10, 7, 0, 2], 64)
        .udp(7, 9)
        .write(&mut datagram, &[0; 64])
        .unwrap();
    let cpus = cpu::current_affinity().unwrap();
    let rounds = 20;
    for round in 0..rounds {
        let cpu = cpus[round % cpus.len()];
        cpu::pin_current_thread(&[cpu]).unwrap();
        assert!(stations[0].send(&datagram));
        // A frame is counted after it was written.
        let sent = before + round as u64 + 1;
        until(&switch, "passed on", |ports| {
            ports[1].counters.tx_frames >= sent
        });
    }
    let queue = |round: usize| cpus[round % cpus.len()] % 2;
    let changes = (1..rounds).filter(|round| queue(*round) != queue(round - 1));
    let ports = switch.state().ports;
    assert_eq!(ports[0].counters.queue_changes, changes.count() as u64);
}

/// Frames by each queue of a port.
fn by_queue(switch: &Switch, port: usize) -> Vec<u64> {
    let ports = switch.state().ports;
    ports[port]
        .by_queue
        .iter()
        .map(|queue| queue.rx_frames)
        .collect()
}

#[test]
fn pinned_flows_have_the_queues_in_turn_and_stay() {
    const QUEUES: u64 = 4;
    const FLOWS: u16 = 8;
    const FRAMES: u64 = 20;
    let new = NewSwitch {
        queues: QueueCount::Fixed(QUEUES as usize),
        steering: Choice::Pinned,
        ..NewSwitch::default()
    };
    let (switch, stations) = joined(2, new);
    let datagram = |flow: u16, is_answer: bool| {
        let mut ends = [
            (mac(1), [10, 7, 0, 1], 1000 + flow),
            (mac(2), [10, 7, 0, 2], 9),
        ];
        if is_answer {
            ends.reverse();
        }
        let [from, to] = ends;
        let mut frame = Vec::new();
        PacketBuilder::ethernet2(from.0, to.0)
            .ipv4(from.1, to.1, 64)
            .udp(from.2, to.2)
            .write(&mut frame, &[0; 64])
            .unwrap();
        frame
    };
    let send = |from: usize, flow: u16| {
        let before = switch.state().ports[1 - from].counters.tx_frames;
        assert!(stations[from].send(&datagram(flow, from == 1)));
        until(&switch, "passed on", |ports| {
            ports[1 - from].counters.tx_frames > before
        });
    };
    // The first frame of each flow comes by hash.
    (0..FLOWS).for_each(|flow| send(0, flow));
    let before = [0, 1].map(|port| by_queue(&switch, port));
    for _ in 0..FRAMES {
        for flow in 0..FLOWS {
            send(0, flow);
            send(1, flow);
        }
    }
    for (port, before) in before.iter().enumerate() {
        let now = by_queue(&switch, port);
        let came: Vec<u64> = now
            .iter()
            .zip(before)
            .map(|(now, then)| now - then)
            .collect();
        assert_eq!(came, [FRAMES * u64::from(FLOWS) / QUEUES; QUEUES as usize]);
        assert_eq!(switch.state().ports[port].counters.queue_changes, 0);
    }
}

#[test]
fn the_devices_go_with_the_switch_and_what_makes_no_sense_is_refused() {
    let (switch, stations) = joined(2, NewSwitch::default());
    assert!(stations[0].handle.link(TAP).unwrap().up);
    // Nobody else may be the switch.
    let tap = stations[0].handle.tun_link(TAP).unwrap().unwrap();
    assert_eq!(tap.owner, Some(0));
    drop(switch);
    assert!(stations.iter().all(|s| s.handle.link(TAP).is_err()));

    let ns = || stations[0].handle.ns().try_clone().unwrap();
    let ports = |names: &[&str]| {
        let port = |name: &&str| NewPort::new(*name, ns());
        names.iter().map(port).collect::<Vec<_>>()
    };
    let refused = |names: &[&str], queues| {
        let new = NewSwitch {
            ports: ports(names),
            queues,
            ..NewSwitch::default()
        };
        let error = new.start().unwrap_err();
        assert!(error.is_usage(), "{error}");
        assert_eq!(
            stations[0].handle.links().unwrap().len(),
            1,
            "nothing is left"
        );
        error
    };
    let one = QueueCount::Fixed(1);
    assert!(refused(&["a"], one).to_string().contains("2 to 1024 taps"));
    assert!(
        refused(&["a", "a"], one)
            .to_string()
            .contains("named twice")
    );
    let none = QueueCount::Fixed(0);
    assert!(
        refused(&["a", "b"], none)
            .to_string()
            .contains("1 to 256 queues")
    );
    let other = refused(&["a", "lo"], one);
    assert!(matches!(other, Error::OtherKind { .. }), "{other}");

    // Somebody's own tap keeps the header that it has.
    let single = NewDevice {
        queues: Queues::Single,
        persistent: true,
        ..NewDevice::tap("old")
    };
    let seen = || ns().run(|| Device::find("old").unwrap().unwrap()).unwrap();
    drop(ns().run(|| single.create().unwrap()).unwrap());
    let before = seen();
    let new = NewSwitch {
        ports: ports(&["old", "a"]),
        ..NewSwitch::default()
    };
    let error = new.start().unwrap_err();
    assert!(matches!(error, Error::NotMultiQueue { .. }), "{error}");
    assert!(!before.vnet_header);
    assert_eq!(seen(), before);

    // Without Ethernet addresses.
    let tun = NewDevice {
        queues: Queues::Multi(1),
        layer: TunLayer::Tun,
        persistent: true,
        ..NewDevice::tap("packets")
    };
    drop(ns().run(|| tun.create().unwrap()).unwrap());
    let new = NewSwitch {
        ports: ports(&["packets", "a"]),
        ..NewSwitch::default()
    };
    let error = new.start().unwrap_err();
    assert!(error.to_string().contains("it is a tun"), "{error}");
}
