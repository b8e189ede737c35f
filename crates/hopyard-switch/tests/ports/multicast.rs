//! Multicast without snooping: every port of the VLAN gets a copy, and what a port may send of it bounds the copies.

use hopyard_switch::{BROADCAST_BURST_S, Broadcasts};

use crate::frames::{EXPERIMENT, frame};
use crate::listen::Ear;
use crate::site::{Site, guest_mac};

/// Groups of IPv4 and IPv6, and one that is neither.
const GROUPS: [[u8; 6]; 3] = [
    [0x01, 0, 0x5e, 1, 2, 3],
    [0x33, 0x33, 0, 1, 2, 3],
    [0x03, 0, 0, 0, 0, 1],
];

/// All routers, and where hosts report the groups that they have joined, of IPv4 and IPv6.
const OF_ROUTERS: [[u8; 6]; 4] = [
    [0x01, 0, 0x5e, 0, 0, 2],
    [0x01, 0, 0x5e, 0, 0, 22],
    [0x33, 0x33, 0, 0, 0, 2],
    [0x33, 0x33, 0, 0, 0, 0x16],
];

#[test]
fn what_is_for_routers_goes_to_ports_of_routers_and_the_wire() {
    let site = Site::silent("routers", 4);
    site.connect(false, |n, port| {
        port.router = n == 1;
        // A router of another VLAN.
        port.vlan = (n == 3).then_some(7);
        port.router |= n == 3;
    });
    let ears = [0, 1, 2, 3].map(|n| Ear::open(&site.guests[n], "eth0", EXPERIMENT));
    let wire = Ear::open(&site.far, "far0", EXPERIMENT);
    let heard = || [0, 1, 2, 3].map(|n| ears[n].heard().len());
    for group in OF_ROUTERS {
        ears[0].send(&frame(group, guest_mac(0), EXPERIMENT, b"joined"));
    }
    assert_eq!((heard(), wire.heard().len()), ([0, 4, 0, 0], 4));
    for group in OF_ROUTERS {
        wire.send(&frame(group, [2, 0, 0, 0, 9, 9], EXPERIMENT, b"joined"));
    }
    assert_eq!(heard(), [0, 4, 0, 0]);
    // A group beside them is anybody's.
    let other = [0x33, 0x33, 0, 0, 0, 0x17];
    ears[0].send(&frame(other, guest_mac(0), EXPERIMENT, b"to a group"));
    assert_eq!((heard(), wire.heard().len()), ([0, 1, 1, 0], 1));
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
