//! What containers are kept from: spoofing, each other, other VLANs.

use std::net::IpAddr;

use hopyard_switch::Switch;
use serde_json::{Value, json};

use crate::host::{Container, Host, conf, conf_with, on_host, with};

fn pair(host: &Host, keys: [Value; 2]) -> ([Value; 2], [Container; 2]) {
    let [first, second] = keys;
    let confs = [("10.1.0.5/16", first), ("10.1.0.6/16", second)]
        .map(|(ip, keys)| with(&conf_with("1.0.0", "front", ip), keys));
    let containers = ["a", "b"].map(|id| host.container(id));
    for (conf, container) in confs.iter().zip(&containers) {
        host.call("ADD", conf, container).works();
    }
    (confs, containers)
}

/// Drops of the only port, by reason.
fn drops(host: &Host, device: &str) -> Vec<(&'static str, u64)> {
    let stats = host.in_hub(|| {
        let switch = Switch::open("cni-dev-up0").unwrap();
        switch.stats().unwrap()
    });
    let stats = stats.unwrap();
    let port = stats.iter().find(|party| party.party == device).unwrap();
    port.counters.dropped().collect()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn a_container_sends_from_the_addresses_alone_that_ipam_gave() {
    on_host(|host| {
        let addresses =
            json!({ "ips": [{ "address": "10.1.0.5/16" }, { "address": "fd01::5/64" }] });
        let conf = conf("1.0.0", "front", &addresses);
        let container = host.container("c1");
        host.call("ADD", &conf, &container).works();
        let device = &host.devices()[0];
        for (own, stolen, wire) in [
            ("10.1.0.5", "10.1.0.99", "10.1.0.1"),
            ("fd01::5", "fd01::99", "fd01::1"),
        ] {
            assert!(container.reaches(&host.wire, wire), "{own}");
            let prefix = if own.contains(':') { 64 } else { 16 };
            container
                .inside
                .add_address("eth0", ip(stolen), prefix)
                .unwrap();
            assert!(!container.reaches_from(stolen, &host.wire, wire, true));
            assert!(container.reaches_from(own, &host.wire, wire, false));
        }
        let reasons: Vec<&str> = drops(host, device)
            .iter()
            .map(|(reason, _)| *reason)
            .collect();
        assert!(
            reasons.contains(&"arp") || reasons.contains(&"ip"),
            "{reasons:?}"
        );
        // Another Ethernet address.
        container
            .inside
            .set_mac("eth0", [2, 0, 0, 0, 0, 0x99])
            .unwrap();
        container.does_not_reach(&host.wire, "10.1.0.1");
        assert!(
            drops(host, device)
                .iter()
                .any(|(reason, _)| *reason == "mac")
        );
        host.call("DEL", &conf, &container).works();
        host.is_clean();
    });
}

#[test]
fn without_macspoofchk_a_container_sends_from_what_it_likes() {
    on_host(|host| {
        let conf = with(
            &conf_with("1.0.0", "front", "10.1.0.5/16"),
            json!({ "macspoofchk": false }),
        );
        let container = host.container("c1");
        host.call("ADD", &conf, &container).works();
        container
            .inside
            .add_address("eth0", ip("10.1.0.99"), 16)
            .unwrap();
        assert!(container.reaches_from("10.1.0.99", &host.wire, "10.1.0.1", false));
        host.call("DEL", &conf, &container).works();
    });
}

#[test]
fn isolated_containers_reach_host_and_wire_and_no_other() {
    on_host(|host| {
        let isolated = json!({ "portIsolation": true });
        let (confs, [a, b]) = pair(host, [isolated, json!({})]);
        a.does_not_reach(&b.inside, "10.1.0.6");
        b.does_not_reach(&a.inside, "10.1.0.5");
        for container in [&a, &b] {
            assert!(container.reaches(&host.wire, "10.1.0.1"));
            assert!(container.reaches(&host.hub, "10.1.0.2"));
        }
        host.call("DEL", &confs[0], &a).works();
        host.call("DEL", &confs[1], &b).works();
        host.is_clean();
    });
}

#[test]
fn vlans_are_apart_and_share_the_uplink() {
    on_host(|host| {
        let (confs, [a, b]) = pair(host, [json!({ "vlan": 100 }), json!({ "name": "back" })]);
        assert_eq!(host.switches(), ["cni-dev-up0"]);
        a.does_not_reach(&b.inside, "10.1.0.6");
        a.does_not_reach(&host.wire, "10.1.0.1");
        assert!(b.reaches(&host.wire, "10.1.0.1"));
        let port = host.in_hub(|| {
            let switch = Switch::open("cni-dev-up0").unwrap();
            let vlans = host
                .devices()
                .into_iter()
                .map(|d| switch.port(&d).unwrap().unwrap().vlan);
            vlans.collect::<Vec<_>>()
        });
        let mut vlans = port.unwrap();
        vlans.sort_unstable();
        assert_eq!(vlans, [None, Some(100)]);
        host.call("DEL", &confs[0], &a).works();
        host.call("DEL", &confs[1], &b).works();
        host.is_clean();
    });
}

#[test]
fn an_address_is_given_once_whoever_asks() {
    on_host(|host| {
        let (confs, [a, b]) = pair(host, [json!({}), json!({})]);
        // The same address in another network on the same device.
        let conf = conf_with("1.0.0", "back", "10.1.0.5/16");
        let said = host.call("ADD", &conf, &host.container("c"));
        said.fails(100, &["10.1.0.5 is taken by port"]);
        let conf = conf_with("1.0.0", "back", "10.1.0.2/16");
        let said = host.call("ADD", &conf, &host.container("c"));
        said.fails(100, &["10.1.0.2 is the host's own address"]);
        assert_eq!(host.devices().len(), 2);
        host.call("DEL", &confs[0], &a).works();
        host.call("DEL", &confs[1], &b).works();
        host.is_clean();
    });
}

/// Isolation is of frames: a host that forwards brings packets of one container to another, until the documented rule forbids it.
#[test]
fn a_host_that_forwards_brings_isolated_containers_together_unless_a_rule_forbids_it() {
    on_host(|host| {
        let isolated = json!({ "portIsolation": true });
        let (confs, [a, b]) = pair(host, [isolated.clone(), isolated]);
        for (container, other) in [(&a, "10.1.0.6"), (&b, "10.1.0.5")] {
            let by_the_host = Some(ip("10.1.0.2"));
            let to = Some((ip(other), 32));
            container.inside.add_route(to, by_the_host, None).unwrap();
        }
        a.does_not_reach(&b.inside, "10.1.0.6");
        let warned = || {
            let shown = host.in_hub(|| Switch::open("cni-dev-up0").unwrap().show().unwrap());
            let warnings = shown.unwrap().warnings;
            warnings
                .iter()
                .any(|text| text.contains("isolated ports may reach other ports"))
        };
        assert!(!warned());
        host.hub.set_sysctl("net/ipv4/ip_forward", "1").unwrap();
        assert!(warned());
        assert!(a.reaches(&b.inside, "10.1.0.6"));
        let mut nft = std::process::Command::new("nft");
        nft.arg(
            "table inet apart {\nchain forward {\ntype filter hook forward priority 0\niif up0 oif up0 drop\n}\n}",
        );
        host.hub.ns().adopt(&mut nft).unwrap();
        let said = crate::host::output(&mut nft).unwrap();
        assert!(said.status.success(), "{said:?}");
        a.does_not_reach(&b.inside, "10.1.0.6");
        assert!(a.reaches(&host.hub, "10.1.0.2") && a.reaches(&host.wire, "10.1.0.1"));
        for (conf, container) in confs.iter().zip([&a, &b]) {
            host.call("DEL", conf, container).works();
        }
        host.is_clean();
    });
}
