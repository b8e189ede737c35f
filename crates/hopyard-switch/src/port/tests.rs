use hopyard_net::{Handle, LinkKind, NetNs, NewLink};

use super::*;
use crate::NewSwitch;
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

pub(crate) fn add(switch: &mut Switch, device: &str) -> Result<()> {
    switch.add_port(&NewPort {
        device,
        ..NewPort::default()
    })
}

/// Runs a test with an empty switch, in a namespace with pairs of these devices.
pub(crate) fn with_switch(
    name: &str,
    devices: &[&str],
    test: impl FnOnce(&mut Switch, &Handle) + Send,
) {
    let name = format!("{name}-{}", std::process::id());
    let ns = NetNs::create().unwrap();
    let hub = Handle::new(&ns).unwrap();
    for device in devices {
        guest(&hub, device);
    }
    ns.run(|| {
        let new = NewSwitch {
            name: &name,
            ..NewSwitch::default()
        };
        let mut switch = Switch::create(&new).unwrap();
        test(&mut switch, &hub);
        Switch::remove(&name).unwrap();
    })
    .unwrap();
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

/// Needs root, as it makes a switch.
#[test]
fn the_record_says_whether_its_address_is_the_guests_own() {
    with_switch("own", &["p0"], |switch, hub| {
        let own = Mac(hub.link("p0-in").unwrap().mac.unwrap());
        let other = Mac([2, 0, 0, 0, 0, 1]);
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
            let station = |mac: Mac| switch.state.stations.get(&station_key(mac, 0), 0).unwrap();
            assert_eq!((station(own).flags, station(other).flags), (STATION_OWN, 0));
            switch.remove_port("p0").unwrap();
        }
    });
}
