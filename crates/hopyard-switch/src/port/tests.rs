use std::net::Ipv4Addr;

use aya::programs::{SchedClassifier, TestRun, TestRunOptions};
use hopyard_net::{Handle, LinkKind, NetNs, NewLink};

use super::*;
use crate::NewSwitch;
use crate::hook::program_file;
use crate::layout::{PORT_ISOLATED, STATION_OWN};

#[test]
fn the_lowest_free_slot_is_taken_until_there_is_none() {
    let up_to = |end| (FIRST_PORT..end).collect::<Vec<_>>();
    assert_eq!(free_slot(&[]), Some(FIRST_PORT));
    assert_eq!(free_slot(&[2, 3, 5]), Some(4));
    assert_eq!(free_slot(&[3]), Some(2));
    assert_eq!(free_slot(&up_to(MAX_SLOTS - 1)), Some(MAX_SLOTS - 1));
    assert_eq!(free_slot(&up_to(MAX_SLOTS)), None);
}

fn guest(hub: &Handle, name: &str) -> u32 {
    let kind = LinkKind::veth(format!("{name}-in"), None);
    hub.add_link(&NewLink::new(name, kind)).unwrap();
    hub.link(name).unwrap().index
}

fn add(switch: &mut Switch, device: &str) -> Result<()> {
    switch.add_port(&NewPort {
        device,
        ..NewPort::default()
    })
}

/// Takes up all records but those in use, as ports of this device: attaching some thousand devices
/// would take minutes.
fn fill(switch: &mut Switch, ifindex: u32) {
    let used = switch.state.ports().unwrap();
    let (last, record) = *used.last().unwrap();
    for slot in last + 1..MAX_SLOTS {
        switch.state.set_port(slot, record).unwrap();
        switch.state.tie(slot, ifindex).unwrap();
    }
    let mut config = switch.state.config().unwrap();
    config.slots = MAX_SLOTS;
    switch.state.set_config(config).unwrap();
}

/// Needs root, as it makes a switch.
#[test]
fn a_full_switch_says_so_and_is_as_it_was() {
    let name = format!("full-{}", std::process::id());
    let ns = NetNs::create().unwrap();
    let hub = Handle::new(&ns).unwrap();
    let first = guest(&hub, "p0");
    guest(&hub, "p1");
    ns.run(|| {
        let new = NewSwitch {
            name: &name,
            ..NewSwitch::default()
        };
        let mut switch = Switch::create(&new).unwrap();
        let room = || Switch::room(&name).unwrap().unwrap();
        assert!(!room().has_ports && !room().is_full);
        add(&mut switch, "p0").unwrap();
        assert!(room().has_ports && !room().is_full);
        fill(&mut switch, first);
        assert!(room().is_full);
        let before = switch.state.ports().unwrap();
        let error = add(&mut switch, "p1").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot add port `p1` to switch `{name}`: it has 4094 ports already")
        );
        assert_eq!(switch.state.ports().unwrap().len(), before.len());
        assert_eq!(switch.state.stations.keys().count(), 1);
        // One goes, and there is room for one.
        switch.state.untie(100).unwrap();
        assert!(!room().is_full);
        add(&mut switch, "p1").unwrap();
        let ifindex = switch.state.port(100).unwrap().ifindex;
        assert_eq!(ifindex, hub.link("p1").unwrap().index);
        assert!(!Switch::remove_unused(&name).unwrap());
        Switch::remove(&name).unwrap();
        assert_eq!(Switch::glance(&name).unwrap(), None);
    })
    .unwrap();
}

/// Needs root, as it makes a switch.
#[test]
fn a_change_that_was_interrupted_is_finished_by_the_next_command() {
    let name = format!("change-{}", std::process::id());
    let ns = NetNs::create().unwrap();
    let hub = Handle::new(&ns).unwrap();
    guest(&hub, "p0");
    ns.run(|| {
        let new = NewSwitch {
            name: &name,
            ..NewSwitch::default()
        };
        let mut switch = Switch::create(&new).unwrap();
        let ip = "192.0.2.1".parse().unwrap();
        let port = NewPort {
            device: "p0",
            ips: vec![ip],
            ..NewPort::default()
        };
        switch.add_port(&port).unwrap();
        // What `set_port` has done when it is killed as early as can be, and as late.
        let mut config = switch.state.config().unwrap();
        config.changing = 2;
        switch.state.set_config(config).unwrap();
        let mut record = switch.state.port(2).unwrap();
        record.flags |= PORT_ISOLATED;
        switch.state.set_port(2, record).unwrap();
        let station = switch.state.stations.keys().next().unwrap().unwrap();
        let found = |switch: &Switch| {
            let station = switch.state.stations.get(&station, 0).unwrap();
            let address = AddressKey::new(ip, 0);
            let address = switch.state.addresses.get(&address, 0).unwrap();
            let isolated = u32::from(PORT_ISOLATED);
            (
                station.port_flags & PORT_ISOLATED != 0,
                address.port_flags & isolated != 0,
            )
        };
        assert_eq!(found(&switch), (false, false));
        drop(switch);
        let switch = Switch::open(&name).unwrap();
        assert_eq!(found(&switch), (true, true));
        assert_eq!(switch.state.config().unwrap().changing, 0);
        Switch::remove(&name).unwrap();
    })
    .unwrap();
}

/// Needs root, as it makes a switch.
#[test]
fn a_switch_goes_with_its_last_port_and_tells_of_each() {
    let name = format!("last-{}", std::process::id());
    let ns = NetNs::create().unwrap();
    let hub = Handle::new(&ns).unwrap();
    guest(&hub, "p0");
    ns.run(|| {
        let new = NewSwitch {
            name: &name,
            ..NewSwitch::default()
        };
        let mut switch = Switch::create(&new).unwrap();
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        let ips: Vec<IpAddr> = vec!["192.0.2.1".parse().unwrap(), "fd00::1".parse().unwrap()];
        let port = NewPort {
            device: "p0",
            macs: vec![mac],
            ips: ips.clone(),
            vlan: Some(7),
            isolated: true,
            ..NewPort::default()
        };
        switch.add_port(&port).unwrap();
        let told = switch.port("p0").unwrap().unwrap();
        assert_eq!((told.macs, told.ips), (vec![mac], ips));
        assert_eq!((told.vlan, told.isolated), (Some(7), true));
        assert_eq!(switch.port("lo").unwrap(), None);
        assert_eq!(switch.port("absent").unwrap(), None);
        assert!(!Switch::remove_unused(&name).unwrap());
        // A port whose device is gone keeps nothing.
        hub.delete_link("p0").unwrap();
        assert!(!Switch::room(&name).unwrap().unwrap().has_ports);
        assert!(Switch::remove_unused(&name).unwrap());
        assert!(Switch::remove_unused(&name).unwrap());
        assert_eq!(Switch::glance(&name).unwrap(), None);
    })
    .unwrap();
}

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
    let name = format!("{name}-{}", std::process::id());
    let ns = NetNs::create().unwrap();
    let hub = Handle::new(&ns).unwrap();
    for device in ["p0", "p1"] {
        guest(&hub, device);
        for end in [device, &format!("{device}-in")] {
            hub.set_up(end).unwrap();
        }
    }
    ns.run(|| {
        let new = NewSwitch {
            name: &name,
            ..NewSwitch::default()
        };
        let mut switch = Switch::create(&new).unwrap();
        hold(&mut switch, held_to);
        add(&mut switch, "p1").unwrap();
        test(&mut switch, &hub);
        Switch::remove(&name).unwrap();
    })
    .unwrap();
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

/// The program looks into the record of the port that it found last before it looks up the station. Needs root, as it makes a switch.
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
        for (change, what) in changed {
            switch.state.set_port(slot, change).unwrap();
            assert_eq!(says(switch), DROPPED, "{what}");
        }
        switch.state.set_port(slot, record).unwrap();
        assert_eq!(says(switch), GIVEN);
    });
}

/// The program compares an address with the one that the port used before, before it looks that up. Needs root, as it makes a switch.
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
                    life: record.life + 1,
                    ..record
                },
                "the next port",
            ),
            (PortRecord { life: 0, ..record }, "of an earlier version"),
        ];
        for (change, what) in changed {
            switch.state.set_port(slot, change).unwrap();
            assert_eq!(says(switch, OWN), DROPPED, "{what}");
        }
        switch.state.set_port(slot, record).unwrap();
        assert_eq!(says(switch, OWN), GIVEN);
    });
}

/// Needs root, as it makes a switch.
#[test]
fn the_next_port_of_a_slot_is_not_believed_what_the_last_one_used() {
    with_ports("lives", OWN, |switch, hub| {
        let slot = switch.state.slot_of(hub.index("p0").unwrap()).unwrap();
        let says = |switch: &Switch, ip| verdict(switch, hub, ["p0", "p1"], ip);
        assert_eq!(says(switch, OWN), GIVEN);
        let first = switch.state.port(slot).unwrap();
        switch.remove_port("p0").unwrap();
        hold(switch, OTHER);
        let next = switch.state.port(slot).unwrap();
        assert_eq!((next.device, next.life), (first.device, first.life + 1));
        assert_eq!((says(switch, OWN), says(switch, OTHER)), (DROPPED, GIVEN));
        assert_eq!(next_life(u16::MAX), 1);
    });
}

/// Needs root, as it makes a switch.
#[test]
fn the_record_says_whether_its_address_is_the_guests_own() {
    let name = format!("own-{}", std::process::id());
    let ns = NetNs::create().unwrap();
    let hub = Handle::new(&ns).unwrap();
    guest(&hub, "p0");
    let own = Mac(hub.link("p0-in").unwrap().mac.unwrap());
    let other = Mac([2, 0, 0, 0, 0, 1]);
    ns.run(|| {
        let new = NewSwitch {
            name: &name,
            ..NewSwitch::default()
        };
        let mut switch = Switch::create(&new).unwrap();
        for (macs, is_own) in [([own, other], true), ([other, own], false)] {
            let port = NewPort {
                device: "p0",
                macs: macs.to_vec(),
                ..NewPort::default()
            };
            switch.add_port(&port).unwrap();
            let record = switch.state.port(FIRST_PORT).unwrap();
            assert_eq!(record.mac, macs[0].to_number());
            assert_eq!(record.mac_flags == STATION_OWN, is_own);
            let flags = |mac: Mac| {
                switch
                    .state
                    .stations
                    .get(&station_key(mac, 0), 0)
                    .unwrap()
                    .flags
            };
            assert_eq!((flags(own), flags(other)), (STATION_OWN, 0));
            switch.remove_port("p0").unwrap();
        }
        Switch::remove(&name).unwrap();
    })
    .unwrap();
}
