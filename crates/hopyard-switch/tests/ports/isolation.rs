//! An isolated port and every other kind of port.

use std::net::Ipv4Addr;

use hopyard_net::{LinkKind, NewLink};
use hopyard_switch::{Mac, NewPort, PortChange};

use crate::frames::{BROADCAST, EXPERIMENT, arp, frame};
use crate::listen::Ear;
use crate::packet::{ARP, IPV4, UDP, ethernet, ipv4, udp};
use crate::site::{Site, guest, guest_mac, hold, space};
use crate::world::tap::{TAP, Tap};

const TAP_MAC: [u8; 6] = [2, 0, 0, 0, 0, 99];
const LATE_MAC: [u8; 6] = [2, 0, 0, 0, 0, 98];

#[test]
fn nothing_passes_between_an_isolated_port_and_a_port_of_any_kind() {
    let site = Site::new("isolation", 2);
    let tap = Tap::open(&site.hub, "tap0", TAP);
    // A pair that is in the hub still when its port is added; its other end moves to its guest later.
    let kind = LinkKind::Veth {
        peer: "late".to_owned(),
        peer_ns: None,
        peer_mac: Some(LATE_MAC),
    };
    let new = NewLink {
        up: true,
        ..NewLink::new("p2", kind)
    };
    site.hub.add_link(&new).unwrap();
    site.connect(false, |n, port| port.isolated = n == 0);
    for (device, mac) in [("tap0", TAP_MAC), ("p2", LATE_MAC)] {
        let port = NewPort {
            device,
            macs: vec![Mac(mac)],
            ..NewPort::default()
        };
        site.switch(|switch| switch.add_port(&port)).unwrap();
    }
    let late = space();
    site.hub.move_to("late", late.ns()).unwrap();
    late.set_up("late").unwrap();
    assert!(site.hub.settle("p2").unwrap() && late.settle("late").unwrap());
    let ears = [
        Ear::open(&site.guests[0], "eth0", EXPERIMENT),
        Ear::open(&site.guests[1], "eth0", EXPERIMENT),
        Ear::open(&late, "late", EXPERIMENT),
    ];
    let wire = Ear::open(&site.far, "far0", EXPERIMENT);
    let all = |mac| frame(BROADCAST, mac, EXPERIMENT, b"to all");
    // 3 copies are not made of each broadcast of the isolated port.
    for n in 1..=5 {
        ears[0].send(&all(guest_mac(0)));
        assert_eq!(tap.heard().len(), 0, "the tap");
        assert_eq!(ears[1].heard().len(), 0, "the guest");
        assert_eq!(ears[2].heard().len(), 0, "the guest that came late");
        assert_eq!(wire.heard().len(), 1, "the wire");
        assert_eq!(site.drops("p0"), [("isolated", 3 * n)]);
    }
    // One isolated port is enough: it hears nothing of the others, who hear each other.
    tap.send(&all(TAP_MAC));
    assert_eq!(ears[0].heard().len(), 0);
    assert_eq!(ears[1].heard().len() + ears[2].heard().len(), 2);
    assert_eq!(site.drops("tap0"), [("isolated", 1)]);
    ears[2].send(&all(LATE_MAC));
    assert_eq!(ears[0].heard().len(), 0);
    assert_eq!(ears[1].heard().len() + tap.heard().len(), 2);
    assert_eq!(site.drops("p2"), [("isolated", 1)]);
    for mac in [TAP_MAC, LATE_MAC, guest_mac(1)] {
        ears[0].send(&frame(mac, guest_mac(0), EXPERIMENT, b"to one"));
    }
    assert_eq!(ears[1].heard().len() + ears[2].heard().len(), 0);
    assert_eq!(tap.heard().len(), 0);
    assert_eq!(site.drops("p0"), [("isolated", 18)]);
}

fn isolate(site: &Site, device: &str, isolated: bool) {
    let change = PortChange {
        device,
        isolated: Some(isolated),
        ..PortChange::default()
    };
    site.switch(|switch| switch.set_port(&change)).unwrap();
}

#[test]
fn isolation_is_changed_in_place() {
    let site = Site::new("isolate", 2);
    site.connect(true, hold);
    let ears = [0, 1].map(|n| Ear::open(&site.guests[n], "eth0", ARP));
    let asks = |n: usize| {
        let [from, to] = [n, 1 - n].map(guest);
        let question = arp(guest_mac(n), [10, 0, 0, from], [10, 0, 0, to]);
        ears[n].send(&question);
        // What it asked the other guest, and what the other guest asked it back; the answer of the table.
        (ears[1 - n].heard().len(), ears[n].heard().len())
    };
    let counters = |n: usize| site.drops(&format!("p{n}"));
    assert_eq!(asks(0), (0, 1), "answered from the table");
    // Either end is enough, and each hears of it: in the records, the stations and the addresses.
    for (device, other) in [("p0", 1), ("p1", 0)] {
        isolate(&site, device, true);
        let shown = site.show();
        let port = shown
            .ports
            .iter()
            .find(|port| port.device == device)
            .unwrap();
        assert!(port.isolated && shown.warnings.is_empty(), "{shown:?}");
        let before = [counters(0), counters(1)];
        for n in [other, 1 - other] {
            assert_eq!(asks(n), (0, 0), "{device} is isolated, from g{n}");
        }
        assert_ne!([counters(0), counters(1)], before);
        isolate(&site, device, false);
        assert!(site.show().ports.iter().all(|port| !port.isolated));
        assert_eq!(asks(other), (0, 1), "{device} is isolated no more");
    }
    // Unicast as well, both ways.
    let ears = [0, 1].map(|n| Ear::open(&site.guests[n], "eth0", IPV4));
    let udp = |n: usize| {
        let [from, to] = [n, 1 - n].map(|n| Ipv4Addr::new(10, 0, 0, guest(n)));
        let packet = ipv4(UDP, from, to, &[], &udp(1, 2, b"to one"));
        ears[n].send(&ethernet(guest_mac(1 - n), guest_mac(n), IPV4, &packet));
        ears[1 - n].heard().len()
    };
    for isolated in [true, false] {
        isolate(&site, "p0", isolated);
        assert_eq!([udp(0), udp(1)], [usize::from(!isolated); 2]);
    }
    let error = site.switch(|switch| {
        let change = PortChange {
            device: "up0",
            ..PortChange::default()
        };
        switch.set_port(&change).unwrap_err()
    });
    assert!(error.is_usage(), "{error:?}");
    assert!(error.to_string().contains("none of its ports"), "{error}");
}
