//! A guest's device that moves between namespaces while its other end is a port.

use std::net::IpAddr;
use std::time::Duration;

use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use serde_json::Value;

use crate::support::apart;
use crate::support::icmp::{ping, ping_within};
use crate::support::site::{NAME, Site, nothing_stands};

/// No answer comes after so long.
const SILENCE: Duration = Duration::from_millis(300);

/// A pair `v0` and `in0` of the hub's.
fn pair(hub: &Handle) {
    let kind = LinkKind::veth("in0", None);
    let new = NewLink {
        up: true,
        ..NewLink::new("v0", kind)
    };
    hub.add_link(&new).unwrap();
    hub.set_up("in0").unwrap();
}

/// The guest's end arrives in a namespace, down and without an address, and is given one that nobody has heard of.
fn arrive(place: &NetNs, host: u8) -> IpAddr {
    let handle = Handle::new(place).unwrap();
    handle.quiet_ipv6().unwrap();
    let ip = IpAddr::from([192, 0, 2, host]);
    handle.set_up("in0").unwrap();
    handle.add_address("in0", ip, 24).unwrap();
    assert!(handle.settle("in0").unwrap());
    ip
}

fn travel(from: &NetNs, to: &NetNs) {
    Handle::new(from).unwrap().move_to("in0", to).unwrap();
}

/// The port `v0` as it is shown; nothing is wrong with the switch.
fn shown(site: &Site) -> Value {
    let ports = site.shown()[0]["ports"].take();
    let found = ports
        .as_array()
        .unwrap()
        .iter()
        .find(|port| port["device"] == "v0");
    found.unwrap().clone()
}

#[test]
fn a_port_works_on_wherever_its_guests_end_goes() {
    apart(|| {
        let site = Site::new();
        site.furnish(1);
        let hub = Handle::new(&site.hub).unwrap();
        pair(&hub);
        let [first, second] = [(); 2].map(|()| NetNs::create().unwrap());
        site.switch(&["port", "add", NAME, "v0"]).exits(0);
        assert_eq!(shown(&site)["direct"], false);
        // From here to there, on to another place, and back to where the switch is, twice.
        let here = &site.hub;
        let ways = [(here, &first), (&first, &second), (&second, here)];
        for (n, (from, to)) in ways.into_iter().cycle().take(6).enumerate() {
            travel(from, to);
            let ip = arrive(to, 10 + n as u8);
            let is_away = !std::ptr::eq(to, here);
            // Without any command in between: ARP, then ICMP, both ways.
            ping(&site.guests[0], ip).unwrap_or_else(|why| panic!("move {n}: {why}"));
            ping(to, [192, 0, 2, 1].into()).unwrap_or_else(|why| panic!("move {n}: {why}"));
            assert_eq!(shown(&site)["direct"], is_away, "move {n}");
            // Isolation moves along.
            site.switch(&["port", "set", NAME, "v0", "--isolated"])
                .exits(0);
            assert!(
                ping_within(&site.guests[0], ip, SILENCE).is_err(),
                "move {n}"
            );
            site.switch(&["port", "set", NAME, "v0", "--isolated", "off"])
                .exits(0);
            ping(&site.guests[0], ip).unwrap_or_else(|why| panic!("move {n}: {why}"));
        }
        site.switch(&["delete", NAME]).exits(0);
        nothing_stands();
    });
}

/// A port that was to take the queue does so wherever the guest's end is.
#[test]
fn a_queued_port_stays_queued_when_its_guests_end_moves() {
    apart(|| {
        let site = Site::new();
        site.furnish(1);
        pair(&Handle::new(&site.hub).unwrap());
        let guest = NetNs::create().unwrap();
        site.switch(&["port", "add", NAME, "v0", "--queued"])
            .exits(0);
        travel(&site.hub, &guest);
        let ip = arrive(&guest, 10);
        ping(&site.guests[0], ip).unwrap();
        assert_eq!(shown(&site)["direct"], false);
        site.switch(&["port", "set", NAME, "v0", "--router"])
            .exits(0);
        assert_eq!(shown(&site)["direct"], false);
        site.switch(&["delete", NAME]).exits(0);
    });
}
