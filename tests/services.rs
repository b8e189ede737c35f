//! NAT, services and flow tables: what proves these paths, and what refutes them.

use std::fs::File;
use std::process::Command;
use std::time::Instant;

use hopyard::lab::{Lab, role};
use hopyard::model::{LoadKind, Measurement, Peer, Treatment};
use hopyard_net::apply_ruleset;
use nix::fcntl::{Flock, FlockArg};

use crate::support::cli::{Running, hopyard, run};
use crate::support::plan::{Room, write_program};
use crate::support::walk::those_here;
use crate::support::{beside, cell, proved, sampler, skip, tell};

const SERVICES: [&str; 2] = ["service-nft", "service-iptables"];

/// A lab of a path that can be built here.
fn built(path: &str, load: LoadKind, set: &[(&str, &str)]) -> Lab {
    let axes = cell(path, Peer::Local, load, set).axes;
    Lab::build(hopyard::lab::path(path).unwrap(), Peer::Local, &axes).unwrap()
}

/// A lab of `bridge-nat`; none where the machine lacks that.
fn nat(load: LoadKind, set: &[(&str, &str)]) -> Option<Lab> {
    let here = those_here(&["bridge-nat"]);
    here.first().map(|path| built(path, load, set))
}

fn measured(load: LoadKind, set: &[(&str, &str)]) -> Option<Measurement> {
    let lab = nat(load, set)?;
    let cell = cell("bridge-nat", Peer::Local, load, set);
    Some(proved(&lab, &cell, 150).unwrap())
}

#[test]
fn a_client_behind_nat_shows_the_hubs_address() {
    let _beside = beside();
    for family in ["4", "6"] {
        let set = [("family", family), ("flows", "3")];
        let Some(measured) = measured(LoadKind::TcpRr, &set) else {
            return;
        };
        let connections = measured.connections.unwrap();
        assert_eq!(connections.expected, Treatment::SourceTranslated);
        assert_eq!((connections.tracked, connections.as_expected), (3, 3));
        assert_eq!(measured.tracking.unwrap().entries, 3, "{connections:?}");
    }
}

#[test]
fn without_its_rule_nat_is_refuted() {
    let _beside = beside();
    let load = LoadKind::UdpRr;
    let Some(lab) = nat(load, &[]) else {
        return;
    };
    let hub = lab.space(role::HUB).unwrap().handle.ns();
    // Connections are still tracked, and carry as before.
    let tracked = "flush ruleset\ntable inet t {\nchain c {\ntype filter hook forward priority 0\nct state new accept\n}\n}\n";
    apply_ruleset(hub, tracked).unwrap();
    let cell = cell("bridge-nat", Peer::Local, load, &[]);
    let measured = sampler(100, 20).measure_in(&lab, &cell, 0.0).unwrap();
    assert!(measured.received.transactions > 0);
    // The load's connection, and those that first exchanges open.
    let [problem] = &measured.way.problems[..] else {
        panic!("{:?}", measured.way.problems);
    };
    let words = "connections to 198.18.32.2, and of 0 it says that each has its source address translated, \
                 where the traffic has 1 or more";
    assert!(
        problem.starts_with("hub tracks ") && problem.ends_with(words),
        "{problem}"
    );
    assert!(!measured.way.proved);
}

#[test]
fn a_service_leads_to_the_server_whichever_load_asks() {
    let _beside = beside();
    for path in those_here(&SERVICES) {
        for family in ["4", "6"] {
            let set = [("family", family), ("services", "20"), ("flows", "2")];
            let lab = built(path, LoadKind::TcpRr, &set);
            // One lab, in which the ports of the service are exchanged.
            for load in [
                LoadKind::TcpRr,
                LoadKind::UdpRr,
                LoadKind::TcpStream,
                LoadKind::TcpCrr,
                // Both flows have one socket, and so one port, which changes with the second window.
                LoadKind::UdpFlood,
                LoadKind::UdpFlood,
            ] {
                let cell = cell(path, Peer::Local, load, &set);
                let measured =
                    proved(&lab, &cell, 100).unwrap_or_else(|why| panic!("{path} {load}: {why}"));
                let connections = measured.connections.unwrap();
                assert_eq!(connections.expected, Treatment::DestinationTranslated);
                assert!(connections.as_expected >= 2, "{connections:?}");
                let address = if family == "4" {
                    "198.19.128.20"
                } else {
                    "2001:2:0:ffff::14"
                };
                assert_eq!(connections.to, address);
            }
        }
    }
}

/// Somebody before the hub leads the client to the server, and the hub never sees the service.
#[test]
fn a_service_that_the_hub_does_not_see_is_refuted() {
    let _beside = beside();
    for path in those_here(&SERVICES) {
        let load = LoadKind::TcpRr;
        let lab = built(path, load, &[]);
        let client = lab.space(role::A).unwrap().handle.ns();
        let server = lab.topology.server.addresses.v4;
        let early = format!(
            "table ip t {{\nchain c {{\ntype nat hook output priority -100\nip daddr 198.19.128.0/17 dnat to {server}\n}}\n}}\n"
        );
        apply_ruleset(client, &early).unwrap();
        let cell = cell(path, Peer::Local, load, &[]);
        let measured = sampler(100, 20).measure_in(&lab, &cell, 0.0).unwrap();
        assert!(measured.received.transactions > 0, "{path}");
        let problems = measured.way.problems.join("\n");
        assert!(
            problems.starts_with("hub tracks 0 connections to 198.19.128.1,"),
            "{path}: {problems}"
        );
    }
}

#[test]
fn of_thousands_of_services_the_last_is_used() {
    let _beside = beside();
    for path in those_here(&SERVICES) {
        let began = Instant::now();
        let set = [("services", "3000")];
        let lab = built(path, LoadKind::TcpCrr, &set);
        let took = began.elapsed();
        let cell = cell(path, Peer::Local, LoadKind::TcpCrr, &set);
        let measured = proved(&lab, &cell, 300).unwrap();
        let connections = measured.connections.unwrap();
        assert_eq!(connections.to, "198.19.139.184");
        tell(&format!(
            "{path}: 3,000 services in {took:?}, {} connections",
            connections.tracked
        ));
        if path == "service-iptables" {
            let hub = lab.space(role::HUB).unwrap().handle.ns();
            let listed = hub.run(|| {
                let mut save = Command::new("iptables-save");
                save.args(["-t", "nat"])
                    .output()
                    .expect("iptables is installed")
            });
            let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
            let rules: Vec<_> = listed
                .lines()
                .filter(|line| line.starts_with("-A KUBE-SERVICES "))
                .collect();
            assert_eq!(rules.len(), 3_001);
            assert!(
                rules[2_999].contains("-d 198.19.139.184/32 "),
                "{}",
                rules[2_999]
            );
        }
    }
}

#[test]
fn connections_that_are_there_already_are_in_the_table() {
    let _beside = beside();
    for family in ["4", "6"] {
        let set = [("family", family), ("conntrack", "70000")];
        let Some(measured) = measured(LoadKind::TcpRr, &set) else {
            return;
        };
        let (tracking, connections) = (measured.tracking.unwrap(), measured.connections.unwrap());
        assert_eq!(tracking.entries, 70_001);
        assert_eq!((connections.tracked, connections.as_expected), (1, 1));
        assert!(!tracking.has_losses(), "{tracking:?}");
    }
}

/// The most that this kernel tracks, for all namespaces alike.
fn limit() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_max").ok()?;
    text.trim().parse().ok()
}

/// Anybody may lock a file that anybody may open.
#[test]
fn iptables_rules_load_while_dev_null_is_locked() {
    let _beside = beside();
    if those_here(&["service-iptables"]).is_empty() {
        return;
    }
    let open = File::open("/dev/null").unwrap();
    let _held = Flock::lock(open, FlockArg::LockExclusiveNonblock).unwrap();
    let bin = tempfile::tempdir().unwrap();
    // As the programs do that work on the old tables.
    let script = "#!/bin/sh\nflock --nonblock \"$XTABLES_LOCKFILE\" true || exit 4\nexec \"/usr/sbin/${0##*/}\" \"$@\"\n";
    for program in ["iptables-restore", "ip6tables-restore"] {
        write_program(bin.path().join(program), script);
    }
    let room = Room::new();
    let out = room.name("run");
    let plan = [
        "run",
        "--paths",
        "service-iptables",
        "--loads",
        "tcp_rr",
        "--out",
        &out,
    ];
    let how = ["--blocks", "1", "--window", "50ms", "--turns", "off"];
    let mut command = hopyard(&[&plan[..], &how].concat());
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", bin.path().display()));
    Running::start(command).wait().exits(0);
}

#[test]
fn a_full_table_is_named_as_the_cause() {
    let _beside = beside();
    let Some(limit) = limit().filter(|limit| *limit <= 2_000_000) else {
        skip(
            "a full table of connections",
            false,
            "this kernel tracks too many to fill it",
        );
        return;
    };
    let value = limit.to_string();
    let set = [("conntrack", &*value)];
    let Some(lab) = nat(LoadKind::TcpCrr, &set) else {
        return;
    };
    let cell = cell("bridge-nat", Peer::Local, LoadKind::TcpCrr, &set);
    let error = sampler(100, 20).measure_in(&lab, &cell, 0.0).unwrap_err();
    let text = hopyard::chain(&error);
    let starts = format!("the hub's table of connections is full ({limit} of {limit} entries, ");
    assert!(text.starts_with(&starts), "{text}");
    assert!(
        text.contains("raise net.netfilter.nf_conntrack_max"),
        "{text}"
    );
}

#[test]
fn what_services_take_is_said_and_more_is_refused() {
    let _beside = beside();
    for (set, said) in [
        ("services=0", "from 1 to 30000"),
        ("services=30001", "from 1 to 30000"),
        ("conntrack=3000000", "from 0 to 2000000"),
    ] {
        let said_all = run(&["run", "--paths", "service-nft", "--set", set]);
        said_all.exits(2).says(&[said]);
    }
    run(&["run", "--paths", "bridge", "--set", "services=5"])
        .exits(2)
        .says(&[
            "axis `services` does nothing for bridge",
            "service-nft, service-iptables",
        ]);
}
