//! ADD, CHECK and DEL that work.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::host::{Container, Host, conf, conf_with, files, has_netkit, ip, on_host, output, with};
use crate::skip::skip;

const VERSIONS: [&str; 3] = ["0.4.0", "1.0.0", "1.1.0"];

fn inside(container: &Container, words: &[&str]) -> String {
    let mut command = Command::new("ip");
    command.args(words);
    container.inside.ns().adopt(&mut command).unwrap();
    String::from_utf8(output(&mut command).unwrap().stdout).unwrap()
}

/// ADD, with everything that there has to be afterwards; gives the result.
#[track_caller]
fn add(host: &Host, conf: &Value, container: &Container) -> Value {
    let result = host.call("ADD", conf, container).works();
    assert_eq!(result["cniVersion"], conf["cniVersion"]);
    let interfaces = result["interfaces"].as_array().unwrap();
    assert_eq!(interfaces.len(), 2, "{result:#}");
    let device = interfaces[0]["name"].as_str().unwrap();
    let link = host.hub.link(device).unwrap();
    assert!(link.up && link.carrier);
    assert_eq!(interfaces[0]["sandbox"], Value::Null);
    let eth0 = container.inside.link("eth0").unwrap();
    assert!(eth0.up);
    let mac = eth0.mac.map(|mac| hopyard_switch::Mac(mac).to_string());
    assert_eq!(interfaces[1]["name"], "eth0");
    assert_eq!(interfaces[1]["mac"].as_str(), mac.as_deref());
    let sandbox = container.inside.ns().proc_path();
    assert_eq!(interfaces[1]["sandbox"].as_str(), sandbox.to_str());
    let has_mtu = conf["cniVersion"] == "1.1.0";
    assert_eq!(
        interfaces[1]["mtu"].as_u64(),
        has_mtu.then_some(eth0.mtu.into())
    );
    result
}

#[test]
fn every_version_adds_checks_and_deletes_with_each_kind_of_addresses() {
    on_host(|host| {
        let mut number = 0;
        for version in VERSIONS {
            for (addresses, gateways, routes) in [
                (
                    &["10.1.0.5/16"] as &[_],
                    &["10.1.0.1"] as &[_],
                    &["0.0.0.0/0"] as &[_],
                ),
                (&["fd01::5/64"], &["fd01::1"], &["::/0"]),
                (
                    &["10.1.0.5/16", "fd01::5/64"],
                    &["10.1.0.1", "fd01::1"],
                    &["0.0.0.0/0", "::/0", "10.9.0.0/16"],
                ),
            ] {
                number += 1;
                let ips: Vec<Value> = addresses
                    .iter()
                    .zip(gateways)
                    .map(|(address, gateway)| {
                        let mut ip = ip(version, address);
                        ip["gateway"] = (*gateway).into();
                        ip
                    })
                    .collect();
                let routes: Vec<Value> = routes.iter().map(|dst| json!({ "dst": dst })).collect();
                let dns = json!({ "nameservers": ["10.1.0.1"] });
                let result = json!({ "ips": ips, "routes": routes, "dns": dns });
                let conf = conf(version, "front", &result);
                let container = host.container(&format!("c{number}"));
                let added = add(host, &conf, &container);
                assert_eq!(added["dns"], dns);
                assert_eq!(added["routes"], json!(routes));
                for (ip, address) in added["ips"].as_array().unwrap().iter().zip(addresses) {
                    assert_eq!(ip["address"], *address);
                    assert_eq!(ip["interface"], 1);
                    let is_old = version == "0.4.0";
                    assert_eq!(ip["version"] != Value::Null, is_old, "{ip}");
                }
                for (address, gateway) in addresses.iter().zip(gateways) {
                    let own = address.split('/').next().unwrap();
                    // The wire and the host are reached.
                    assert!(container.reaches(&host.wire, gateway), "{version} {own}");
                    if !own.contains(':') {
                        assert!(container.reaches(&host.hub, "10.1.0.2"), "{version} {own}");
                    }
                }
                let previous = with(&conf, json!({ "prevResult": added }));
                host.call("CHECK", &previous, &container).works();
                host.call("DEL", &previous, &container).works();
                assert!(container.inside.link("eth0").is_err());
                host.is_clean();
            }
        }
    });
}

#[test]
fn containers_reach_each_other_and_a_network_is_gone_with_its_last_one() {
    on_host(|host| {
        let confs = ["10.1.0.5/16", "10.1.0.6/16"].map(|ip| conf_with("1.1.0", "front", ip));
        let containers = ["a", "b"].map(|id| host.container(id));
        for (conf, container) in confs.iter().zip(&containers) {
            add(host, conf, container);
        }
        assert!(containers[0].reaches(&containers[1].inside, "10.1.0.6"));
        assert_eq!(host.switches(), ["cni-dev-up0"]);
        // Who has the other's address was answered by the switch, and asked of nobody else.
        let stats = host.in_hub(|| hopyard_switch::Switch::open("cni-dev-up0").unwrap().stats());
        let stats = stats.unwrap().unwrap();
        assert!(
            stats.iter().any(|party| party.counters.answered > 0),
            "{stats:?}"
        );
        host.call("DEL", &confs[0], &containers[0]).works();
        assert_eq!(host.switches(), ["cni-dev-up0"]);
        host.call("DEL", &confs[1], &containers[1]).works();
        host.is_clean();
    });
}

#[test]
fn a_network_without_a_master_connects_its_containers_alone() {
    on_host(|host| {
        let without = |name: &str, ip| {
            let mut conf = conf_with("1.0.0", name, ip);
            conf.as_object_mut().unwrap().remove("master");
            conf
        };
        let confs = [
            without("quiet", "10.1.0.5/16"),
            without("quiet", "10.1.0.6/16"),
            without("other", "10.1.0.7/16"),
        ];
        let containers = ["a", "b", "c"].map(|id| host.container(id));
        for (conf, container) in confs.iter().zip(&containers) {
            add(host, conf, container);
        }
        assert_eq!(host.switches(), ["cni-net-other", "cni-net-quiet"]);
        assert!(containers[0].reaches(&containers[1].inside, "10.1.0.6"));
        containers[0].does_not_reach(&containers[2].inside, "10.1.0.7");
        containers[0].does_not_reach(&host.wire, "10.1.0.1");
        for (conf, container) in confs.iter().zip(&containers) {
            host.call("DEL", conf, container).works();
        }
        host.is_clean();
    });
}

#[test]
fn a_container_without_ipam_has_a_device_and_may_choose_its_addresses() {
    on_host(|host| {
        for ipam in [Value::Null, json!({})] {
            let mut conf = conf_with("1.0.0", "l2", "10.1.0.5/16");
            conf["ipam"] = ipam;
            let container = host.container("c1");
            let result = add(host, &conf, &container);
            assert_eq!(result["ips"], json!([]));
            container
                .inside
                .add_address("eth0", "10.1.0.77".parse().unwrap(), 16)
                .unwrap();
            assert!(container.reaches(&host.wire, "10.1.0.1"));
            let previous = with(&conf, json!({ "prevResult": result }));
            host.call("CHECK", &previous, &container).works();
            host.call("DEL", &conf, &container).works();
            host.is_clean();
        }
    });
}

#[test]
fn the_runtime_chooses_address_and_mtu() {
    on_host(|host| {
        let container = host.container("c1");
        let conf = with(
            &conf_with("1.0.0", "front", "10.1.0.5/16"),
            json!({ "mtu": 1400 }),
        );
        // As podman does it.
        let args = "IgnoreUnknown=1;K8S_POD_NAME=web;MAC=02:00:00:00:00:77;IP=10.1.0.5";
        let result = host.call_with("ADD", &conf, &container, args).works();
        assert_eq!(result["interfaces"][1]["mac"], "02:00:00:00:00:77");
        assert_eq!(container.inside.link("eth0").unwrap().mtu, 1400);
        assert_eq!(host.hub.link(&host.devices()[0]).unwrap().mtu, 1400);
        assert!(container.reaches(&host.wire, "10.1.0.1"));
        // Another container cannot have the same.
        let other = host.container("c2");
        let said = host.call_with("ADD", &conf, &other, "MAC=02:00:00:00:00:77");
        said.fails(100, &["10.1.0.5", "is taken by port"][1..]);
        let files: Vec<String> = files("/run/ipam").into_iter().collect();
        assert_eq!(files, ["c1:eth0"]);
        host.call_with("DEL", &conf, &container, args).works();
        // By the capability.
        let runtime = json!({ "capabilities": { "mac": true }, "runtimeConfig": { "mac": "02:00:00:00:00:78" } });
        let conf = with(&conf, runtime);
        let result = host.call("ADD", &conf, &container).works();
        assert_eq!(result["interfaces"][1]["mac"], "02:00:00:00:00:78");
        host.call("DEL", &conf, &container).works();
        host.is_clean();
    });
}

#[test]
fn a_switch_that_is_named_is_used_and_stays() {
    on_host(|host| {
        host.in_hub(|| {
            let new = hopyard_switch::NewSwitch {
                name: "guests",
                uplink: Some("up0"),
                ..hopyard_switch::NewSwitch::default()
            };
            hopyard_switch::Switch::create(&new).unwrap();
        })
        .unwrap();
        let named = with(
            &conf_with("1.0.0", "front", "10.1.0.5/16"),
            json!({ "switch": "guests" }),
        );
        let mut alone = named.clone();
        alone.as_object_mut().unwrap().remove("master");
        for conf in [named, alone] {
            let container = host.container("c1");
            add(host, &conf, &container);
            assert!(container.reaches(&host.wire, "10.1.0.1"));
            host.call("DEL", &conf, &container).works();
            assert_eq!(host.switches(), ["guests"]);
        }
        // Its uplink is no other switch's.
        let conf = conf_with("1.0.0", "front", "10.1.0.5/16");
        let said = host.call("ADD", &conf, &host.container("c1"));
        said.fails(100, &["`up0` is the uplink of switch `guests`", "`switch`"]);
        host.in_hub(|| hopyard_switch::Switch::remove("guests").unwrap())
            .unwrap();
        host.is_clean();
    });
}

#[test]
fn routes_have_their_metrics() {
    on_host(|host| {
        let routes = json!([
            { "dst": "10.8.0.0/16", "gw": "10.1.0.1", "mtu": 1300, "advmss": 1260, "priority": 9 },
            { "dst": "10.7.0.0/16", "gw": "10.1.0.1", "table": 77 },
        ]);
        let result = json!({ "ips": [{ "address": "10.1.0.5/16" }], "routes": routes });
        let conf = conf("1.1.0", "front", &result);
        let container = host.container("c1");
        let added = add(host, &conf, &container);
        assert_eq!(added["routes"], routes);
        let main = inside(&container, &["route"]);
        for part in [
            "10.8.0.0/16 via 10.1.0.1",
            "mtu 1300",
            "advmss 1260",
            "metric 9",
        ] {
            assert!(main.contains(part), "{main}");
        }
        let other = inside(&container, &["route", "show", "table", "77"]);
        assert!(other.contains("10.7.0.0/16 via 10.1.0.1"), "{other}");
        let previous = with(&conf, json!({ "prevResult": added }));
        host.call("CHECK", &previous, &container).works();
        host.call("DEL", &conf, &container).works();
    });
}

#[test]
fn deleting_again_and_without_the_namespace_works() {
    on_host(|host| {
        let conf = conf_with("1.0.0", "front", "10.1.0.5/16");
        // Never added.
        host.del_without_namespace(&conf, "c0").works();
        let container = host.container("c1");
        add(host, &conf, &container);
        // The namespace goes, and with it the device: as containerd does it.
        drop(container);
        host.del_without_namespace(&conf, "c1").works();
        host.is_clean();
        host.del_without_namespace(&conf, "c1").works();
        // It is there, and its file is not.
        let container = host.container("c2");
        add(host, &conf, &container);
        let env = [
            ("CNI_CONTAINERID", "c2"),
            ("CNI_NETNS", "/run/netns/absent"),
            ("CNI_IFNAME", "eth0"),
        ];
        let command = host.command("DEL", &env);
        crate::host::Running::start(command, &conf).said().works();
        host.is_clean();
        // The switch is gone, with the device still there.
        let container = host.container("c3");
        add(host, &conf, &container);
        host.in_hub(|| hopyard_switch::Switch::remove("cni-dev-up0").unwrap())
            .unwrap();
        host.call("DEL", &conf, &container).works();
        host.is_clean();
        // So is the record.
        let container = host.container("c4");
        add(host, &conf, &container);
        std::fs::remove_dir_all(crate::host::RECORDS).unwrap();
        host.call("DEL", &conf, &container).works();
        assert!(!Path::new(crate::host::RECORDS).exists());
        host.is_clean();
    });
}

/// `dhcp` asks on the wire: the container is connected before it has an address, and held to that one afterwards.
#[test]
fn a_container_is_connected_before_dhcp_asks() {
    on_host(|host| {
        let ask = "#!/bin/sh\n[ $CNI_COMMAND != ADD ] || nsenter --net=$CNI_NETNS ip link show eth0 up >/run/seen\n\
                   exec /run/plugins/fake-ipam\n";
        std::fs::write("/run/plugins/dhcp", ask).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions("/run/plugins/dhcp", mode).unwrap();
        let mut conf = conf_with("1.0.0", "front", "10.1.0.5/16");
        conf["ipam"]["type"] = "dhcp".into();
        let container = host.container("c1");
        let result = add(host, &conf, &container);
        let seen = std::fs::read_to_string("/run/seen").unwrap();
        assert!(seen.contains("LOWER_UP"), "{seen}");
        assert!(container.reaches(&host.wire, "10.1.0.1"));
        let port = host.in_hub(|| {
            let switch = hopyard_switch::Switch::open("cni-dev-up0").unwrap();
            switch.port(&host.devices()[0]).unwrap().unwrap()
        });
        let address: std::net::IpAddr = "10.1.0.5".parse().unwrap();
        assert_eq!(port.unwrap().ips, [address]);
        let previous = with(&conf, json!({ "prevResult": result }));
        host.call("CHECK", &previous, &container).works();
        host.call("DEL", &conf, &container).works();
        host.is_clean();
    });
}

#[test]
fn a_netkit_is_a_containers_device_or_absent_by_name() {
    on_host(|host| {
        let confs = ["10.1.0.5/16", "10.1.0.6/16"].map(|ip| conf_with("1.1.0", "front", ip));
        let netkit = with(
            &confs[0],
            json!({ "device": "netkit", "mac": "02:00:00:00:00:05" }),
        );
        let containers = ["a", "b"].map(|id| host.container(id));
        if !has_netkit() {
            let said = host.call("ADD", &netkit, &containers[0]);
            said.fails(100, &["netkit", "CONFIG_NETKIT"]);
            host.is_clean();
            host.call("DEL", &netkit, &containers[0]).works();
            return skip("netkit", false, "the kernel has no such device");
        }
        let added = add(host, &netkit, &containers[0]);
        assert_eq!(added["interfaces"][1]["mac"], "02:00:00:00:00:05");
        let port = added["interfaces"][0]["name"].as_str().unwrap();
        assert_eq!(host.hub.link(port).unwrap().kind.as_deref(), Some("netkit"));
        add(host, &confs[1], &containers[1]);
        assert!(containers[0].reaches(&containers[1].inside, "10.1.0.6"));
        assert!(containers[1].reaches(&containers[0].inside, "10.1.0.5"));
        assert!(containers[0].reaches(&host.wire, "10.1.0.1"));
        // What it sends to one station does not come to its port: the switch decides before.
        let received = || {
            let counted = host.hub.device_stats().unwrap();
            counted
                .iter()
                .find(|one| one.name == port)
                .unwrap()
                .rx_packets
        };
        let before = received();
        for _ in 0..100 {
            assert!(containers[0].reaches(&containers[1].inside, "10.1.0.6"));
        }
        assert!(received() < before + 50, "{before}, {}", received());
        let previous = with(&netkit, json!({ "prevResult": added }));
        host.call("CHECK", &previous, &containers[0]).works();
        let other = with(&previous, json!({ "device": "veth" }));
        host.call("CHECK", &other, &containers[0])
            .fails(102, &["`eth0`"]);
        for (conf, container) in [&netkit, &confs[1]].into_iter().zip(&containers) {
            host.call("DEL", conf, container).works();
        }
        host.is_clean();
    });
}
