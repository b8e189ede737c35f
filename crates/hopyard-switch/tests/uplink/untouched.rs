//! ND7 and ND10: a switch comes, changes and goes, and the uplink's other users do not notice.

use std::time::{Duration, Instant};

use hopyard_switch::Switch;

use crate::flow::{Flow, acquaint, during};
use crate::netlink::{Monitor, addresses_and_routes};
use crate::site::{FAR, HOST, Site, guest, hold, v4, v6};

/// How long switches come and go under traffic.
const SPAN: Duration = Duration::from_millis(2500);

/// Everything that can be done to a switch, once; `after` sees what each step left.
fn life(site: &Site, mut after: impl FnMut(&str)) {
    site.create(Some("up0"), true);
    after("create");
    site.add(0, |port| hold(0, port));
    after("port add");
    site.add(1, |port| port.vlan = Some(7));
    after("port add in a VLAN");
    site.switch(Switch::upgrade).unwrap();
    after("upgrade");
    site.remove(0);
    after("port del");
    site.in_hub(|| Switch::open(site.name()).unwrap().delete())
        .unwrap();
    after("delete");
}

#[test]
fn addresses_and_routes_stay_and_nothing_is_announced() {
    let site = Site::new("kept", 2);
    let ns = site.hub.ns();
    let before = addresses_and_routes(ns);
    let link = site.hub.link("up0").unwrap();
    let monitor = Monitor::open(ns);
    let mut steps = 0;
    for _ in 0..2 {
        life(&site, |step| {
            assert_eq!(addresses_and_routes(ns), before, "after {step}");
            assert_eq!(site.hub.link("up0").unwrap(), link, "after {step}");
            // Of any device, address or route of the namespace: the kernel announces none at all.
            assert_eq!(monitor.heard(), [], "after {step}");
            steps += 1;
        });
    }
    assert_eq!(steps, 12);
    // The ear is not deaf.
    site.hub.set_mtu("up0", 1400).unwrap();
    assert!(!monitor.heard().is_empty());
}

#[test]
fn the_hosts_own_traffic_loses_nothing_while_switches_come_and_go() {
    let site = Site::new("flow", 2);
    acquaint((&site.hub, "up0", HOST), (&site.far, "far0", FAR));
    let flows = [
        Flow::new(&site.hub, &site.far, v4(FAR)),
        Flow::new(&site.far, &site.hub, v4(HOST)),
        Flow::new(&site.hub, &site.far, v6(FAR).into()),
        Flow::new(&site.far, &site.hub, v6(HOST).into()),
    ];
    let monitor = Monitor::open(site.hub.ns());
    let (lives, accounts) = during(&flows, || {
        let end = Instant::now() + SPAN;
        let mut lives = 0;
        while Instant::now() < end || lives < 2 {
            life(&site, |_| {});
            lives += 1;
        }
        lives
    });
    println!("{lives} switches came and went");
    for (account, way) in accounts.iter().zip(["out", "in", "out, IPv6", "in, IPv6"]) {
        println!("{way}: {account:?}");
        account.assert_whole(way);
    }
    assert_eq!(monitor.heard(), []);
}

#[test]
fn what_a_switch_let_go_is_free_at_once() {
    come_and_go(&Site::new("free", 1));
}

#[test]
fn what_classifiers_let_go_is_free_at_once() {
    come_and_go(&Site::with_classifiers("free", 1));
}

fn come_and_go(site: &Site) {
    for _ in 0..40 {
        site.create(Some("up0"), false);
        site.add(0, |_| {});
        site.remove(0);
        site.add(0, |_| {});
        site.in_hub(|| Switch::open(site.name()).unwrap().delete())
            .unwrap();
    }
}

#[test]
fn other_ports_lose_nothing_while_one_comes_and_goes_and_programs_are_replaced() {
    nothing_is_lost_meanwhile(&Site::new("ports", 3));
}

#[test]
fn nor_where_the_programs_are_classifiers() {
    nothing_is_lost_meanwhile(&Site::with_classifiers("ports", 3));
}

#[expect(clippy::print_stdout, reason = "a test shows what it saw")]
fn nothing_is_lost_meanwhile(site: &Site) {
    site.connect(false, |_, _| {});
    acquaint(
        (&site.guests[0], "eth0", guest(0)),
        (&site.guests[1], "eth0", guest(1)),
    );
    acquaint(
        (&site.guests[0], "eth0", guest(0)),
        (&site.far, "far0", FAR),
    );
    acquaint(
        (&site.guests[1], "eth0", guest(1)),
        (&site.hub, "up0", HOST),
    );
    let flows = [
        Flow::new(&site.guests[0], &site.guests[1], v4(guest(1))),
        Flow::new(&site.guests[1], &site.guests[0], v6(guest(0)).into()),
        Flow::new(&site.guests[0], &site.far, v4(FAR)),
        Flow::new(&site.far, &site.guests[0], v4(guest(0))),
        Flow::new(&site.guests[1], &site.hub, v4(HOST)),
        Flow::new(&site.hub, &site.guests[1], v4(guest(1))),
    ];
    let (rounds, accounts) = during(&flows, || {
        let end = Instant::now() + SPAN;
        let mut rounds = 0;
        while Instant::now() < end || rounds < 2 {
            site.remove(2);
            site.switch(Switch::upgrade).unwrap();
            site.add(2, |port| port.vlan = (rounds % 2 == 1).then_some(9));
            rounds += 1;
        }
        rounds
    });
    println!("{rounds} rounds");
    let ways = [
        "guest to guest",
        "guest to guest, IPv6",
        "guest to wire",
        "wire to guest",
        "guest to host",
        "host to guest",
    ];
    for (account, way) in accounts.iter().zip(ways) {
        println!("{way}: {account:?}");
        account.assert_whole(way);
    }
    for party in ["p0", "p1", "wire", "host"] {
        assert_eq!(site.drops(party), [], "{party}");
    }
}
