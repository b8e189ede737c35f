//! What paths say of themselves by `learning`: a further Ethernet address behind an endpoint is found, or is not.

use std::net::Ipv4Addr;
use std::process::{Command, Output};
use std::time::Duration;

use hopyard::lab::{Lab, role};
use hopyard::model::{Feature, LoadKind, Peer};
use hopyard_net::NetNs;

use crate::support::icmp::ping_within;
use crate::support::walk::{Visit, walk};
use crate::support::{beside, cell, tell};

fn inside(ns: &NetNs, command: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    ns.adopt(&mut shell).unwrap();
    shell.output().unwrap()
}

fn succeeds(ns: &NetNs, command: &str) {
    let said = inside(ns, command);
    assert!(said.status.success(), "{command}: {said:?}");
}

fn text(said: Output) -> String {
    String::from_utf8(said.stdout).unwrap()
}

/// Does the server answer somebody behind a bridge inside endpoint `a`? `None` where the device of `a` can be no port of a bridge.
fn is_found(lab: &Lab) -> Option<bool> {
    let endpoint = lab.space(role::A).unwrap().handle.ns();
    let own = lab.topology.client.addresses.v4;
    let server = lab.topology.server.addresses.v4;
    let told = text(inside(endpoint, &format!("ip -o -4 addr | grep {own}/")));
    let words: Vec<&str> = told.split_whitespace().collect();
    let (device, prefix) = (words[1], words[3].split_once('/').unwrap().1);
    // Of the same network, and nobody's.
    let [a, b, c, _] = own.octets();
    let address = Ipv4Addr::new(a, b, c, 77);
    let nested = NetNs::create().unwrap();
    let there = nested.proc_path();
    succeeds(
        endpoint,
        "ip link add inner type bridge && ip link set inner up",
    );
    let joined = inside(endpoint, &format!("ip link set {device} master inner"));
    if !joined.status.success() {
        // Devices without Ethernet addresses, and macvlan and its kin, by the words of net/bridge/br_if.c.
        let why = String::from_utf8(joined.stderr).unwrap();
        let is_no_port = ["does not allow enslaving to a bridge", "Invalid argument"];
        assert!(
            is_no_port.iter().any(|words| why.contains(words)),
            "{device}: {why}"
        );
        return None;
    }
    let port = format!(
        "ip link add port type veth peer name nested netns {} && ip link set port master inner up",
        there.display()
    );
    succeeds(endpoint, &port);
    let up = format!("ip addr add {address}/{prefix} dev nested && ip link set nested up");
    succeeds(&nested, &up);
    let route = text(inside(endpoint, "ip -4 route show default"));
    if let Some(via) = route
        .split_whitespace()
        .skip_while(|word| *word != "via")
        .nth(1)
    {
        succeeds(&nested, &format!("ip route add default via {via}"));
    }
    Some(ping_within(&nested, server.into(), Duration::from_millis(1500)).is_ok())
}

#[test]
fn a_path_that_learns_finds_what_nobody_told_it_of() {
    let _beside = beside();
    walk("further addresses behind an endpoint", |path, peer| {
        if peer != Peer::Local || path.name == "native" {
            return Ok(Visit::PassedOver);
        }
        let cell = cell(path.name, peer, LoadKind::TcpRr, &[]);
        let lab = Lab::build(path, peer, &cell.axes).map_err(|e| hopyard::chain(&e))?;
        let learns = path.offers(peer, &cell.axes).contains(&Feature::Learning);
        let found = is_found(&lab);
        tell(&format!("{}: learns {learns}, found {found:?}", path.name));
        (learns == found.unwrap_or(false))
            .then_some(Visit::Checked)
            .ok_or(format!("{}: says {learns}, and it is {found:?}", path.name))
    });
}
