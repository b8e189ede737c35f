//! Guests as they are: with a bridge behind them, with large sends, other MTUs and tags of their own.

use std::io::Write;
use std::net::IpAddr;

use hopyard_net::{BridgeSettings, Handle, LinkKind, NewLink};

use crate::frames::{BROADCAST, EXPERIMENT, IPV4, frame, tagged};
use crate::listen::{Ear, Offloads};
use crate::site::{FAR, FAR_MAC, HOST, Site, address, guest, guest_mac, second_mac, space, v4, v6};
use crate::sockets::{connect, exchange};

/// Bridges forward at once, and everything.
fn at_once() -> BridgeSettings {
    let settings = BridgeSettings::default().stp(false).forward_delay(0);
    settings.multicast_snooping(false)
}

/// The station behind the bridge of a guest.
const STATION: u8 = 50;
const STATION_MAC: [u8; 6] = [2, 0, 0, 0, 0, STATION];

/// Puts a bridge behind guest 0 and a station behind the bridge.
fn bridge_behind(guest: &Handle) -> Handle {
    let station = space();
    let kind = LinkKind::Veth {
        peer: "eth0".to_owned(),
        peer_ns: Some(station.ns()),
        peer_mac: Some(STATION_MAC),
    };
    for new in [
        NewLink {
            mac: Some(guest_mac(0)),
            ..NewLink::new("br0", LinkKind::Bridge(at_once()))
        },
        NewLink::new("s0", kind),
    ] {
        guest.add_link(&NewLink { up: true, ..new }).unwrap();
    }
    station.set_up("eth0").unwrap();
    assert!(station.settle("eth0").unwrap() && guest.settle("s0").unwrap());
    guest.set_master("eth0", "br0").unwrap();
    guest.set_master("s0", "br0").unwrap();
    address(&station, "eth0", STATION);
    station
}

#[test]
fn a_station_on_a_bridge_behind_a_guest_is_reached_by_its_second_address() {
    let site = Site::new("behind", 2);
    let station = bridge_behind(&site.guests[0]);
    site.connect(false, |n, port| {
        if n == 0 {
            second_mac(port, guest_mac(0), STATION_MAC);
        }
    });
    let ear = Ear::open(&station, "eth0", EXPERIMENT);
    for (who, device, mac) in [
        (&site.guests[1], "eth0", guest_mac(1)),
        (&site.far, "far0", FAR_MAC),
        (&site.hub, "up0", site.host_mac()),
    ] {
        let sent = frame(STATION_MAC, mac, EXPERIMENT, b"to the one behind");
        Ear::open(who, device, EXPERIMENT).send(&sent);
        // Unchanged, its own destination address included.
        assert_eq!(ear.heard(), [sent]);
    }
    for (who, there) in [
        (&site.guests[1], guest(1)),
        (&site.far, FAR),
        (&site.hub, HOST),
    ] {
        exchange(who, &station, v4(STATION), 100_000);
        exchange(&station, who, v6(there).into(), 100_000);
    }
    // The guest itself is reached too, by the address that its bridge has.
    address(&site.guests[0], "br0", 51);
    let back = Some((v4(guest(1)), 32));
    site.guests[0].add_route(back, None, Some("br0")).unwrap();
    exchange(&site.guests[1], &site.guests[0], v4(51), 100_000);
    for party in ["p0", "p1", "wire", "host"] {
        assert_eq!(site.drops(party), [], "{party}");
    }
}

/// Sends `size` bytes by TCP and waits until they are read.
fn stream(from: &Handle, to: &Handle, address: IpAddr, size: usize) {
    let [mut near, mut far] = connect(from, to, address);
    std::thread::scope(|scope| {
        let read = scope.spawn(move || std::io::copy(&mut far, &mut std::io::sink()).unwrap());
        let chunk = vec![7; 64 << 10];
        for _ in 0..size / chunk.len() {
            near.write_all(&chunk).unwrap();
        }
        drop(near);
        assert_eq!(read.join().unwrap(), size as u64);
    });
}

/// Packets and bytes that the switch gave to a party.
fn given(site: &Site, party: &str) -> (u64, u64) {
    let stats = site.switch(|switch| switch.stats().unwrap());
    let found = stats.iter().find(|stats| stats.party == party).unwrap();
    (found.counters.tx_packets, found.counters.tx_bytes)
}

/// Packets and bytes that a device received.
fn received(handle: &Handle, device: &str) -> (u64, u64) {
    let stats = handle.device_stats().unwrap();
    let found = stats.iter().find(|stats| stats.name == device).unwrap();
    (found.rx_packets, found.rx_bytes)
}

#[test]
fn large_sends_stay_large_and_their_checksums_partial() {
    const SIZE: usize = 32 << 20;
    let site = Site::new("gso", 2);
    site.connect(false, |_, _| {});
    let hub = (&site.hub, "up0", v4(HOST), "host");
    let far = (&site.far, "far0", v4(FAR), "wire");
    let one = (&site.guests[0], "eth0", v4(guest(0)), "p0");
    let two = (&site.guests[1], "eth0", v4(guest(1)), "p1");
    for (from, to) in [(one, two), (one, hub), (hub, one), (one, far), (far, one)] {
        let what = format!("{} to {}", from.3, to.3);
        let before = (given(&site, to.3), received(to.0, to.1));
        let ear = Offloads::open(to.0, to.1, IPV4);
        stream(from.0, to.0, to.2, SIZE);
        let after = (given(&site, to.3), received(to.0, to.1));
        let mean = |before: (u64, u64), after: (u64, u64)| {
            (after.1 - before.1).checked_div(after.0 - before.0)
        };
        let by_switch = mean(before.0, after.0).unwrap();
        // The kernel counts for no device what is redirected into its ingress.
        let by_device = mean(before.1, after.1);
        let seen = ear.heard();
        let large: Vec<_> = seen.iter().filter(|packet| packet.length > 1514).collect();
        println!(
            "{what}: {by_switch} bytes a packet, {by_device:?} by the device; {} of {} are longer than \
             a frame",
            large.len(),
            seen.len()
        );
        assert!(by_switch > 5 * 1514, "{what}: {by_switch}");
        assert!(by_device.is_none_or(|mean| mean > 5 * 1514), "{what}");
        assert_eq!(by_device.is_none(), to.3 == "host", "{what}");
        assert!(large.len() >= 5, "{what}");
        for packet in large {
            assert!(packet.partial_checksum, "{what}: {packet:?}");
            assert!((1..=1460).contains(&packet.segment), "{what}: {packet:?}");
        }
    }
    for party in ["p0", "p1", "wire", "host"] {
        assert_eq!(site.drops(party), [], "{party}");
    }
}

#[test]
fn a_frame_longer_than_its_receiver_takes_is_dropped_and_counted_and_show_says_so() {
    let site = Site::with_mtus("mtu", &[9000, 1500, 9000]);
    site.connect(false, |_, _| {});
    let ears: Vec<Ear> = site
        .guests
        .iter()
        .map(|guest| Ear::open(guest, "eth0", EXPERIMENT))
        .collect();
    let wire = Ear::open(&site.far, "far0", EXPERIMENT);
    let host = Ear::open(&site.hub, "up0", EXPERIMENT);
    let jumbo = |to| frame(to, guest_mac(0), EXPERIMENT, &[1; 8000]);
    for (to, what) in [
        (guest_mac(1), "a port"),
        (FAR_MAC, "the wire"),
        (site.host_mac(), "the host"),
    ] {
        ears[0].send(&jumbo(to));
        for ear in ears.iter().chain([&wire, &host]) {
            assert_eq!(ear.heard().len(), 0, "{what}");
        }
    }
    assert_eq!(site.drops("p0"), [("mtu", 3)]);
    ears[0].send(&jumbo(guest_mac(2)));
    assert_eq!(ears[2].heard(), [jumbo(guest_mac(2))]);
    // To all: to those who take it, the others' copies are counted.
    ears[0].send(&jumbo(BROADCAST));
    assert_eq!(ears[2].heard().len(), 1);
    assert_eq!(
        ears[1].heard().len() + wire.heard().len() + host.heard().len(),
        0
    );
    assert_eq!(site.drops("p0"), [("mtu", 6)]);
    // TCP agrees on the least of both ends, large sends or not.
    exchange(&site.guests[0], &site.guests[1], v4(guest(1)), 4 << 20);
    exchange(
        &site.guests[1],
        &site.guests[0],
        v6(guest(0)).into(),
        4 << 20,
    );
    assert_eq!(site.drops("p0"), [("mtu", 6)]);
    let warnings = site.show().warnings;
    let about = |device: &str| {
        let start = format!("`{device}` has an MTU of 9000, the uplink `up0` one of 1500");
        warnings.iter().any(|warning| warning.starts_with(&start))
    };
    assert!(about("p0") && about("p2") && !about("p1"), "{warnings:?}");
}

#[test]
fn show_names_ports_that_differ_where_there_is_no_uplink() {
    let site = Site::with_mtus("mtus", &[9000, 1500, 1500]);
    site.create(None, false);
    for n in 0..3 {
        site.add(n, |_| {});
    }
    let warnings = site.show().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for word in ["1500", "9000", "`p0`", "(reason mtu)"] {
        assert!(warnings[0].contains(word), "{word}: {warnings:?}");
    }
}

#[test]
fn show_names_an_mtu_that_shrank_after_the_port_was_added() {
    let site = Site::new("shrunk", 1);
    site.connect(false, |_, _| {});
    assert_eq!(site.show().warnings, [""; 0]);
    site.guests[0].set_mtu("eth0", 1300).unwrap();
    let warnings = site.show().warnings;
    let start = "`p0` has an MTU of 1500, its other end one of 1300";
    assert!(
        warnings.iter().any(|warning| warning.starts_with(start)),
        "{warnings:?}"
    );
    site.hub.set_mtu("p0", 1300).unwrap();
    site.hub.set_mtu("up0", 1300).unwrap();
    let warnings = site.show().warnings;
    for device in ["up0", "p0"] {
        let start = format!("`{device}` has an MTU of 1300 now, and had one of 1500");
        assert!(
            warnings.iter().any(|warning| warning.starts_with(&start)),
            "{warnings:?}"
        );
    }
}

#[test]
fn no_guest_speaks_for_a_vlan_by_a_tag() {
    let site = Site::new("tags", 3);
    // g0 and g1 in VLAN 7, g2 untagged.
    site.connect(false, |n, port| port.vlan = (n < 2).then_some(7));
    let ears: Vec<Ear> = site
        .guests
        .iter()
        .map(|guest| Ear::open(guest, "eth0", EXPERIMENT))
        .collect();
    let wire = Ear::open(&site.far, "far0", EXPERIMENT);
    let plain = |to| frame(to, guest_mac(0), EXPERIMENT, b"tagged");
    // Its own VLAN as well as another: the port says which it is, and adds the tag itself.
    for (dropped, vlan) in [7, 8, 4095].into_iter().enumerate() {
        ears[0].send(&tagged(&plain(guest_mac(1)), vlan));
        assert_eq!(ears[1].heard().len(), 0, "VLAN {vlan}");
        assert_eq!(site.drops("p0"), [("vlan", dropped as u64 + 1)]);
    }
    ears[2].send(&tagged(
        &frame(guest_mac(0), guest_mac(2), EXPERIMENT, b"x"),
        7,
    ));
    assert_eq!(site.drops("p2"), [("vlan", 1)]);
    // Tag in tag, with a priority outside or not.
    for outer in [0, 7] {
        ears[0].send(&tagged(&tagged(&plain(BROADCAST), 8), outer));
    }
    assert_eq!(site.drops("p0"), [("vlan", 5)]);
    for ear in ears.iter().chain([&wire]) {
        assert_eq!(ear.heard().len(), 0);
    }
    // A tag that is a priority alone (VLAN 0) is taken off.
    ears[0].send(&tagged(&plain(guest_mac(1)), 5 << 13));
    assert_eq!(ears[1].heard(), [plain(guest_mac(1))]);
    assert_eq!(site.drops("p0"), [("vlan", 5)]);
}
