//! Axis `mptcp`: the kernel counts connections of Multipath TCP, and one that falls back is a failed sample.

use std::collections::HashMap;

use hopyard::lab::Lab;
use hopyard::model::{Cell, LoadKind, Measurement, Peer};
use hopyard_net::{NetNs, apply_ruleset};

use crate::axes::build;
use crate::support::{beside, cell, sampler, tell};

/// The `MPTcpExt` counters of a namespace (`/proc/net/netstat`).
fn counters(ns: &NetNs) -> HashMap<String, u64> {
    let text = ns.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat"));
    let text = text.unwrap().unwrap();
    let mut lines = text.lines().filter_map(|l| l.strip_prefix("MPTcpExt:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let values = values.split_whitespace().map(|v| v.parse().unwrap());
    names
        .split_whitespace()
        .map(str::to_owned)
        .zip(values)
        .collect()
}

/// A connection that loses segments may stand still for half a second (docs/requests.md): a window in which nothing came is
/// measured again.
fn measured(lab: &Lab, cell: &Cell) -> Measurement {
    const TRIES: usize = 20;
    for _ in 0..TRIES {
        match sampler(100, 20).measure_in(lab, cell, 0.0) {
            Ok(measured) => return measured,
            Err(error) => {
                let error = hopyard::chain(&error);
                tell(&format!("once more: {error}"));
                assert!(error.contains("got nothing in the whole window"), "{error}");
            }
        }
    }
    panic!("{cell}: nothing came in {TRIES} windows");
}

#[test]
fn connections_are_multipath_ones_and_only_where_they_are_asked_for() {
    let _beside = beside();
    for load in LoadKind::ALL.into_iter().filter(|load| load.is_tcp()) {
        for value in ["on", "off"] {
            let cell = cell("veth", Peer::Local, load, &[("mptcp", value)]);
            let lab = build(&cell).unwrap();
            let measured = measured(&lab, &cell);
            let client = counters(lab.space("a").unwrap().handle.ns());
            let server = counters(lab.space("b").unwrap().handle.ns());
            let (asked, taken) = (client["MPCapableSYNTX"], server["MPCapableACKRX"]);
            tell(&format!(
                "{load}, mptcp={value}: {asked} asked for, {taken} taken"
            ));
            if value == "off" {
                assert_eq!((asked, taken), (0, 0), "{load}");
                continue;
            }
            assert_eq!(client["MPCapableFallbackSYNACK"], 0, "{load}: {client:?}");
            let each = if load.connects_anew() {
                measured.received.transactions.max(1)
            } else {
                1
            };
            assert!(asked >= each && taken >= each, "{load}: {each} connections");
        }
    }
}

#[test]
fn a_connection_that_falls_back_is_no_sample() {
    let _beside = beside();
    let cell = cell("veth", Peer::Local, LoadKind::TcpRr, &[("mptcp", "on")]);
    let lab = build(&cell).unwrap();
    let server = lab.space("b").unwrap().handle.ns();
    let without = "table inet t {\n chain in {\n type filter hook prerouting priority raw;\n reset tcp option mptcp\n }\n}\n";
    apply_ruleset(server, without).unwrap();
    let error = sampler(100, 20).measure_in(&lab, &cell, 0.0).unwrap_err();
    let error = hopyard::chain(&error);
    assert!(error.contains("fell back to plain TCP"), "{error}");
    assert!(error.contains("net.mptcp.enabled=1"), "{error}");
}

#[test]
fn a_namespace_that_refuses_it_is_named() {
    let _beside = beside();
    let cell = cell("veth", Peer::Local, LoadKind::TcpStream, &[("mptcp", "on")]);
    let lab = build(&cell).unwrap();
    let server = &lab.space("b").unwrap().handle;
    server.set_sysctl("net/mptcp/enabled", "0").unwrap();
    let error = sampler(100, 20).measure_in(&lab, &cell, 0.0).unwrap_err();
    let error = hopyard::chain(&error);
    assert!(error.contains("no Multipath TCP"), "{error}");
}
