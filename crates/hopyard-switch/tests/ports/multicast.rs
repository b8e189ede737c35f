//! Multicast without snooping: every port of the VLAN gets a copy, and what a port may send of it bounds the copies.

use std::net::{Ipv4Addr, Ipv6Addr};

use hopyard_switch::{BROADCAST_BURST_S, Broadcasts};

use crate::frames::{EXPERIMENT, frame};
use crate::listen::Ear;
use crate::packet::{self, IPV4, IPV6};
use crate::site::{Site, guest_mac};

/// Groups of IPv4 and IPv6, and one that is neither.
const GROUPS: [[u8; 6]; 3] = [
    [0x01, 0, 0x5e, 1, 2, 3],
    [0x33, 0x33, 0, 1, 2, 3],
    [0x03, 0, 0, 0, 0, 1],
];

/// All routers, and where hosts report the groups that they have joined.
const OF_ROUTERS: [Ipv4Addr; 2] = [Ipv4Addr::new(224, 0, 0, 2), Ipv4Addr::new(224, 0, 0, 22)];
const OF_ROUTERS6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2),
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16),
];
/// Anybody's, with the same Ethernet addresses.
const OF_OTHERS: [Ipv4Addr; 3] = [
    Ipv4Addr::new(239, 0, 0, 2),
    Ipv4Addr::new(224, 128, 0, 2),
    Ipv4Addr::new(232, 0, 0, 22),
];
const OF_OTHERS6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 2),
    Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 0x16),
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0, 2),
];
/// A protocol that nobody answers (RFC 3692).
const NOBODYS: u8 = 253;

/// What somebody sends to a group of IPv4.
fn to_group(mac: [u8; 6], group: Ipv4Addr) -> Vec<u8> {
    let [_, a, b, c] = group.octets();
    let packet = packet::ipv4(NOBODYS, Ipv4Addr::new(192, 0, 2, 1), group, &[], b"joined");
    frame([1, 0, 0x5e, a & 0x7f, b, c], mac, IPV4, &packet)
}

fn to_group6(mac: [u8; 6], group: Ipv6Addr) -> Vec<u8> {
    let [.., a, b, c, d] = group.octets();
    let packet = packet::ipv6(Ipv6Addr::LOCALHOST, group, NOBODYS, b"joined");
    frame([0x33, 0x33, a, b, c, d], mac, IPV6, &packet)
}

#[test]
fn what_is_for_routers_goes_to_ports_of_routers_and_the_wire() {
    let site = Site::silent("routers", 4);
    site.connect(false, |n, port| {
        port.router = n == 1;
        // A router of another VLAN.
        port.vlan = (n == 3).then_some(7);
        port.router |= n == 3;
    });
    let frames = |mac: [u8; 6], groups: &[Ipv4Addr], groups6: &[Ipv6Addr]| {
        let of4 = groups.iter().map(|group| (IPV4, to_group(mac, *group)));
        let of6 = groups6.iter().map(|group| (IPV6, to_group6(mac, *group)));
        of4.chain(of6).collect::<Vec<(u16, Vec<u8>)>>()
    };
    for kind in [IPV4, IPV6] {
        let ears = [0, 1, 2, 3].map(|n| Ear::open(&site.guests[n], "eth0", kind));
        let wire = Ear::open(&site.far, "far0", kind);
        let heard = || [0, 1, 2, 3].map(|n| ears[n].heard().len());
        let send = |ear: &Ear, frames: Vec<(u16, Vec<u8>)>| {
            let own = frames.iter().filter(|(of, _)| *of == kind);
            own.for_each(|(_, frame)| ear.send(frame));
        };
        send(&ears[0], frames(guest_mac(0), &OF_ROUTERS, &OF_ROUTERS6));
        assert_eq!((heard(), wire.heard().len()), ([0, 2, 0, 0], 2), "{kind:x}");
        let stranger = [2, 0, 0, 0, 9, 9];
        send(&wire, frames(stranger, &OF_ROUTERS, &OF_ROUTERS6));
        assert_eq!(heard(), [0, 2, 0, 0], "{kind:x}");
        send(&ears[0], frames(guest_mac(0), &OF_OTHERS, &OF_OTHERS6));
        assert_eq!((heard(), wire.heard().len()), ([0, 3, 3, 0], 3), "{kind:x}");
        send(&wire, frames(stranger, &OF_OTHERS, &OF_OTHERS6));
        assert_eq!(heard(), [3, 3, 3, 0], "{kind:x}");
    }
    assert_eq!(site.drops("p0"), []);
}

#[test]
fn copies_of_multicasts_are_bounded_by_what_a_port_may_send() {
    let site = Site::silent("multicast", 4);
    let per_second = 2;
    site.connect(false, |n, port| {
        port.broadcasts = Broadcasts::PerSecond(per_second);
        // A VLAN of its own.
        port.vlan = (n == 3).then_some(7);
    });
    let ears = [0, 1, 2, 3].map(|n| Ear::open(&site.guests[n], "eth0", EXPERIMENT));
    let wire = Ear::open(&site.far, "far0", EXPERIMENT);
    let at_once = (per_second * BROADCAST_BURST_S) as usize;
    let sent = at_once * GROUPS.len();
    for _ in 0..at_once {
        for group in GROUPS {
            ears[0].send(&frame(group, guest_mac(0), EXPERIMENT, b"to a group"));
        }
    }
    // Nobody joined the groups, and all of the VLAN hear them; who sends three times the limit is heard as often as it says, and
    // perhaps a few times more, for the time that it took.
    let heard = ears[1].heard().len();
    assert!(
        (at_once..at_once + 10).contains(&heard),
        "{heard} of {sent}"
    );
    assert_eq!(ears[2].heard().len(), heard);
    assert_eq!(wire.heard().len(), heard);
    assert_eq!(ears[3].heard().len() + ears[0].heard().len(), 0);
    assert_eq!(site.drops("p0"), [("broadcast", (sent - heard) as u64)]);
}
