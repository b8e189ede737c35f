//! What changes while containers come and go: the container itself, its routes, the name of the uplink.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;

use hopyard_net::{LinkKind, NewLink, Route};
use hopyard_switch::Switch;
use serde_json::{Value, json};

use crate::host::{Host, conf, conf_with, detach_from_uplink, ip, on_host, with};

/// An IPAM plugin that does something in the container before it answers. The container is connected by then, as for DHCP.
fn ipam_that_does(what: &str) {
    let script = format!(
        "#!/bin/sh\n[ $CNI_COMMAND != ADD ] || nsenter --net=$CNI_NETNS {what} || exit 1\nexec /run/plugins/fake-ipam\n"
    );
    std::fs::write("/run/plugins/dhcp", script).unwrap();
    let mode = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions("/run/plugins/dhcp", mode).unwrap();
}

/// A process of a container that runs already may change the device as soon as it is there: the container is not to become who it
/// wants to be.
#[test]
fn a_container_does_not_choose_its_ethernet_address() {
    on_host(|host| {
        let router = host.wire.link("far0").unwrap().mac.unwrap();
        let router = hopyard_switch::Mac(router).to_string();
        ipam_that_does(&format!("ip link set eth0 address {router}"));
        let mut conf = conf_with("1.0.0", "front", "10.1.0.5/16");
        conf["ipam"]["type"] = "dhcp".into();
        for keys in [json!({}), json!({ "mac": "02:00:00:00:00:77" })] {
            let container = host.container("c1");
            let said = host.call("ADD", &with(&conf, keys), &container);
            said.fails(102, &["another Ethernet address meanwhile"]);
            host.is_clean();
        }
    });
}

#[test]
fn an_address_that_nobody_chose_is_local_and_the_ports_own() {
    on_host(|host| {
        let conf =
            json!({ "cniVersion": "1.0.0", "name": "front", "type": "hopyard", "master": "up0" });
        let macs = ["c1", "c2"].map(|id| {
            let result = host.call("ADD", &conf, &host.container(id)).works();
            let device = result["interfaces"][0]["name"].as_str().unwrap();
            let port = host.in_hub(|| Switch::open("cni-dev-up0").unwrap().port(device).unwrap());
            let mac = port.unwrap().unwrap().macs[0];
            assert_eq!(result["interfaces"][1]["mac"], mac.to_string());
            assert_eq!(mac.0[0] & 3, 2, "{mac}");
            mac
        });
        assert_ne!(macs[0], macs[1]);
        for id in ["c1", "c2"] {
            host.del_without_namespace(&conf, id).works();
        }
    });
}

/// A runtime gives a container several networks, each with a default route.
#[test]
fn a_second_default_route_is_made_beside_the_first() {
    on_host(|host| {
        let container = host.container("c1");
        let network = |name: &str, address: &str, gateway: &str| {
            let result = json!({ "ips": [with(&ip("1.0.0", address), json!({ "gateway": gateway }))],
                "routes": [{ "dst": if address.contains(':') { "::/0" } else { "0.0.0.0/0" } }] });
            conf("1.0.0", name, &result)
        };
        for (first, second) in [
            (("10.1.0.5/16", "10.1.0.1"), ("10.2.0.5/16", "10.2.0.1")),
            (("fd01::5/64", "fd01::1"), ("fd02::5/64", "fd02::1")),
        ] {
            let confs = [
                network("front", first.0, first.1),
                network("back", second.0, second.1),
            ];
            let mut results = Vec::new();
            for (conf, ifname) in confs.iter().zip(["eth0", "eth1"]) {
                results.push(host.call_as("ADD", conf, &container, ifname).works());
            }
            for (via, ifname) in [(first.1, "eth0"), (second.1, "eth1")] {
                let device = container.inside.index(ifname).unwrap();
                let via: IpAddr = via.parse().unwrap();
                let any = if via.is_ipv4() {
                    [0; 4].into()
                } else {
                    [0; 16].into()
                };
                let route = Route::new(any, 0, Some(via), device);
                assert!(
                    container.inside.has_route(&route).unwrap(),
                    "{via} dev {ifname}"
                );
                let elsewhere = Route::new(any, 0, Some(via), device + 7);
                assert!(!container.inside.has_route(&elsewhere).unwrap());
            }
            for ((conf, result), ifname) in confs.iter().zip(&results).zip(["eth0", "eth1"]) {
                let conf = with(conf, json!({ "prevResult": result }));
                host.call_as("CHECK", &conf, &container, ifname).works();
                host.call_as("DEL", &conf, &container, ifname).works();
            }
            host.is_clean();
        }
    });
}

/// Where IPv6 is off by default it is on for a container that gets an address of it, held to that or not.
#[test]
fn ipv6_is_on_for_who_has_an_address() {
    on_host(|host| {
        for may_spoof in [false, true] {
            let container = host.container("c1");
            let off = "net/ipv6/conf/default/disable_ipv6";
            container.inside.set_sysctl(off, "1").unwrap();
            let conf = conf_with("1.0.0", "front", "fd01::5/64");
            let conf = with(&conf, json!({ "macspoofchk": !may_spoof }));
            host.call("ADD", &conf, &container).works();
            assert!(container.reaches(&host.wire, "fd01::1"));
            host.call("DEL", &conf, &container).works();
        }
        host.is_clean();
    });
}

fn rename(host: &Host, from: &str, to: &str) {
    let script =
        format!("ip link set {from} down && ip link set {from} name {to} && ip link set {to} up");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]);
    host.hub.ns().adopt(&mut shell).unwrap();
    assert!(crate::host::output(&mut shell).unwrap().status.success());
}

/// A VLAN device goes and comes with its network manager. The next ADD has the switch find it again, for the containers that there are too.
#[test]
fn an_uplink_that_was_made_again_is_found_again() {
    on_host(|host| {
        let conf_of = |address: &str| conf_with("1.1.0", "front", address);
        let (conf, one) = (conf_of("10.1.0.5/16"), host.container("c1"));
        host.call("ADD", &conf, &one).works();
        assert!(one.reaches(&host.wire, "10.1.0.1"));
        let router = host.wire.link("far0").unwrap().mac.unwrap();
        host.hub.delete_link("up0").unwrap();
        host.call_network("STATUS", &conf).fails(51, &["up0"]);
        let kind = LinkKind::veth("far0", Some(host.wire.ns()));
        let again = NewLink {
            up: true,
            ..NewLink::new("up0", kind)
        };
        host.hub.add_link(&again).unwrap();
        // The container knows its router by that.
        host.wire.set_mac("far0", router).unwrap();
        host.wire.set_up("far0").unwrap();
        let wire = "10.1.0.1".parse().unwrap();
        host.wire.add_address("far0", wire, 16).unwrap();
        one.does_not_reach(&host.wire, "10.1.0.1");
        host.call_network("STATUS", &conf).works();
        let (new, other) = (conf_of("10.1.0.6/16"), host.container("c2"));
        host.call("ADD", &new, &other).works();
        for container in [&one, &other] {
            assert!(
                container.reaches(&host.wire, "10.1.0.1"),
                "{}",
                container.id
            );
        }
        for (conf, container) in [(&conf, &one), (&new, &other)] {
            host.call("DEL", conf, container).works();
        }
        host.is_clean();
    });
}

/// Containers reach the host by the address that the switch knows of it.
#[test]
fn an_uplink_with_another_address_is_found_again() {
    on_host(|host| {
        let conf_of = |address: &str| conf_with("1.1.0", "front", address);
        let (conf, one) = (conf_of("10.1.0.5/16"), host.container("c1"));
        host.call("ADD", &conf, &one).works();
        assert!(one.reaches(&host.hub, "10.1.0.2"));
        host.hub.set_mac("up0", [2, 0, 0, 0, 0, 0x77]).unwrap();
        let (new, other) = (conf_of("10.1.0.6/16"), host.container("c2"));
        host.call("ADD", &new, &other).works();
        assert!(other.reaches(&host.hub, "10.1.0.2"));
        for (conf, container) in [(&conf, &one), (&new, &other)] {
            host.call("DEL", conf, container).works();
        }
        host.is_clean();
    });
}

/// Somebody removed their files, or another program took its hook.
#[test]
fn an_uplink_that_lost_its_programs_gets_them_again() {
    on_host(|host| {
        let conf_of = |address: &str| conf_with("1.1.0", "front", address);
        let (conf, one) = (conf_of("10.1.0.5/16"), host.container("c1"));
        host.call("ADD", &conf, &one).works();
        assert!(one.reaches(&host.wire, "10.1.0.1"));
        detach_from_uplink(host, "cni-dev-up0");
        one.does_not_reach(&host.wire, "10.1.0.1");
        let (new, other) = (conf_of("10.1.0.6/16"), host.container("c2"));
        host.call("ADD", &new, &other).works();
        for container in [&one, &other] {
            assert!(container.reaches(&host.wire, "10.1.0.1"));
        }
        for (conf, container) in [(&conf, &one), (&new, &other)] {
            host.call("DEL", conf, container).works();
        }
        host.is_clean();
    });
}

#[test]
fn an_uplink_may_be_named_by_another_name_of_its_own() {
    on_host(|host| {
        host.runs(
            "ip",
            &["link", "property", "add", "dev", "up0", "altname", "wan"],
        );
        let conf_of = |address: &str| {
            let conf = conf_with("1.1.0", "front", address);
            with(&conf, json!({ "master": "wan" }))
        };
        let (conf, one) = (conf_of("10.1.0.5/16"), host.container("c1"));
        host.call("ADD", &conf, &one).works();
        assert!(one.reaches(&host.hub, "10.1.0.2"));
        host.hub.set_mac("up0", [2, 0, 0, 0, 0, 0x77]).unwrap();
        host.call_network("STATUS", &conf).works();
        let (new, other) = (conf_of("10.1.0.6/16"), host.container("c2"));
        host.call("ADD", &new, &other).works();
        assert!(other.reaches(&host.hub, "10.1.0.2"));
        for (conf, container) in [(&conf, &one), (&new, &other)] {
            host.call("DEL", conf, container).works();
        }
        host.is_clean();
    });
}

#[test]
fn an_uplink_that_was_renamed_keeps_its_switch() {
    on_host(|host| {
        let old = conf_with("1.1.0", "front", "10.1.0.5/16");
        let one = host.container("c1");
        host.call("ADD", &old, &one).works();
        rename(host, "up0", "wan0");
        let new: Value = with(
            &conf_with("1.1.0", "front", "10.1.0.6/16"),
            json!({ "master": "wan0" }),
        );
        host.call_network("STATUS", &new).works();
        let other = host.container("c2");
        let result = host.call("ADD", &new, &other).works();
        assert_eq!(host.switches(), ["cni-dev-up0"]);
        assert!(other.reaches(&one.inside, "10.1.0.5"));
        assert!(other.reaches(&host.wire, "10.1.0.1"));
        let previous = with(&new, json!({ "prevResult": result }));
        host.call("CHECK", &previous, &other).works();
        for (conf, container) in [(&old, &one), (&new, &other)] {
            host.call("DEL", conf, container).works();
        }
        host.is_clean();
        // Nobody had it under the old name by then.
        host.call("ADD", &new, &other).works();
        assert_eq!(host.switches(), ["cni-dev-wan0"]);
        host.call("DEL", &new, &other).works();
        host.is_clean();
    });
}
