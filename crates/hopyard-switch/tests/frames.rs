//! Real frames through real switches, in throw-away namespaces. They need root.
//!
//! The frames have a type of their own (0x88b5, for local experiments), and each party listens with a
//! packet socket for that type alone: such a socket hears what reached the party's stack, not what a
//! hook took away before.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests use the rest")]
mod world;

use std::process::Command;

use hopyard_switch::{Mac, NewPort, NewSwitch, Switch};
use world::{BROADCAST, EXPERIMENT, STRANGER, World, arp, frame};

/// Sends one frame and says who heard it, how often.
fn heard(world: &World, from: &str, to: [u8; 6]) -> Vec<(String, usize)> {
    world.send(from, &frame(to, world.mac(from), EXPERIMENT, b"hello"));
    world.heard()
}

fn once(names: &[&str]) -> Vec<(String, usize)> {
    let mut all: Vec<_> = names.iter().map(|n| ((*n).to_owned(), 1)).collect();
    all.sort();
    all
}

/// A frame with a VLAN tag.
fn tagged(to: [u8; 6], from: [u8; 6], vlan: u8) -> Vec<u8> {
    let mut inner = vec![0, vlan];
    inner.extend(EXPERIMENT.to_be_bytes());
    frame(to, from, 0x8100, &inner)
}

#[test]
fn unicast_goes_to_the_owner_alone() {
    let world = World::new("uni", 3, true);
    let parties = ["g0", "g1", "g2", "host", "wire"];
    for from in parties {
        for to in parties.into_iter().filter(|to| *to != from) {
            let ears = heard(&world, from, world.mac(to));
            assert_eq!(ears, once(&[to]), "{from} to {to}");
        }
    }
}

#[test]
fn a_broadcast_makes_one_copy_for_each_other_party_and_none_back() {
    let world = World::new("bcast", 3, true);
    let parties = ["g0", "g1", "g2", "host", "wire"];
    for group in [BROADCAST, [0x33, 0x33, 0, 0, 0, 1], [1, 0, 0x5e, 0, 0, 1]] {
        for from in parties {
            let others: Vec<&str> = parties.into_iter().filter(|p| *p != from).collect();
            assert_eq!(heard(&world, from, group), once(&others), "from {from}");
        }
    }
}

#[test]
fn unknown_unicast_goes_to_the_wire_alone_and_from_the_wire_to_no_guest() {
    let world = World::new("unknown", 2, true);
    assert_eq!(heard(&world, "g0", STRANGER), once(&["wire"]));
    assert_eq!(heard(&world, "host", STRANGER), once(&["wire"]));
    // The host's stack finds that it is for somebody else.
    assert_eq!(heard(&world, "wire", STRANGER), once(&["host"]));
    let alone = World::new("alone", 2, false);
    assert_eq!(heard(&alone, "g0", STRANGER), once(&[]));
    assert_eq!(alone.drops("g0"), [("unknown", 1)]);
}

#[test]
fn nothing_crosses_between_vlans_and_the_uplink_carries_the_tag() {
    // VLAN 1 is nothing special: it is not what is untagged.
    let vlans = [None, None, Some(1), Some(7)];
    let world = World::with("vlan", 4, true, |n, port| port.vlan = vlans[n]);
    assert_eq!(heard(&world, "g0", world.mac("g1")), once(&["g1"]));
    for to in ["g2", "g3"] {
        assert_eq!(heard(&world, "g0", world.mac(to)), once(&["wire"]), "{to}");
    }
    assert_eq!(
        heard(&world, "g0", BROADCAST),
        once(&["g1", "host", "wire"])
    );
    let mut ears = heard(&world, "g2", BROADCAST);
    // Of the VLAN, the host hears what it has a device for.
    ears.retain(|(who, _)| who != "host");
    assert_eq!(ears, once(&["wire"]));
    // A tag is not a guest's to set.
    world.send("g0", &tagged(world.mac("g1"), world.mac("g0"), 7));
    assert_eq!(world.heard(), once(&[]));
    assert_eq!(world.drops("g0"), [("vlan", 1)]);
    // From the wire and from the host, the tag says whose.
    for from in ["wire", "host"] {
        for (vlan, to) in [(1, "g2"), (7, "g3")] {
            world.send(from, &tagged(BROADCAST, world.mac(from), vlan));
            let ears = world.heard();
            assert!(ears.contains(&(to.to_owned(), 1)), "{from}: {ears:?}");
            let guests = ears.iter().filter(|(who, _)| who.starts_with('g'));
            assert_eq!(guests.count(), 1, "{from}: {ears:?}");
        }
    }
}

#[test]
fn isolated_ports_talk_to_the_uplink_and_the_host_only() {
    let world = World::with("isolated", 3, true, |n, port| port.isolated = n == 0);
    assert_eq!(heard(&world, "g0", world.mac("g1")), once(&[]));
    assert_eq!(heard(&world, "g1", world.mac("g0")), once(&[]));
    assert_eq!(heard(&world, "g1", world.mac("g2")), once(&["g2"]));
    assert_eq!(heard(&world, "g0", world.mac("host")), once(&["host"]));
    assert_eq!(heard(&world, "wire", world.mac("g0")), once(&["g0"]));
    assert_eq!(heard(&world, "g0", BROADCAST), once(&["host", "wire"]));
    assert_eq!(
        heard(&world, "g1", BROADCAST),
        once(&["g2", "host", "wire"])
    );
    // One frame to a port, and a copy of the broadcast for each of two.
    assert_eq!(world.drops("g0"), [("isolated", 3)]);
}

#[test]
fn nothing_crosses_between_two_switches() {
    let one = World::new("two-a", 2, true);
    let two = World::new("two-b", 2, true);
    assert_eq!(heard(&one, "g0", BROADCAST), once(&["g1", "host", "wire"]));
    assert_eq!(two.heard(), once(&[]));
}

#[test]
fn lies_about_the_sender_are_dropped_under_their_reason() {
    let world = World::with("lies", 2, true, |n, port| {
        if n == 0 {
            port.ips = vec!["192.0.2.10".parse().unwrap()];
        }
    });
    let own = world.mac("g0");
    for lie in [
        world.mac("g1"),
        world.mac("host"),
        STRANGER,
        [1, 2, 3, 4, 5, 6],
    ] {
        world.send("g0", &frame(BROADCAST, lie, EXPERIMENT, b"hello"));
    }
    world.send("g0", &frame([1, 0x80, 0xc2, 0, 0, 0], own, 0x0026, b"STP"));
    world.send("g0", &arp(own, STRANGER, [192, 0, 2, 10], [192, 0, 2, 1]));
    world.send("g0", &arp(own, own, [192, 0, 2, 11], [192, 0, 2, 1]));
    world.send("g0", &frame(BROADCAST, own, EXPERIMENT, b"not IP"));
    let mut ip = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0];
    ip.extend([192, 0, 2, 99, 192, 0, 2, 1]);
    world.send("g0", &frame(BROADCAST, own, 0x0800, &ip));
    assert_eq!(world.heard(), once(&[]));
    let expected = [
        ("source", 1),
        ("mac", 3),
        ("ip", 1),
        ("arp", 2),
        ("protocol", 1),
        ("reserved", 1),
    ];
    assert_eq!(world.drops("g0"), expected);
}

#[test]
fn a_port_whose_addresses_follow_may_use_none_before() {
    let world = World::with("follow", 2, true, |n, port| match n {
        0 => port.ips_follow = true,
        _ => port.ips = vec!["192.0.2.20".parse().unwrap()],
    });
    let own = world.mac("g0");
    let dropped_after = |last| {
        world.send("g0", &arp(own, own, [192, 0, 2, last], [192, 0, 2, 1]));
        // Waits until it was looked at.
        world.heard();
        world.drops("g0")
    };
    let give = |ips: [&str; 2]| {
        let ips = ips.map(|ip| ip.parse().unwrap());
        world.in_hub(|| {
            Switch::open(world.name())
                .unwrap()
                .add_addresses("p0", &ips)
        })
    };
    assert_eq!(dropped_after(10), [("arp", 1)]);

    let error = give(["192.0.2.10", "192.0.2.20"]).unwrap_err();
    assert!(error.is_usage(), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("192.0.2.20 is taken by port `p1`"), "{said}");
    assert_eq!(dropped_after(10), [("arp", 2)]);

    give(["192.0.2.10", "2001:db8::10"]).unwrap();
    assert_eq!(dropped_after(10), [("arp", 2)]);
    assert_eq!(dropped_after(11), [("arp", 3)]);

    // They go with the port, and others may have them.
    world.in_hub(|| {
        let mut switch = Switch::open(world.name()).unwrap();
        let has = |switch: &Switch, device| switch.port(device).unwrap().unwrap().ips.len();
        assert_eq!(has(&switch, "p0"), 2);
        switch.remove_port("p0").unwrap();
        let ips = ["192.0.2.10", "2001:db8::10"].map(|ip| ip.parse().unwrap());
        switch.add_addresses("p1", &ips).unwrap();
        assert_eq!(has(&switch, "p1"), 3);
    });
}

#[test]
fn questions_are_answered_from_the_table() {
    let world = World::build("answer", 2, true, true, |n, port| {
        port.ips = vec![format!("192.0.2.1{n}").parse().unwrap()];
    });
    // The answer does not take the queue of the host's end, which drops all while the kernel has not seen that its carrier is up.
    world.in_hub(|| {
        let words = "qdisc add dev p0 root pfifo limit 0".split(' ');
        assert!(Command::new("tc").args(words).status().unwrap().success());
    });
    let ears = world.ears_for(0x0806);
    let (asker, owner) = (world.mac("g0"), world.mac("g1"));
    world.send("g0", &arp(asker, asker, [192, 0, 2, 10], [192, 0, 2, 11]));
    let answers = ears.heard();
    assert_eq!(answers.len(), 1, "{answers:?}");
    let (who, answer) = &answers[0];
    assert_eq!(who, "g0");
    assert_eq!(answer[..12], [asker, owner].concat());
    assert_eq!(answer[20..22], [0, 2], "a reply");
    assert_eq!(answer[22..28], owner);
    assert_eq!(answer[28..32], [192, 0, 2, 11]);
    // Nobody's address: asked of all.
    world.send("g0", &arp(asker, asker, [192, 0, 2, 10], [192, 0, 2, 77]));
    let who: Vec<String> = ears.heard().into_iter().map(|(who, _)| who).collect();
    assert_eq!(who.len(), 2, "{who:?}");
    assert!(
        who.contains(&"g1".to_owned()) && who.contains(&"wire".to_owned()),
        "{who:?}"
    );
}

/// The guest's device is gone when its port is removed by name: the switch does not answer for it any more.
#[test]
fn nobody_is_answered_for_a_guest_that_is_gone() {
    let world = World::build("answers-gone", 3, true, true, |n, port| {
        port.ips = vec![format!("192.0.2.1{n}").parse().unwrap()];
    });
    world.end_guest(1);
    world.in_hub(|| Switch::release_ports(world.name(), &["p1"]).unwrap());
    let ears = world.ears_for(0x0806);
    let asker = world.mac("g0");
    world.send("g0", &arp(asker, asker, [192, 0, 2, 10], [192, 0, 2, 11]));
    let mut who: Vec<String> = ears.heard().into_iter().map(|(who, _)| who).collect();
    who.sort_unstable();
    assert_eq!(who, ["g2", "wire"]);
}

#[test]
fn a_switch_is_found_again_and_upgraded_in_place() {
    let world = World::new("again", 2, true);
    for _ in 0..3 {
        world.in_hub(|| Switch::open(world.name()).unwrap().upgrade().unwrap());
        assert_eq!(heard(&world, "g0", world.mac("g1")), once(&["g1"]));
    }
    // One program at each hook, the pinned one: `show` compares.
    let shown = world.in_hub(|| Switch::open(world.name()).unwrap().show().unwrap());
    let odd: Vec<_> = shown
        .warnings
        .iter()
        .filter(|warning| !warning.contains("packet filter"))
        .collect();
    assert!(odd.is_empty(), "{odd:?}");
    assert!(shown.ports.iter().all(|port| port.direct));
}

#[test]
fn wrong_requests_change_nothing() {
    let world = World::new("wrong", 2, true);
    let show = || world.in_hub(|| Switch::open(world.name()).unwrap().show().unwrap());
    let before = show();
    let refused = |port: &NewPort<'_>, says: &str| {
        let error = world.in_hub(|| {
            let mut switch = Switch::open(world.name()).unwrap();
            switch.add_port(port).unwrap_err()
        });
        assert!(error.is_usage(), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    };
    let port = |device: &'static str| NewPort {
        device,
        ..NewPort::default()
    };
    refused(&port("nowhere"), "there is no device `nowhere`");
    refused(&port("p0"), "is a port of switch");
    refused(&port("up0"), "is the uplink of switch");
    refused(&port("lo"), "leads nowhere");
    world.spare("spare");
    let taken = NewPort {
        macs: vec![Mac(world.mac("g1"))],
        ..port("spare")
    };
    refused(&taken, "is taken by port `p1`");
    let vlan = NewPort {
        vlan: Some(4095),
        ..port("spare")
    };
    refused(&vlan, "VLAN 4095");
    assert_eq!(before, show());
    // From another namespace nothing can be changed, and it says so.
    let mut switch = Switch::open(world.name()).unwrap();
    let error = switch.add_port(&port("lo")).unwrap_err().to_string();
    assert!(error.contains("another network namespace"), "{error}");
    let error = Switch::open("nothing").unwrap_err().to_string();
    assert!(error.starts_with("there is no switch `nothing`"), "{error}");
}

#[test]
fn a_port_whose_device_went_is_forgotten() {
    let world = World::new("gone", 3, true);
    world.end_guest(2);
    let shown = world.in_hub(|| Switch::open(world.name()).unwrap().show().unwrap());
    assert_eq!(shown.ports.len(), 2);
    world.in_hub(|| {
        let mut switch = Switch::open(world.name()).unwrap();
        switch.remove_port("p1").unwrap();
    });
    assert_eq!(heard(&world, "g0", world.mac("g1")), once(&["wire"]));
    assert_eq!(heard(&world, "g0", BROADCAST), once(&["host", "wire"]));
}

#[test]
fn switches_come_and_go_side_by_side() {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..20 {
                    let name = format!("test-{}-{thread}-{round}", std::process::id());
                    let new = NewSwitch {
                        name: &name,
                        ..NewSwitch::default()
                    };
                    let switch = Switch::create(&new).unwrap();
                    let error = Switch::create(&new).unwrap_err().to_string();
                    assert!(error.contains("there is one of that name"), "{error}");
                    assert!(Switch::list().unwrap().contains(&name));
                    switch.delete().unwrap();
                    assert!(Switch::open(&name).is_err());
                }
            });
        }
    });
}
