//! Receivers that are down: what is lost on the way to them is not counted as given to them.

use hopyard_net::Handle;
use hopyard_switch::{Counters, Mac, NewPort, Warning};
use nix::errno::Errno;

use crate::frames::{BROADCAST, EXPERIMENT, frame};
use crate::listen::Ear;
use crate::site::{FAR_MAC, Site, guest_mac};
use crate::world::tap::{TAP, Tap};

const TAP_MAC: [u8; 6] = [2, 0, 0, 0, 0, 99];
/// Frames of each sender in each state.
const FRAMES: u64 = 5;

/// A switch with an uplink, `p0` and `p1` direct, `p2` queued, and `tap0`.
fn site() -> (Site, Tap) {
    let site = Site::silent("down", 3);
    let tap = Tap::open(&site.hub, "tap0", TAP);
    site.connect(false, |n, port| port.queued = n == 2);
    let port = NewPort {
        device: "tap0",
        macs: vec![Mac(TAP_MAC)],
        ..NewPort::default()
    };
    site.switch(|switch| switch.add_port(&port)).unwrap();
    (site, tap)
}

fn counters(site: &Site, party: &str) -> Counters {
    let stats = site.switch(|switch| switch.stats().unwrap());
    let found = stats.iter().find(|stats| stats.party == party).unwrap();
    found.counters
}

fn given(site: &Site, party: &str) -> u64 {
    counters(site, party).tx_packets
}

fn down_drops(site: &Site, party: &str) -> u64 {
    let all = counters(site, party);
    let mut dropped = all.dropped();
    let found = dropped.find(|(reason, _)| *reason == "down");
    found.map_or(0, |(_, count)| count)
}

fn set(handle: &Handle, device: &str, up: bool) {
    if up {
        handle.set_up(device).unwrap();
        assert!(handle.settle(device).unwrap());
    } else {
        handle.set_down(device).unwrap();
    }
}

/// A port, the place and name of the device that goes down, the port's address, and what counts the frames heard there.
type Case<'a> = (&'a str, &'a Handle, &'a str, [u8; 6], &'a dyn Fn() -> usize);

#[test]
fn frames_to_a_port_that_is_down_are_drops() {
    let (site, tap) = site();
    let ears = [1, 2].map(|n| Ear::open(&site.guests[n], "eth0", EXPERIMENT));
    let senders = [
        ("p0", Ear::open(&site.guests[0], "eth0", EXPERIMENT)),
        ("host", Ear::open(&site.hub, "up0", EXPERIMENT)),
        ("wire", Ear::open(&site.far, "far0", EXPERIMENT)),
    ];
    let macs = [guest_mac(0), site.host_mac(), FAR_MAC];
    let send = |to, up: bool| {
        for ((name, sender), mac) in senders.iter().zip(macs) {
            let frame = frame(to, mac, EXPERIMENT, b"to one");
            // The host's stack tells its own senders of the drop.
            let sent = match *name {
                "host" if !up => Err(Errno::ENOBUFS),
                _ => Ok(frame.len()),
            };
            for _ in 0..FRAMES {
                assert_eq!(sender.try_send(&frame), sent, "{name}");
            }
        }
    };
    let all = FRAMES * senders.len() as u64;
    let cases: [Case<'_>; 5] = [
        ("p1", &site.guests[1], "eth0", guest_mac(1), &|| {
            ears[0].heard().len()
        }),
        ("p1", &site.hub, "p1", guest_mac(1), &|| {
            ears[0].heard().len()
        }),
        ("p2", &site.guests[2], "eth0", guest_mac(2), &|| {
            ears[1].heard().len()
        }),
        ("p2", &site.hub, "p2", guest_mac(2), &|| {
            ears[1].heard().len()
        }),
        ("tap0", &site.hub, "tap0", TAP_MAC, &|| tap.heard().len()),
    ];
    for (port, place, device, mac, hear) in cases {
        for up in [true, false, true] {
            set(place, device, up);
            let drops_before = senders.each_ref().map(|(name, _)| down_drops(&site, name));
            let given_before = given(&site, port);
            send(mac, up);
            let what = format!("frames to {port}, `{device}` up: {up}");
            assert_eq!(hear(), if up { all as usize } else { 0 }, "{what}, heard");
            let counted = given(&site, port) - given_before;
            assert_eq!(
                counted,
                if up { all } else { 0 },
                "{what}, counted as given"
            );
            for ((name, _), before) in senders.iter().zip(drops_before) {
                let lost = down_drops(&site, name) - before;
                assert_eq!(lost, if up { 0 } else { FRAMES }, "{what}, from {name}");
            }
        }
    }
}

#[test]
fn frames_to_an_uplink_that_is_down_are_drops() {
    let (site, _tap) = site();
    let sender = Ear::open(&site.guests[0], "eth0", EXPERIMENT);
    let wire = Ear::open(&site.far, "far0", EXPERIMENT);
    let host = Ear::open(&site.hub, "up0", EXPERIMENT);
    let parties = [("wire", &wire, FAR_MAC), ("host", &host, site.host_mac())];
    // Without a carrier nothing goes to the wire, but the host is there still.
    let states: [(&Handle, &str, bool, [u64; 2]); 5] = [
        (&site.far, "far0", true, [FRAMES, FRAMES]),
        (&site.far, "far0", false, [0, FRAMES]),
        (&site.far, "far0", true, [FRAMES, FRAMES]),
        (&site.hub, "up0", false, [0, 0]),
        (&site.hub, "up0", true, [FRAMES, FRAMES]),
    ];
    for (place, device, up, expected) in states {
        set(place, device, up);
        for everybody in [false, true] {
            let what = format!("`{device}` up: {up}, broadcasts: {everybody}");
            let before = parties.map(|(name, ..)| given(&site, name));
            let drops_before = down_drops(&site, "p0");
            if everybody {
                for _ in 0..FRAMES {
                    sender.send(&frame(BROADCAST, guest_mac(0), EXPERIMENT, b"to all"));
                }
            } else {
                for (_, _, mac) in parties {
                    for _ in 0..FRAMES {
                        sender.send(&frame(mac, guest_mac(0), EXPERIMENT, b"to one"));
                    }
                }
            }
            let heard = parties.map(|(_, ear, _)| ear.heard().len() as u64);
            assert_eq!(heard, expected, "{what}, heard");
            let after = parties.map(|(name, ..)| given(&site, name));
            let counted = [after[0] - before[0], after[1] - before[1]];
            assert_eq!(counted, expected, "{what}, counted as given");
            let lost = down_drops(&site, "p0") - drops_before;
            let missing = 2 * FRAMES - expected.iter().sum::<u64>();
            assert_eq!(lost, missing, "{what}, counted as dropped");
        }
    }
}

#[test]
fn a_copy_to_a_port_that_is_down_is_a_drop() {
    let (site, tap) = site();
    let ears = [0, 1, 2].map(|n| Ear::open(&site.guests[n], "eth0", EXPERIMENT));
    let wire = Ear::open(&site.far, "far0", EXPERIMENT);
    let down: [(&Handle, &str); 3] = [
        (&site.guests[1], "eth0"),
        (&site.guests[2], "eth0"),
        (&site.hub, "tap0"),
    ];
    let ports = ["p1", "p2", "tap0"];
    for up in [true, false, true] {
        for (place, device) in down {
            set(place, device, up);
        }
        for (name, sender, mac) in [("p0", &ears[0], guest_mac(0)), ("wire", &wire, FAR_MAC)] {
            let what = format!("broadcasts of {name}, up: {up}");
            let expected = if up { FRAMES } else { 0 };
            let before = ports.map(|port| given(&site, port));
            let drops_before = down_drops(&site, name);
            for _ in 0..FRAMES {
                sender.send(&frame(BROADCAST, mac, EXPERIMENT, b"to all"));
            }
            let heard = [
                ears[1].heard().len(),
                ears[2].heard().len(),
                tap.heard().len(),
            ];
            assert_eq!(heard.map(|n| n as u64), [expected; 3], "{what}, heard");
            for (port, before) in ports.into_iter().zip(before) {
                assert_eq!(
                    given(&site, port) - before,
                    expected,
                    "{what}, given to {port}"
                );
            }
            let lost = down_drops(&site, name) - drops_before;
            assert_eq!(lost, 3 * (FRAMES - expected), "{what}, counted as dropped");
            let others: Vec<_> = site.drops(name);
            assert!(
                others.iter().all(|(reason, _)| *reason == "down"),
                "{others:?}"
            );
        }
    }
}

#[test]
fn show_names_a_guest_that_is_down() {
    let site = Site::silent("down", 2);
    site.connect(false, |_, _| {});
    let named = || {
        let warnings = site.show().warnings;
        let about = |warning: &&Warning| warning.starts_with("the other end of `p1` is down");
        (warnings.iter().filter(about).count(), warnings.len())
    };
    assert_eq!(named(), (0, 0));
    site.guests[1].set_down("eth0").unwrap();
    assert_eq!(named(), (1, 1));
    site.guests[1].set_up("eth0").unwrap();
    assert_eq!(named(), (0, 0));
}
