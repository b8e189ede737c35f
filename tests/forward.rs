//! Chains of containers that route: each of them is passed, on every kind of segment.

use hopyard::lab::Lab;
use hopyard::model::{LoadKind, Peer};

use crate::support::cli::run;
use crate::support::host::unharmed;
use crate::support::icmp::ping;
use crate::support::traces::Traces;
use crate::support::{apart, beside, cell, proved};

fn build(chain: &str, segments: &str, load: LoadKind) -> (Lab, hopyard::model::Cell) {
    let set = [("chain", chain), ("segments", segments)];
    let cell = cell("forward", Peer::Local, load, &set);
    let path = hopyard::lab::path("forward").unwrap();
    (Lab::build(path, Peer::Local, &cell.axes).unwrap(), cell)
}

#[test]
fn the_way_is_proved_through_each_container_of_a_chain() {
    apart(|| {
        unharmed(|| {
            for (chain, segments, load) in [
                ("1", "veth", LoadKind::TcpStream),
                ("8", "veth", LoadKind::UdpRr),
                ("3", "veth", LoadKind::TcpMaerts),
                ("2", "bridge", LoadKind::TcpStream),
                ("8", "bridge", LoadKind::UdpRr),
                ("2", "macvlan", LoadKind::TcpRr),
                ("8", "macvlan", LoadKind::UdpStream),
                ("2", "direct", LoadKind::TcpStream),
                ("4", "direct", LoadKind::UdpRr),
            ] {
                let before = Traces::now();
                let (lab, cell) = build(chain, segments, load);
                let ns = lab.space(lab.topology.client.role).unwrap().handle.ns();
                let server = lab.topology.server.addresses;
                for address in [server.v4.into(), server.v6.into()] {
                    ping(ns, address).unwrap_or_else(|why| panic!("{chain} on {segments}: {why}"));
                }
                let length: usize = chain.parse().unwrap();
                for number in 1..=length {
                    let router = format!("f{number}");
                    let hops = lab.topology.way.iter();
                    assert_eq!(
                        hops.filter(|hop| hop.namespace == router).count(),
                        2,
                        "{router}"
                    );
                }
                proved(&lab, &cell, 100)
                    .unwrap_or_else(|why| panic!("{chain} on {segments}: {why}"));
                drop(lab);
                before.unchanged().unwrap();
            }
        });
    });
}

#[test]
fn a_packet_is_routed_once_by_each_container() {
    let _beside = beside();
    let (lab, _) = build("5", "veth", LoadKind::UdpRr);
    let forwarded = |role: &str| -> u64 {
        let text = lab
            .space(role)
            .unwrap()
            .handle
            .ns()
            .run(|| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
        let text = text.unwrap();
        let mut ip = text.lines().filter(|line| line.starts_with("Ip:"));
        let names = ip.next().unwrap().split_whitespace();
        let place = names
            .into_iter()
            .position(|name| name == "ForwDatagrams")
            .unwrap();
        ip.next()
            .unwrap()
            .split_whitespace()
            .nth(place)
            .unwrap()
            .parse()
            .unwrap()
    };
    let before: Vec<u64> = (1..=5).map(|n| forwarded(&format!("f{n}"))).collect();
    let ns = lab.space("a").unwrap().handle.ns();
    ping(ns, lab.topology.server.addresses.v4.into()).unwrap();
    for (number, before) in (1..=5).zip(before) {
        // The request and its answer.
        assert_eq!(forwarded(&format!("f{number}")) - before, 2, "f{number}");
    }
}

#[test]
fn a_chain_has_bounds_and_is_asked_for_by_name() {
    let _beside = beside();
    run(&["run", "--paths", "forward", "--set", "chain=9"])
        .exits(2)
        .says(&["`9` is out of bounds: chain goes from 1 to 8"]);
    run(&["run", "--paths", "veth", "--set", "chain=2"])
        .exits(2)
        .says(&["chain", "forward"]);
    run(&["list", "paths"]).exits(0).prints(&["forward"]);
}

#[test]
fn routed_half_with_one_endpoint_is_refused() {
    let _beside = beside();
    let set = [("flows", "8"), ("routed", "half")];
    for containers in [&[][..], &[("containers", "native")]] {
        let set = [&set[..], containers].concat();
        let cell = cell("forward-each", Peer::Far, LoadKind::UdpFlood, &set);
        let path = hopyard::lab::path("forward-each").unwrap();
        let refused = Lab::build(path, Peer::Far, &cell.axes).unwrap_err();
        let refused = hopyard::chain(&refused);
        assert!(refused.contains("set `containers=own`"), "{refused}");
    }
    let plan = [
        "run",
        "--paths",
        "forward-each",
        "--peer",
        "far",
        "--loads",
        "udp_flood",
    ];
    run(&[&plan[..], &["--set", "flows=8", "--set", "routed=half"]].concat())
        .exits(2)
        .says(&[
            "path `forward-each` has no cell with these values of its axes (containers, routed)",
        ]);
}

#[test]
fn containers_route_side_by_side_all_half_or_none_of_them() {
    let _beside = beside();
    unharmed(|| {
        for (routed, routers) in [
            ("all", vec!["r1", "r2", "r3"]),
            ("half", vec!["r1", "r3"]),
            ("none", vec![]),
        ] {
            for load in [
                LoadKind::UdpFlood,
                LoadKind::TcpStream,
                LoadKind::TcpMaerts,
                LoadKind::UdpRr,
            ] {
                let set = [("containers", "own"), ("flows", "3"), ("routed", routed)];
                let cell = cell("forward-each", Peer::Far, load, &set);
                let path = hopyard::lab::path("forward-each").unwrap();
                let lab = Lab::build(path, Peer::Far, &cell.axes).unwrap();
                let roles = lab.spaces().iter().map(|space| space.role);
                let found: Vec<_> = roles.filter(|role| role.starts_with('r')).collect();
                assert_eq!(found, routers);
                for (number, container) in (1..).zip(&lab.topology.containers) {
                    let own = format!("r{number}");
                    let hops = container.way.iter().filter(|hop| hop.namespace == own);
                    let is_routed = routers.contains(&&*own);
                    assert_eq!(hops.count(), if is_routed { 2 } else { 0 }, "{own}");
                }
                proved(&lab, &cell, 100).unwrap_or_else(|why| panic!("{routed} {load}: {why}"));
            }
        }
    });
}
