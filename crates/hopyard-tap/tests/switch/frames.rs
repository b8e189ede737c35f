//! Where frames go.

use etherparse::PacketBuilder;
use hopyard_net::cpu;
use hopyard_tap::Error;
use hopyard_tap::switch::{Choice, NewPort, NewSwitch, QueueCount, Reason};

use crate::stations::{BROADCAST, TAP, frame, heard, joined, mac, until};

#[test]
fn frames_go_where_their_address_was_heard_and_else_everywhere() {
    let (switch, stations) = joined(3, NewSwitch::default());
    let hear = || [0, 1, 2].map(|at| heard(&switch, &stations, at));
    assert!(stations[0].send(&frame(BROADCAST, mac(1), 1)));
    assert_eq!(hear(), [vec![], vec![1], vec![1]]);
    // Not heard yet.
    assert!(stations[0].send(&frame(mac(2), mac(1), 2)));
    assert_eq!(hear(), [vec![], vec![2], vec![2]]);
    assert!(stations[1].send(&frame(mac(1), mac(2), 3)));
    assert_eq!(hear(), [vec![3], vec![], vec![]]);
    assert!(stations[0].send(&frame(mac(2), mac(1), 4)));
    assert_eq!(hear(), [vec![], vec![4], vec![]]);
    // A station that moves is followed with its first frame.
    assert!(stations[2].send(&frame(mac(1), mac(2), 5)));
    assert_eq!(hear(), [vec![5], vec![], vec![]]);
    assert!(stations[0].send(&frame(mac(2), mac(1), 6)));
    assert_eq!(hear(), [vec![], vec![], vec![6]]);
    // Whom it is for is where it came from.
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
        // What is counted of it is, once it has been written.
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

#[test]
fn the_devices_go_with_the_switch_and_what_makes_no_sense_is_refused() {
    let (switch, stations) = joined(2, NewSwitch::default());
    assert!(stations[0].handle.link(TAP).unwrap().up);
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
}
