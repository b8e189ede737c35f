//! Real datagrams over real devices in throw-away namespaces. Needs root.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod devices;
mod macvtap;

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use hopyard_net::{BridgeSettings, Error, Handle, LinkKind, MacvlanMode, NetNs, NewLink, Route};

/// Bridges forward at once, and everything.
fn at_once() -> BridgeSettings {
    let settings = BridgeSettings::default().stp(false).forward_delay(0);
    settings.multicast_snooping(false)
}

/// What is to come has come by then, also where others take the machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn veth<'a>(name: &str, peer: &str, peer_ns: Option<&'a NetNs>) -> NewLink<'a> {
    NewLink {
        up: true,
        ..NewLink::new(name, LinkKind::veth(peer, peer_ns))
    }
}

fn namespace() -> Handle {
    let handle = Handle::new(&NetNs::create().expect("these tests need root")).unwrap();
    handle.quiet_ipv6().unwrap();
    handle
}

/// Two namespaces and a cable, with addresses 10.0.0.1, 10.0.0.2, fd00::1 and fd00::2.
fn pair() -> (Handle, Handle) {
    let (a, b) = (namespace(), namespace());
    a.add_link(&veth("a0", "b0", Some(b.ns()))).unwrap();
    b.set_up("b0").unwrap();
    for (handle, device, host) in [(&a, "a0", 1), (&b, "b0", 2)] {
        handle
            .add_address(device, ip(&format!("10.0.0.{host}")), 24)
            .unwrap();
        handle
            .add_address(device, ip(&format!("fd00::{host}")), 64)
            .unwrap();
        // As every lab does: until then the kernel may drop what is sent, and ARP asks again after a second.
        assert!(handle.settle(device).unwrap());
    }
    (a, b)
}

/// Sends a datagram to `address` in `to` and back again.
fn exchange(from: &Handle, to: &Handle, address: IpAddr) {
    let server = to
        .ns()
        .run(|| UdpSocket::bind((address, 7000)))
        .unwrap()
        .unwrap();
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let client = from.ns().run(|| UdpSocket::bind(any)).unwrap().unwrap();
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let mut buffer = [0; 16];
    client.send_to(b"there", (address, 7000)).unwrap();
    let (length, back) = server.recv_from(&mut buffer).expect("the datagram arrives");
    assert_eq!(&buffer[..length], b"there");
    server.send_to(b"back", back).unwrap();
    assert_eq!(client.recv(&mut buffer).expect("the answer arrives"), 4);
}

/// Has the kernel wait longer for a neighbour's answer than others take the machine away, before it asks again.
fn ask_patiently(handle: &Handle, device: &str) {
    for family in ["ipv4", "ipv6"] {
        let key = format!("net/{family}/neigh/{device}/retrans_time_ms");
        handle.set_sysctl(&key, "30000").unwrap();
    }
}

/// A neighbour on the link was asked for its address once: nothing sent was dropped, whatever time it took.
#[track_caller]
fn asked_once(handle: &Handle, neighbour: IpAddr) {
    let ip = || {
        Command::new("ip")
            .args(["-s", "neigh", "show", "to"])
            .arg(neighbour.to_string())
            .output()
    };
    let output = handle.ns().run(ip).unwrap().expect("`ip` (iproute2) runs");
    let text = String::from_utf8(output.stdout).unwrap();
    let probes = text.split("probes ").nth(1);
    let probes = probes.and_then(|rest| rest.split(' ').next());
    // `__neigh_event_send` begins to count at `ucast_solicit`, which is 3.
    assert_eq!(probes, Some("4"), "{text}");
}

#[test]
fn counters_of_many_devices_are_all_there() {
    let handle = namespace();
    // More than one page of text, which is what the kernel hands out at once.
    for n in 0..35 {
        let pair = NewLink {
            up: false,
            ..veth(&format!("near{n}"), &format!("far{n}"), None)
        };
        handle.add_link(&pair).unwrap();
    }
    let links = handle.links().unwrap();
    let mut names: Vec<String> = links.into_iter().map(|link| link.name).collect();
    let stats = handle.device_stats().unwrap();
    let mut counted: Vec<String> = stats.into_iter().map(|stats| stats.name).collect();
    names.sort();
    counted.sort();
    assert_eq!(names.len(), 71);
    assert_eq!(counted, names);
}

#[test]
fn datagrams_cross_a_veth_at_once_in_both_families() {
    let (a, b) = pair();
    ask_patiently(&a, "a0");
    for address in ["10.0.0.2", "fd00::2"] {
        exchange(&a, &b, ip(address));
        asked_once(&a, ip(address));
    }
    let stats = b.device_stats().unwrap();
    let of_b0 = stats.iter().find(|stats| stats.name == "b0").unwrap();
    assert!(
        of_b0.rx_packets >= 2 && of_b0.rx_bytes > 0 && of_b0.tx_packets >= 2,
        "{of_b0:?}"
    );
    assert!(
        stats
            .iter()
            .any(|stats| stats.name == "lo" && stats.rx_packets == 0)
    );
}

/// Packets that a pair of namespaces sent and received by their cable.
fn passed(ends: [(&Handle, &str); 2]) -> [(u64, u64); 2] {
    ends.map(|(handle, device)| {
        let stats = handle.device_stats().unwrap();
        let of = stats.iter().find(|stats| stats.name == device).unwrap();
        (of.tx_packets, of.rx_packets)
    })
}

#[test]
fn quiet_ipv6_is_quiet() {
    let (a, b) = (namespace(), namespace());
    a.add_link(&veth("a0", "b0", Some(b.ns()))).unwrap();
    b.set_up("b0").unwrap();
    let ends = [(&a, "a0"), (&b, "b0")];
    for (handle, device) in ends {
        assert!(handle.settle(device).unwrap());
    }
    for ((handle, device), host) in ends.into_iter().zip(1..) {
        let (four, six) = (format!("10.0.0.{host}"), format!("fd00::{host}"));
        handle.add_address(device, ip(&four), 24).unwrap();
        handle.add_address(device, ip(&six), 64).unwrap();
    }
    assert_eq!(b.sysctl("net/ipv6/conf/b0/accept_dad").unwrap(), "0");
    let text = a
        .ns()
        .run(|| fs::read_to_string("/proc/thread-self/net/if_inet6"))
        .unwrap()
        .unwrap();
    assert!(!text.contains("fe80"), "no link-local address: {text}");
    assert!(a.settle("a0").unwrap() && b.settle("b0").unwrap());
    // The multicast group of the address of each is reported twice at once, then there is silence.
    let deadline = Instant::now() + PATIENCE;
    while passed(ends) != [(2, 2); 2] {
        assert!(Instant::now() < deadline, "{:?}", passed(ends));
        std::thread::sleep(Duration::from_millis(5));
    }
    let counters = || ends.map(|(handle, _)| handle.device_stats().unwrap());
    let before = counters();
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(before, counters());
}

#[test]
fn routes_lead_through_a_forwarding_namespace() {
    let (a, hub, b) = (namespace(), namespace(), namespace());
    hub.add_link(&veth("h0", "a0", Some(a.ns()))).unwrap();
    hub.add_link(&veth("h1", "b0", Some(b.ns()))).unwrap();
    hub.set_sysctl("net/ipv4/ip_forward", "1").unwrap();
    hub.set_sysctl("net/ipv6/conf/all/forwarding", "1").unwrap();
    hub.add_link_local("h0").unwrap();
    hub.add_link_local("h1").unwrap();
    for (handle, device, four, six) in [
        (&hub, "h0", "10.1.0.1", "fd01::1"),
        (&hub, "h1", "10.2.0.1", "fd02::1"),
        (&a, "a0", "10.1.0.2", "fd01::2"),
        (&b, "b0", "10.2.0.2", "fd02::2"),
    ] {
        handle.set_up(device).unwrap();
        handle.add_address(device, ip(four), 24).unwrap();
        handle.add_address(device, ip(six), 64).unwrap();
    }
    a.add_route(None, Some(ip("10.1.0.1")), None).unwrap();
    a.add_route(None, Some(ip("fd01::1")), Some("a0")).unwrap();
    b.add_route(Some((ip("10.1.0.0"), 24)), Some(ip("10.2.0.1")), None)
        .unwrap();
    b.add_route(Some((ip("fd01::"), 64)), Some(ip("fd02::1")), Some("b0"))
        .unwrap();
    exchange(&a, &b, ip("10.2.0.2"));
    exchange(&a, &b, ip("fd02::2"));
    for (to, device, source) in [
        ("10.2.0.2", "a0", "10.1.0.2"),
        ("fd02::2", "a0", "fd01::2"),
        ("10.1.0.2", "lo", "10.1.0.2"),
    ] {
        let way = a.way_to(ip(to)).unwrap();
        assert_eq!(
            (&*way.device, way.source),
            (device, Some(ip(source))),
            "{to}"
        );
    }
    let error = b.way_to(ip("172.16.0.1")).unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENETUNREACH), "{error}");

    b.add_route(Some((ip("10.9.0.0"), 16)), None, Some("b0"))
        .unwrap();
    assert!(matches!(
        b.add_route(None, None, Some("b0")),
        Err(Error::Invalid { .. })
    ));
    let error = b.add_route(None, Some(ip("172.16.0.1")), None).unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENETUNREACH), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("cannot add route default via 172.16.0.1 ("),
        "{error}"
    );
}

#[test]
fn routes_with_metrics_are_made_and_listed() {
    let (a, _b) = pair();
    let device = a.index("a0").unwrap();
    for (to, prefix, via) in [
        ("10.7.0.0", 16, Some("10.0.0.2")),
        ("10.8.0.0", 16, None),
        ("0.0.0.0", 0, Some("10.0.0.2")),
        ("fd07::", 64, Some("fd00::2")),
    ] {
        let mut route = Route::new(ip(to), prefix, via.map(ip), device);
        route.mtu = Some(1400);
        route.advmss = Some(1360);
        route.priority = Some(7);
        route.table = (to == "10.8.0.0").then_some(300);
        a.make_route(&route).unwrap();
        let refused = a.make_route(&route).unwrap_err();
        assert_eq!(refused.errno(), Some(libc::EEXIST), "{refused}");
        let found = a.routes().unwrap();
        let found = found
            .iter()
            .find(|r| (r.destination, r.prefix) == (ip(to), prefix));
        let found = found.unwrap_or_else(|| panic!("{to} is not listed"));
        assert_eq!((found.via, found.device), (via.map(ip), device));
        assert_eq!(found.table, Some(route.table.unwrap_or(254)));
        assert_eq!(found.priority, Some(7));
    }
    let shown = a.ns().run(|| {
        let shown = Command::new("ip")
            .args(["route", "show", "10.7.0.0/16"])
            .output();
        String::from_utf8(shown.unwrap().stdout).unwrap()
    });
    let shown = shown.unwrap();
    for part in ["mtu 1400", "advmss 1360", "metric 7"] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn a_name_that_no_device_can_have_is_missing() {
    let (a, _b) = pair();
    let name = "averyveryverylongname";
    assert!(matches!(a.link(name), Err(Error::Missing { .. })));
    assert!(matches!(a.tun_link(name), Err(Error::Missing { .. })));
}

#[test]
fn gateways_of_every_table_and_of_each_next_hop_are_listed() {
    let (a, _b) = pair();
    let device = a.index("a0").unwrap();
    for words in [
        "-4 route add default via 10.0.0.2",
        "-4 route add 10.7.0.0/16 nexthop via 10.0.0.3 dev a0 nexthop via 10.0.0.4 dev a0",
        "-4 route add 10.8.0.0/16 via inet6 fd00::5 dev a0",
        "-6 route add fd07::/64 via fd00::2 table 300",
        "-6 route add blackhole fd08::/64",
        "-6 route add multicast ff0e::/64 dev a0",
        // By another device.
        "link add other type veth peer name other-far",
        "addr add 10.9.0.1/24 dev other",
        "link set other up",
        "route add 10.10.0.0/16 nexthop via 10.9.0.2 dev other nexthop via 10.0.0.6 dev a0",
        "route add 10.11.0.0/16 via 10.9.0.3",
    ] {
        let run = || Command::new("ip").args(words.split(' ')).status();
        assert!(a.ns().run(run).unwrap().unwrap().success(), "{words}");
    }
    let other = a.index("other").unwrap();
    let by_first = [
        "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.6", "fd00::2", "fd00::5",
    ];
    let by_first = by_first.map(|gateway| (device, ip(gateway)));
    let by_other = ["10.9.0.2", "10.9.0.3"].map(|gateway| (other, ip(gateway)));
    let gone = other + 1000;
    assert_eq!(a.gateways(&[device]).unwrap(), by_first.into());
    assert_eq!(a.gateways(&[gone, other]).unwrap(), by_other.into());
    assert_eq!(a.gateways(&[]).unwrap(), BTreeSet::new());
    // Of so many devices all routes are looked through.
    let many = [device, other, gone, gone + 1, gone + 2];
    let all = by_first.into_iter().chain(by_other).collect();
    assert_eq!(a.gateways(&many).unwrap(), all);
    assert_eq!(a.gateways(&many[1..]).unwrap(), by_other.into());
    // The list that was filtered does not make the next ones strict.
    let routes = a.routes().unwrap();
    assert!(routes.len() >= 5);
    let over_ipv6 = routes
        .iter()
        .find(|route| route.destination == ip("10.8.0.0"));
    assert_eq!(over_ipv6.unwrap().via, Some(ip("fd00::5")), "{routes:?}");
    assert!(a.addresses().unwrap().contains(&(device, ip("fd00::1"))));
}

#[test]
fn neighbours_are_permanent() {
    let (a, b) = pair();
    let mac = b.link("b0").unwrap().mac.unwrap();
    a.add_neighbour("a0", ip("10.0.0.2"), mac).unwrap();
    a.add_neighbour("a0", ip("fd00::2"), mac).unwrap();
    let arp = a
        .ns()
        .run(|| fs::read_to_string("/proc/thread-self/net/arp"))
        .unwrap()
        .unwrap();
    assert!(arp.contains("10.0.0.2") && arp.contains("0x6"), "{arp}");
}

#[test]
fn a_bridge_forwards_at_once() {
    let (hub, a, b) = (namespace(), namespace(), namespace());
    hub.add_link(&NewLink {
        up: true,
        ..NewLink::new("br0", LinkKind::Bridge(at_once()))
    })
    .unwrap();
    for (port, peer, ns) in [("p0", "a0", a.ns()), ("p1", "b0", b.ns())] {
        hub.add_link(&veth(port, peer, Some(ns))).unwrap();
        assert!(!hub.link(port).unwrap().promiscuous);
        hub.set_master(port, "br0").unwrap();
        assert!(hub.link(port).unwrap().promiscuous);
    }
    a.set_up("a0").unwrap();
    b.set_up("b0").unwrap();
    a.add_address("a0", ip("10.0.0.1"), 24).unwrap();
    b.add_address("b0", ip("10.0.0.2"), 24).unwrap();
    for (handle, device) in [
        (&hub, "p0"),
        (&hub, "p1"),
        (&hub, "br0"),
        (&a, "a0"),
        (&b, "b0"),
    ] {
        handle.settle(device).unwrap();
    }
    ask_patiently(&a, "a0");
    exchange(&a, &b, ip("10.0.0.2"));
    asked_once(&a, ip("10.0.0.2"));
    let bridge = hub.link("br0").unwrap();
    assert_eq!(bridge.kind.as_deref(), Some("bridge"));
    assert_eq!(hub.link("p0").unwrap().master, Some(bridge.index));
}

#[test]
fn macvlan_is_made_in_another_namespace() {
    let (hub, far, box1) = (namespace(), namespace(), namespace());
    hub.add_link(&veth("up0", "far0", Some(far.ns()))).unwrap();
    far.set_up("far0").unwrap();
    far.add_address("far0", ip("10.0.0.9"), 24).unwrap();
    let kind = LinkKind::Macvlan {
        lower: "up0".into(),
        mode: MacvlanMode::Bridge,
    };
    let link = NewLink {
        into: Some(box1.ns()),
        mac: Some([2, 0, 0, 0, 0, 7]),
        up: true,
        ..NewLink::new("mv0", kind)
    };
    hub.add_link(&link).unwrap();
    box1.add_address("mv0", ip("10.0.0.7"), 24).unwrap();
    let made = box1.link("mv0").unwrap();
    assert_eq!(
        (made.kind.as_deref(), made.mac),
        (Some("macvlan"), Some([2, 0, 0, 0, 0, 7]))
    );
    exchange(&box1, &far, ip("10.0.0.9"));
}

#[test]
fn vxlan_crosses_an_underlay_in_another_namespace() {
    let (a, b) = pair();
    let (in_a, in_b) = (namespace(), namespace());
    for (under, inside, local, remote, address) in [
        (&a, &in_a, "10.0.0.1", "10.0.0.2", "10.7.0.1"),
        (&b, &in_b, "10.0.0.2", "10.0.0.1", "10.7.0.2"),
    ] {
        let kind = LinkKind::Vxlan {
            vni: 7,
            local: ip(local),
            remote: ip(remote),
            port: 4789,
            lower: None,
        };
        let link = NewLink {
            into: Some(inside.ns()),
            up: true,
            ..NewLink::new("vx0", kind)
        };
        under.add_link(&link).unwrap();
        inside.add_address("vx0", ip(address), 24).unwrap();
    }
    exchange(&in_a, &in_b, ip("10.7.0.2"));

    let kind = |vni, remote| LinkKind::Vxlan {
        vni,
        local: ip("10.0.0.1"),
        remote: ip(remote),
        port: 4789,
        lower: Some("a0".into()),
    };
    a.add_link(&NewLink::new("vx1", kind(1, "10.0.0.2")))
        .unwrap();
    let index = |name| a.link(name).unwrap().index;
    assert_eq!(a.link("vx1").unwrap().lower, Some(index("a0")));
    for kind in [kind(1 << 24, "10.0.0.2"), kind(1, "fd00::2")] {
        assert!(matches!(
            a.add_link(&NewLink::new("vx2", kind)),
            Err(Error::Invalid { .. })
        ));
    }
}
