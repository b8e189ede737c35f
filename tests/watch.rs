//! The watchers themselves: what they are to see, they see.

use std::process::Command;

use hopyard::lab::Lab;
use hopyard::model::{Axes, Peer};
use hopyard_net::{Cgroup, NetNs};

use crate::support::host::{HostState, mounts_cgroup2};
use crate::support::traces::Traces;
use crate::support::{apart, beside, schema};

fn sh(script: &str) {
    let status = Command::new("sh").args(["-c", script]).status().unwrap();
    assert!(status.success(), "{script}");
}

#[test]
fn every_change_of_a_hosts_network_is_seen() {
    let _beside = beside();
    // A namespace plays the host, so that the real one stays as it is.
    for change in [
        "ip link add x0 type veth peer name x1",
        "ip link set lo up",
        "ip link add br0 type bridge",
        "ip address add 192.0.2.1/32 dev lo",
        "ip -6 address add 2001:db8::1/128 dev lo",
        "ip link set lo up && ip route add 192.0.2.0/24 dev lo",
        "ip rule add from 192.0.2.1 table 7",
        "ip -6 rule add from 2001:db8::1 table 7",
        "tc qdisc add dev lo root pfifo",
        "nft add table inet x",
        "echo 1 > /proc/sys/net/ipv4/ip_forward",
        "echo 2 > /proc/sys/net/ipv4/conf/lo/rp_filter",
    ] {
        let ns = NetNs::create().unwrap();
        ns.run(|| {
            let before = HostState::now();
            assert_eq!(before, HostState::now(), "it is the same twice");
            sh(change);
            assert_ne!(before, HostState::now(), "`{change}` went unseen");
        })
        .unwrap();
    }
}

#[test]
fn whatever_a_lab_holds_is_seen_until_it_goes() {
    apart(|| {
        let before = Traces::now();
        let path = hopyard::lab::path("veth").unwrap();
        let lab = Lab::build(path, Peer::Local, &Axes::default()).unwrap();
        assert_ne!(before, Traces::now(), "a lab goes unseen");
        drop(lab);
        before.unchanged().unwrap();
        let ns = NetNs::create().unwrap();
        assert_ne!(before, Traces::now(), "a namespace goes unseen");
        drop(ns);
        let mut child = Command::new("sleep").arg("50").spawn().unwrap();
        assert_ne!(before, Traces::now(), "a process goes unseen");
        child.kill().unwrap();
        assert_ne!(
            before,
            Traces::now(),
            "a process that nobody waited for goes unseen"
        );
        child.wait().unwrap();
        if mounts_cgroup2() {
            let group = Cgroup::create(&format!("{}.0.0", std::process::id())).unwrap();
            assert_ne!(before, Traces::now(), "a control group goes unseen");
            group.remove().unwrap();
        }
        before.unchanged().unwrap();
    });
}

#[test]
fn a_document_that_breaks_its_schema_is_seen() {
    let _beside = beside();
    let schema: serde_json::Value = crate::support::cli::run(&["schema"]).exits(0).json();
    for document in [
        serde_json::json!({}),
        serde_json::json!({"schema": "hopyard/run/1", "run": {}, "cells": [], "warnings": []}),
        serde_json::json!([]),
    ] {
        let outcome = std::panic::catch_unwind(|| schema::check(&schema, &document));
        assert!(outcome.is_err(), "{document} passed");
    }
}
