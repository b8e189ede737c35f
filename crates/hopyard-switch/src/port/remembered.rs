//! What the programs remember of ports that they looked up, and when they believe it no longer. They need root, as they make switches.

use std::net::Ipv4Addr;

use aya::programs::{SchedClassifier, TestRun, TestRunOptions};
use hopyard_net::Handle;
use hopyard_net::cpu::{current_affinity, pin_current_thread};

use super::tests::{add, with_switch};
use super::*;
use crate::hook::program_file;

// `TC_ACT_SHOT`, `TC_ACT_REDIRECT`.
const DROPPED: u32 = 2;
const GIVEN: u32 = 7;

/// What the program of a port says to a UDP datagram from one port to another; both have their guests' ends in their namespace.
fn verdict(switch: &Switch, hub: &Handle, [from, to]: [&str; 2], ip: Ipv4Addr) -> u32 {
    // `ifindex` of `struct __sk_buff`.
    const IFINDEX: usize = 40;
    let mac = |device: &str| hub.link(&format!("{device}-in")).unwrap().mac.unwrap();
    let mut frame = [mac(to), mac(from)].concat();
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(ip.octets());
    frame.extend([192, 0, 2, 99, 4, 0, 4, 0, 0, 8, 0, 0]);
    frame.resize(60, 0);
    let mut context = [0; IFINDEX + 4];
    context[IFINDEX..].copy_from_slice(&hub.index(from).unwrap().to_ne_bytes());
    let file = switch.directory.join(program_file(Hook::Port.program()));
    let program = SchedClassifier::from_pin(file).unwrap();
    let options = TestRunOptions {
        data_in: Some(&frame),
        ctx_in: Some(&context),
        ..TestRunOptions::new()
    };
    program.test_run(options).unwrap().return_value
}

/// Runs a test with a switch that has port `p1`, and `p0` that is held to an address; both are up.
fn with_ports(name: &str, held_to: Ipv4Addr, test: impl FnOnce(&mut Switch, &Handle) + Send) {
    with_switch(name, &["p0", "p1"], |switch, hub| {
        // Each CPU has notes of its own.
        let cpus = current_affinity().unwrap();
        pin_current_thread(&cpus[..1]).unwrap();
        for end in ["p0", "p0-in", "p1", "p1-in"] {
            hub.set_up(end).unwrap();
        }
        hold(switch, held_to);
        add(switch, "p1").unwrap();
        test(switch, hub);
    });
}

/// Checks that a frame is dropped while the record of a port is changed, and passes with the record as it was.
fn is_given_with_this_record_alone<const N: usize>(
    switch: &mut Switch,
    slot: u32,
    changed: [(PortRecord, &str); N],
    says: impl Fn(&Switch) -> u32,
) {
    let record = switch.state.port(slot).unwrap();
    for (change, what) in changed {
        switch.state.set_port(slot, change).unwrap();
        assert_eq!(says(switch), DROPPED, "{what}");
    }
    switch.state.set_port(slot, record).unwrap();
    assert_eq!(says(switch), GIVEN);
}

fn hold(switch: &mut Switch, ip: Ipv4Addr) {
    let port = NewPort {
        device: "p0",
        ips: vec![ip.into()],
        ..NewPort::default()
    };
    switch.add_port(&port).unwrap();
}

const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// The program looks into the record of the port that it found last before it looks up the station.
#[test]
fn a_receiver_is_found_by_its_record_as_long_as_that_is_whole() {
    with_ports("recent", OWN, |switch, hub| {
        let slot = switch.state.slot_of(hub.index("p1").unwrap()).unwrap();
        let record = switch.state.port(slot).unwrap();
        let key = station_key(Mac::from_number(record.mac), 0);
        let station = switch.state.stations.get(&key, 0).unwrap();
        let says = |switch: &Switch| verdict(switch, hub, ["p0", "p1"], OWN);
        switch.state.stations.remove(&key).unwrap();
        assert_eq!(says(switch), DROPPED, "nobody was found yet");
        switch.state.stations.insert(key, station, 0).unwrap();
        assert_eq!(says(switch), GIVEN);
        switch.state.stations.remove(&key).unwrap();
        assert_eq!(says(switch), GIVEN, "without the station");
        let changed = [
            (
                PortRecord {
                    state: STATE_BUSY,
                    ..record
                },
                "a port that goes",
            ),
            (
                PortRecord {
                    mac: record.mac ^ 1 << 16,
                    ..record
                },
                "another address",
            ),
            (PortRecord { vlan: 7, ..record }, "another VLAN"),
            (
                PortRecord {
                    mac_flags: 0,
                    ..record
                },
                "of an earlier version",
            ),
        ];
        is_given_with_this_record_alone(switch, slot, changed, says);
    });
}

/// The program compares an address with the one that the port used before, before it looks that up.
#[test]
fn an_address_that_a_port_used_is_believed_as_long_as_the_port_lives() {
    with_ports("said", OWN, |switch, hub| {
        let slot = switch.state.slot_of(hub.index("p0").unwrap()).unwrap();
        let record = switch.state.port(slot).unwrap();
        let key = AddressKey::new(OWN.into(), 0);
        let address = switch.state.addresses.get(&key, 0).unwrap();
        let says = |switch: &Switch, ip| verdict(switch, hub, ["p0", "p1"], ip);
        switch.state.addresses.remove(&key).unwrap();
        assert_eq!(says(switch, OWN), DROPPED, "it was not used yet");
        switch.state.addresses.insert(key, address, 0).unwrap();
        assert_eq!((says(switch, OWN), says(switch, OTHER)), (GIVEN, DROPPED));
        switch.state.addresses.remove(&key).unwrap();
        assert_eq!(says(switch, OWN), GIVEN, "without a look into the table");
        assert_eq!(says(switch, OTHER), DROPPED);
        let changed = [
            (
                PortRecord {
                    state: STATE_BUSY,
                    ..record
                },
                "a port that goes",
            ),
            (
                PortRecord {
                    life: next_life(record.life),
                    ..record
                },
                "the next port",
            ),
            (PortRecord { life: 0, ..record }, "of an earlier version"),
        ];
        is_given_with_this_record_alone(switch, slot, changed, |switch| says(switch, OWN));
    });
}

#[test]
fn the_next_port_of_a_slot_is_not_believed_what_the_last_one_used() {
    with_ports("lives", OWN, |switch, hub| {
        let slot = switch.state.slot_of(hub.index("p0").unwrap()).unwrap();
        let says = |switch: &Switch, ip| verdict(switch, hub, ["p0", "p1"], ip);
        assert_eq!(says(switch, OWN), GIVEN);
        let first = switch.state.port(slot).unwrap();
        let notes = switch.state.all_counters(slot).unwrap();
        switch.remove_port("p0").unwrap();
        hold(switch, OTHER);
        let next = switch.state.port(slot).unwrap();
        assert_eq!(
            (next.device, next.life),
            (first.device, next_life(first.life))
        );
        assert_eq!((says(switch, OWN), says(switch, OTHER)), (DROPPED, GIVEN));
        // As if a CPU had stood still before it wrote what it had found.
        switch.state.set_counters(slot, notes).unwrap();
        assert_eq!((says(switch, OWN), says(switch, OTHER)), (DROPPED, GIVEN));
    });
}

#[test]
fn a_life_is_another_one_than_the_last_and_never_none() {
    for last in [1, 7, u16::MAX - 1, u16::MAX] {
        let next = next_life(last);
        assert!(next != last && next != 0, "{last}: {next}");
    }
    // What an earlier version left of the slot is not known.
    assert_ne!(next_life(0), 0);
}

#[test]
fn a_port_that_an_earlier_version_added_has_its_address_looked_up() {
    with_ports("earlier", OWN, |switch, hub| {
        let slot = switch.state.slot_of(hub.index("p0").unwrap()).unwrap();
        let record = switch.state.port(slot).unwrap();
        let earlier = PortRecord { life: 0, ..record };
        switch.state.set_port(slot, earlier).unwrap();
        let key = AddressKey::new(OWN.into(), 0);
        let says = |switch: &Switch| verdict(switch, hub, ["p0", "p1"], OWN);
        assert_eq!(says(switch), GIVEN);
        switch.state.addresses.remove(&key).unwrap();
        assert_eq!(says(switch), DROPPED);
    });
}
