//! Router advertisements, DHCP answers and the host's own addresses, from ports that are no servers.

use std::net::{Ipv4Addr, Ipv6Addr};

use hopyard_net::{LinkKind, MacvlanMode, NewLink};
use hopyard_switch::{NewPort, PortChange, Prefix, Switch, Warning, WayOut};

use crate::frames::BROADCAST;
use crate::listen::Ear;
use crate::packet::{
    ADVERT, ARP, DESTINATION, FRAGMENT, ICMP, ICMPV6, IPV4, IPV6, REDIRECT, ROUTER_ADVERT, SOLICIT,
    SOURCE_MAC, TARGET_MAC, UDP, arp_message, ethernet, extension, fragment, ipv4, ipv6,
    link_option, nd, udp,
};
use crate::site::{FAR, FAR_MAC, HOST, Site, cable, guest, guest_mac, space, v4, v6};

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
/// A free address that the site gives to nobody.
const FREE: u8 = 77;

fn ip4(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

/// What a port may not send: what it is, its Ethernet type, the frame, the reason of the drop.
type Refused = (&'static str, u16, Vec<u8>, &'static str);

fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    Ipv6Addr::from(crate::frames::link_local(mac))
}

fn advertisement(mac: [u8; 6]) -> Vec<u8> {
    let message = nd(ROUTER_ADVERT, ALL_NODES, &link_option(SOURCE_MAC, mac));
    let packet = ipv6(link_local(mac), ALL_NODES, ICMPV6, &message);
    ethernet(NODES_MAC, mac, IPV6, &packet)
}

fn router_frames(mac: [u8; 6]) -> Vec<Refused> {
    let own = link_local(mac);
    let six =
        |next, payload: &[u8]| ethernet(NODES_MAC, mac, IPV6, &ipv6(own, ALL_NODES, next, payload));
    let advert = nd(ROUTER_ADVERT, ALL_NODES, &[]);
    let hidden = [
        extension(DESTINATION, 2),
        extension(ICMPV6, 1),
        advert.clone(),
    ]
    .concat();
    let split = [fragment(ICMPV6, 0, true), advert].concat();
    let four = |kind, options: &[u8]| {
        let message = [[kind, 1, 0, 0, 10, 0, 0, FREE].as_slice(), &[0x45; 28]].concat();
        let packet = ipv4(ICMP, ip4(FREE), Ipv4Addr::BROADCAST, options, &message);
        ethernet(BROADCAST, mac, IPV4, &packet)
    };
    let mut piece = four(5, &[]);
    piece[20] = 0x20;
    vec![
        ("an IPv4 redirect", IPV4, four(5, &[]), "nd"),
        ("one behind options", IPV4, four(5, &[1; 8]), "nd"),
        ("the first piece of one", IPV4, piece, "nd"),
        ("an IPv4 router advertisement", IPV4, four(9, &[]), "nd"),
        ("a router advertisement", IPV6, advertisement(mac), "nd"),
        ("one behind headers", IPV6, six(DESTINATION, &hidden), "nd"),
        ("one in fragments", IPV6, six(FRAGMENT, &split), "nd"),
        (
            "a redirect",
            IPV6,
            six(ICMPV6, &nd(REDIRECT, own, &[])),
            "nd",
        ),
    ]
}

/// DHCP answers to everybody and to one client.
fn dhcp_frames(mac: [u8; 6], victim: [u8; 6]) -> Vec<Refused> {
    let own = link_local(mac);
    let offer = udp(67, 68, &[2; 244]);
    let other_port = udp(6767, 68, &[2; 244]);
    let four = |to, options: &[u8], body: &[u8]| {
        let packet = ipv4(UDP, ip4(FREE), Ipv4Addr::BROADCAST, options, body);
        ethernet(to, mac, IPV4, &packet)
    };
    let mut pieces = four(victim, &[], &offer);
    pieces[20] = 0x20;
    let reply = udp(547, 546, &[7; 20]);
    let six = |next, payload: &[u8]| ethernet(victim, mac, IPV6, &ipv6(own, own, next, payload));
    let hidden = [extension(UDP, 1), reply.clone()].concat();
    vec![
        (
            "an offer to all",
            IPV4,
            four(BROADCAST, &[], &offer),
            "dhcp",
        ),
        ("an offer to one", IPV4, four(victim, &[], &offer), "dhcp"),
        (
            "one behind options",
            IPV4,
            four(victim, &[1; 8], &offer),
            "dhcp",
        ),
        (
            "one from another port",
            IPV4,
            four(victim, &[], &other_port),
            "dhcp",
        ),
        ("the first piece of one", IPV4, pieces, "dhcp"),
        ("a DHCPv6 reply", IPV6, six(UDP, &reply), "dhcp"),
        (
            "one behind a header",
            IPV6,
            six(DESTINATION, &hidden),
            "dhcp",
        ),
    ]
}

/// Claims to the addresses of the host, or of its router.
fn claims(mac: [u8; 6], host: u8) -> Vec<Refused> {
    let (ip, ip6) = (ip4(host), v6(host));
    let nobody = ([0; 6], Ipv4Addr::UNSPECIFIED);
    let arp = |op, speaker, target| {
        ethernet(
            BROADCAST,
            mac,
            ARP,
            &arp_message(op, (mac, speaker), target),
        )
    };
    let six = |from, message: &[u8]| {
        ethernet(
            NODES_MAC,
            mac,
            IPV6,
            &ipv6(from, ALL_NODES, ICMPV6, message),
        )
    };
    let advert = nd(ADVERT, ip6, &link_option(TARGET_MAC, mac));
    let question = nd(SOLICIT, v6(FREE), &link_option(SOURCE_MAC, mac));
    vec![
        ("an ARP reply", ARP, arp(2, ip, nobody), "arp"),
        (
            "an ARP request",
            ARP,
            arp(1, ip, ([0; 6], ip4(FREE))),
            "arp",
        ),
        (
            "a probe",
            ARP,
            arp(1, Ipv4Addr::UNSPECIFIED, ([0; 6], ip)),
            "arp",
        ),
        (
            "an advertisement",
            IPV6,
            six(link_local(mac), &advert),
            "nd",
        ),
        ("a solicitation from there", IPV6, six(ip6, &question), "nd"),
        (
            "duplicate address detection",
            IPV6,
            six(Ipv6Addr::UNSPECIFIED, &nd(SOLICIT, ip6, &[])),
            "nd",
        ),
    ]
}

/// What was heard by the other guest and beyond the uplink, and was dropped of the sender's, for each frame.
fn outcomes(site: &Site, frames: &[Refused], party: usize) -> Vec<String> {
    let device = format!("p{party}");
    let count = |reason: &str| {
        let drops = site.drops(&device);
        let found = drops.iter().find(|(name, _)| *name == reason);
        found.map_or(0, |(_, count)| *count)
    };
    let mut passed = Vec::new();
    for (what, kind, frame, reason) in frames {
        let ears = [
            Ear::open(&site.guests[1 - party], "eth0", *kind),
            Ear::open(&site.far, "far0", *kind),
        ];
        let before = count(reason);
        Ear::open(&site.guests[party], "eth0", *kind).send(frame);
        let heard: usize = ears.iter().map(|ear| ear.heard().len()).sum();
        if heard > 0 || count(reason) != before + 1 {
            passed.push(format!(
                "{what}: heard by {heard}, {reason} {}",
                count(reason) - before
            ));
        }
    }
    passed
}

/// Both guests are ports with these options; what the first may send that no port may.
fn of_port(name: &str, change: impl Fn(&mut NewPort<'_>)) -> Vec<String> {
    let site = Site::new(name, 2);
    site.connect(false, |_, port| change(port));
    let mac = guest_mac(0);
    let all = [
        router_frames(mac),
        dhcp_frames(mac, guest_mac(1)),
        claims(mac, HOST),
        claims(mac, FAR),
    ];
    outcomes(&site, &all.concat(), 0)
}

#[test]
fn no_port_is_a_router_or_a_dhcp_server_or_the_host_unasked() {
    assert_eq!(v4(HOST), ip4(HOST));
    let none: [String; 0] = [];
    assert_eq!(of_port("servers", |_| {}), none);
    assert_eq!(
        of_port("servers-spoof", |port| port.allow_spoof = true),
        none
    );
}

#[test]
fn a_router_and_a_dhcp_server_are_what_they_are_let_be() {
    let site = Site::new("served", 2);
    site.connect(false, |_, _| {});
    let mac = guest_mac(0);
    let kinds = [
        router_frames(mac),
        dhcp_frames(mac, guest_mac(1)),
        claims(mac, HOST),
        claims(mac, FAR),
    ];
    let all = kinds.concat().len();
    let change = |router, dhcp_server| {
        let change = PortChange {
            device: "p0",
            router: Some(router),
            dhcp_server: Some(dhcp_server),
            ..PortChange::default()
        };
        site.switch(|switch| switch.set_port(&change)).unwrap();
        let passed: Vec<usize> = kinds
            .iter()
            .map(|kind| outcomes(&site, kind, 0).len())
            .collect();
        let shown = site.show();
        assert_eq!(
            (shown.ports[0].router, shown.ports[0].dhcp_server),
            (router, dhcp_server)
        );
        passed
    };
    let [routers, servers, own, gateways] = [0, 1, 2, 3].map(|n: usize| kinds[n].len());
    assert_eq!(routers + servers + own + gateways, all);
    // Neighbour discovery in fragments is nobody's to send (RFC 6980).
    assert_eq!(change(true, false), [routers - 1, 0, own, gateways]);
    assert_eq!(change(false, true), [0, servers, 0, 0]);
    assert_eq!(change(false, false), [0, 0, 0, 0]);
}

#[test]
fn answers_for_a_router_say_that_it_is_one() {
    let site = Site::new("flag", 3);
    site.connect(true, |n, port| {
        port.ips = vec![v4(guest(n)), v6(guest(n)).into()];
        port.router = n == 1;
    });
    let ear = Ear::open(&site.guests[0], "eth0", IPV6);
    let flags = |n| {
        let ip = |n| v6(guest(n)).octets();
        let question = crate::frames::solicitation(guest_mac(0), ip(0), ip(n));
        ear.send(&question.frame());
        let heard = ear.heard();
        assert_eq!(heard.len(), 1);
        heard[0][58]
    };
    assert_eq!([flags(1), flags(2)], [0xe0, 0x60]);
}

#[test]
fn an_address_that_the_host_gets_later_is_kept_from_ports() {
    let site = Site::new("later", 2);
    site.connect(false, |n, port| {
        if n == 1 {
            port.vlan = Some(7);
        }
    });
    let refused = |host: u8, party: usize| {
        let own = claims(guest_mac(party), host);
        let passed = outcomes(&site, &own, party).len();
        assert!(passed == 0 || passed == own.len());
        passed == 0
    };
    assert!(!refused(FREE, 0));
    site.hub.add_address("up0", v4(FREE), 24).unwrap();
    site.hub.add_address("up0", v6(FREE).into(), 64).unwrap();
    let warnings = site.show().warnings;
    let about = |warning: &&Warning| {
        warning.contains("10.0.0.77") && warning.way_out() == Some(&WayOut::Upgrade)
    };
    assert_eq!(warnings.iter().filter(about).count(), 1, "{warnings:?}");
    site.switch(Switch::upgrade).unwrap();
    assert_eq!(site.show().warnings, [""; 0]);
    assert!(refused(FREE, 0) && refused(HOST, 0));
    assert!(!refused(FREE, 1), "not in another VLAN");
    // An address that moves to a device above the uplink, which is down and does not answer itself, and then goes.
    let kind = LinkKind::Macvlan {
        lower: "up0".to_owned(),
        mode: MacvlanMode::Bridge,
    };
    site.hub.add_link(&NewLink::new("alias", kind)).unwrap();
    site.hub.delete_address("up0", v4(FREE), 24).unwrap();
    site.hub.delete_address("up0", v6(FREE).into(), 64).unwrap();
    site.hub.add_address("alias", v4(FREE), 32).unwrap();
    site.hub.add_address("alias", v6(FREE).into(), 128).unwrap();
    site.switch(Switch::upgrade).unwrap();
    assert!(refused(FREE, 0) && refused(HOST, 0));
    site.hub.delete_link("alias").unwrap();
    site.switch(Switch::upgrade).unwrap();
    assert!(!refused(FREE, 0) && refused(HOST, 0));
    // No port is given what is the host's.
    site.remove(0);
    let port = NewPort {
        device: "p0",
        ips: vec![v4(HOST)],
        ..NewPort::default()
    };
    let error = site.switch(|switch| switch.add_port(&port).unwrap_err());
    assert!(
        error.is_usage() && error.to_string().contains("the host's own address"),
        "{error}"
    );
}

/// Takes a port away.
type Goes = fn(&Site);

#[test]
fn what_a_port_had_of_the_host_is_kept_from_others_when_it_is_gone() {
    let site = Site::new("had", 2);
    site.connect(false, |_, _| {});
    let guest = space();
    let ways: [(&str, Goes); 3] = [
        ("it is removed", |site| {
            site.switch(|switch| switch.remove_port("p9")).unwrap();
        }),
        ("it is released", |site| {
            let release = || Switch::release_ports(site.name(), &["p9"]);
            site.in_hub(release).unwrap();
        }),
        ("its device goes", |site| {
            site.hub.delete_link("p9").unwrap();
            site.show();
        }),
    ];
    // A gateway may be a guest. The free address was a port's before it became the host's.
    for (host, is_later) in [(FAR, false), (FREE, true)] {
        let ips = [v4(host), v6(host).into()];
        for (what, goes) in ways {
            cable(&site.hub, "p9", &guest, "eth0", guest_mac(9), 1500);
            let new = NewPort {
                device: "p9",
                ips: ips.to_vec(),
                ..NewPort::default()
            };
            site.switch(|switch| switch.add_port(&new)).unwrap();
            if is_later {
                for (ip, prefix) in ips.into_iter().zip([24, 64]) {
                    site.hub.add_address("up0", ip, prefix).unwrap();
                }
                site.switch(Switch::upgrade).unwrap();
            }
            goes(&site);
            let passed = outcomes(&site, &claims(guest_mac(0), host), 0);
            assert_eq!(passed, [""; 0], "{}, {what}", ips[0]);
            if is_later {
                for (ip, prefix) in ips.into_iter().zip([24, 64]) {
                    site.hub.delete_address("up0", ip, prefix).unwrap();
                }
                site.switch(Switch::upgrade).unwrap();
            }
            if site.hub.index("p9").is_ok() {
                site.hub.delete_link("p9").unwrap();
            }
        }
    }
}

/// A port that may send from any Ethernet address may send from that of a gateway, which has a link-local address made from it.
#[test]
fn the_link_local_address_of_a_gateway_is_no_ports() {
    let site = Site::new("gateway", 2);
    let gateway = link_local(FAR_MAC);
    let somewhere = ("2001:db8:9::".parse().unwrap(), 48);
    site.hub
        .add_route(Some(somewhere), Some(gateway.into()), Some("up0"))
        .unwrap();
    site.connect(false, |_, port| port.allow_spoof = true);
    let claims = |mac: [u8; 6]| {
        let own = link_local(mac);
        let of = |what, from, message: &[u8]| -> Refused {
            let packet = ipv6(from, ALL_NODES, ICMPV6, message);
            (what, IPV6, ethernet(NODES_MAC, mac, IPV6, &packet), "nd")
        };
        [
            of(
                "an advertisement",
                own,
                &nd(ADVERT, own, &link_option(TARGET_MAC, mac)),
            ),
            of(
                "duplicate address detection",
                Ipv6Addr::UNSPECIFIED,
                &nd(SOLICIT, own, &[]),
            ),
        ]
    };
    assert_eq!(outcomes(&site, &claims(FAR_MAC), 0), [""; 0]);
    // That of another Ethernet address may be the port's own, and a router may say what it likes of gateways.
    assert_eq!(outcomes(&site, &claims(guest_mac(7)), 0).len(), 2);
    let change = PortChange {
        device: "p0",
        router: Some(true),
        ..PortChange::default()
    };
    site.switch(|switch| switch.set_port(&change)).unwrap();
    assert_eq!(outcomes(&site, &claims(FAR_MAC), 0).len(), 2);
}

#[test]
fn a_port_with_a_prefix_may_use_all_its_addresses_and_no_others() {
    let site = Site::new("prefix", 3);
    let prefix = |text: &str| text.parse::<Prefix>().unwrap();
    site.connect(false, |n, port| match n {
        0 => port.prefixes = vec![prefix("fd00::/64"), prefix("10.0.0.64/26")],
        1 => port.ips = vec![v6(guest(1)).into()],
        _ => port.prefixes = vec![prefix("::/0")],
    });
    let shown = site.show();
    assert_eq!(
        shown.ports[0].prefixes,
        [prefix("fd00::/64"), prefix("10.0.0.64/26")]
    );
    let to = Ear::open(&site.far, "far0", IPV6);
    let to4 = Ear::open(&site.far, "far0", IPV4);
    let send6 = |n: usize, from: &str| {
        let packet = ipv6(from.parse().unwrap(), v6(FAR), UDP, &udp(1, 2, b"x"));
        let frame = ethernet(FAR_MAC, guest_mac(n), IPV6, &packet);
        Ear::open(&site.guests[n], "eth0", IPV6).send(&frame);
        to.heard().len() == 1
    };
    let send4 = |n: usize, host: u8| {
        let packet = ipv4(UDP, ip4(host), ip4(FAR), &[], &udp(1, 2, b"x"));
        let frame = ethernet(FAR_MAC, guest_mac(n), IPV4, &packet);
        Ear::open(&site.guests[n], "eth0", IPV4).send(&frame);
        to4.heard().len() == 1
    };
    // By its Ethernet address, or by chance (RFC 8981).
    for ip in [
        "fd00::a",
        "fd00::1234:5678:9abc:def0",
        "fd00::ffff:ffff:ffff:ffff",
    ] {
        assert!(send6(0, ip), "{ip}");
    }
    // Another prefix, another port's own address, the host's.
    for ip in [
        "fd00:0:0:1::a",
        "fe80::1",
        &v6(guest(1)).to_string(),
        &v6(HOST).to_string(),
    ] {
        assert!(!send6(0, ip), "{ip}");
    }
    assert_eq!(
        [64, 127, 63, 128].map(|host| send4(0, host)),
        [true, true, false, false]
    );
    // All of IPv6 is nothing of IPv4.
    assert!(send6(2, "2001:db8::77") && !send4(2, 77));
    assert!(!send6(1, "fd00::1b"));
    assert_eq!(site.drops("p0"), [("ip", 6)]);
    // Another port may have the same, and one that went leaves it to the others.
    site.remove(2);
    site.add(2, |port| port.prefixes = vec![prefix("fd00::/64")]);
    assert!(send6(2, "fd00::1b") && send6(0, "fd00::1b"));
    site.remove(0);
    assert!(send6(2, "fd00::c"));
    site.add(0, |port| port.ips = vec![v4(99)]);
    assert!(!send6(0, "fd00::c"));
}
