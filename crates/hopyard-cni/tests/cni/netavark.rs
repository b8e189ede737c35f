//! The driver as netavark calls it, without podman (`make test-engines` has that).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::host::{Container, Host, Running, Said, files, on_host};

const DRIVER: &str = env!("CARGO_BIN_EXE_netavark-hopyard");
/// Where the driver's records are.
const DRIVER_RECORDS: &str = "/run/hopyard-netavark";

fn network(options: &Value) -> Value {
    json!({
        "name": "guests",
        "id": "2f259bab93aaaaa2542ba43ef33eb990d0999ee1b9924b557b7be53c0b7a1bb9",
        "driver": "hopyard",
        "subnets": [{ "subnet": "10.1.0.0/16", "gateway": "10.1.0.1" }],
        "ipv6_enabled": false,
        "internal": false,
        "dns_enabled": true,
        "ipam_options": { "driver": "host-local" },
        "options": options,
    })
}

/// What `setup` and `teardown` get on stdin.
fn container(network: &Value, id: &str, ip: &str) -> Value {
    json!({
        "container_id": id,
        "container_name": id,
        "port_mappings": null,
        "network": network,
        "network_options": {
            "aliases": [id],
            "interface_name": "eth0",
            "static_ips": [ip],
            "static_mac": null,
            "options": null,
        },
    })
}

fn command(host: &Host, words: &[&str]) -> Command {
    let mut command = Command::new(DRIVER);
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    host.hub.ns().adopt(&mut command).unwrap();
    command
}

fn call(host: &Host, words: &[&str], stdin: &Value) -> Said {
    Running::start(command(host, words), stdin).said()
}

fn about(host: &Host, verb: &str, of: &Container, stdin: &Value) -> Said {
    let netns = of.inside.ns().proc_path();
    call(host, &[verb, netns.to_str().unwrap()], stdin)
}

#[track_caller]
fn refuses(said: &Said, words: &str) {
    assert!(!said.ok, "{}", said.text);
    let error = said.json["error"].as_str().unwrap_or_default();
    assert!(error.contains(words), "{}", said.text);
}

#[track_caller]
fn is_clean(host: &Host) {
    host.is_clean();
    assert!(
        !Path::new(DRIVER_RECORDS).exists(),
        "{:?}",
        files(DRIVER_RECORDS)
    );
}

#[test]
fn it_tells_its_versions_and_what_it_cannot_do() {
    on_host(|host| {
        let info = call(host, &["info"], &Value::Null).works();
        assert_eq!(info["api_version"], "1.0.0");
        assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
        refuses(
            &call(host, &["update"], &json!({})),
            "unknown command `update`",
        );
        refuses(
            &call(host, &["setup"], &json!({})),
            "path of the container's network namespace",
        );
        refuses(&call(host, &["create"], &json!([])), "no JSON object");
        refuses(
            &call(host, &["create"], &json!({ "name": "a/b" })),
            "option `name` (\"a/b\")",
        );
        is_clean(host);
    });
}

#[test]
fn create_checks_the_network_and_makes_nothing() {
    on_host(|host| {
        let asked = network(&json!({ "parent": "up0", "mtu": "1400" }));
        let kept = call(host, &["create"], &asked).works();
        let mut wanted = asked.clone();
        wanted["network_interface"] = "up0".into();
        wanted["dns_enabled"] = false.into();
        assert_eq!(kept, wanted);
        // podman refuses name servers where there is no DNS.
        let mut with_dns = asked.clone();
        with_dns["network_dns_servers"] = json!(["10.1.0.53"]);
        assert_eq!(
            call(host, &["create"], &with_dns).works()["dns_enabled"],
            true
        );
        let mut bare = asked.clone();
        bare["subnets"] = Value::Null;
        refuses(&call(host, &["create"], &bare), "there is no subnet");
        bare["ipam_options"] = json!({ "driver": "none" });
        call(host, &["create"], &bare).works();
        for (options, words) in [
            (
                json!({ "parent": "up0", "isolatd": "true" }),
                "unknown option `isolatd`",
            ),
            (
                json!({ "parent": "nosuch" }),
                "option `parent` (\"nosuch\") is no device of this host",
            ),
            (
                json!({ "parent": "up0", "mtu": "9000" }),
                "option `mtu` (9000) is more than the 1500 of `up0`",
            ),
            (
                json!({ "parent": "up0", "vlan": "4095" }),
                "option `vlan` (4095)",
            ),
            (
                json!({ "switch": "nosuch" }),
                "option `switch` (\"nosuch\") is no switch",
            ),
            (json!({}), "no way to the wire"),
        ] {
            refuses(&call(host, &["create"], &network(&options)), words);
        }
        is_clean(host);
    });
}

#[test]
fn containers_reach_each_other_host_and_wire_until_teardown() {
    on_host(|host| {
        let net = network(&json!({ "parent": "up0" }));
        let [a, b] = ["a", "b"].map(|id| host.container(id));
        let in_a = container(&net, "a", "10.1.5.1");
        let mut in_b = container(&net, "b", "10.1.5.2");
        in_b["network_options"]["static_mac"] = "02:00:00:00:00:50".into();
        in_b["network"]["network_dns_servers"] = json!(["10.1.0.1"]);
        about(host, "setup", &a, &in_a).works();
        let status = about(host, "setup", &b, &in_b).works();
        let wanted = json!({
            "interfaces": { "eth0": {
                "mac_address": "02:00:00:00:00:50",
                "subnets": [{ "ipnet": "10.1.5.2/16", "gateway": "10.1.0.1" }],
            } },
            "dns_server_ips": ["10.1.0.1"],
            "dns_search_domains": [],
        });
        assert_eq!(status, wanted);
        assert!(a.reaches(&b.inside, "10.1.5.2"));
        assert!(b.reaches(&host.wire, "10.1.0.1"));
        assert!(b.reaches(&host.hub, "10.1.0.2"));
        let routes = b.inside.routes().unwrap();
        let default = routes.iter().find(|route| route.prefix == 0).unwrap();
        assert_eq!(
            (default.via, default.priority),
            (Some([10, 1, 0, 1].into()), Some(100))
        );
        b.inside
            .add_address("eth0", "10.1.5.9".parse().unwrap(), 16)
            .unwrap();
        assert!(!b.reaches_from("10.1.5.9", &host.wire, "10.1.0.1", true));
        // As `podman network reload`, and a second time, where nothing is left.
        for _ in 0..2 {
            about(host, "teardown", &b, &in_b).works();
        }
        about(host, "setup", &b, &in_b).works();
        assert!(b.reaches(&a.inside, "10.1.5.1"));
        refuses(
            &about(host, "setup", &b, &in_b),
            "has a device `eth0` already",
        );
        assert!(b.reaches(&a.inside, "10.1.5.1"));
        for (of, stdin) in [(&a, &in_a), (&b, &in_b)] {
            about(host, "teardown", of, stdin).works();
        }
        is_clean(host);
    });
}

#[test]
fn isolated_networks_and_internal_ones_are_apart() {
    on_host(|host| {
        let open = network(&json!({ "parent": "up0" }));
        let apart = network(&json!({ "parent": "up0", "isolate": "true" }));
        let mut alone = network(&json!({}));
        alone["internal"] = true.into();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|id| host.container(id));
        let all = [
            (&a, container(&open, "a", "10.1.5.1")),
            (&b, container(&apart, "b", "10.1.5.2")),
            (&c, container(&alone, "c", "10.1.5.3")),
            (&d, container(&alone, "d", "10.1.5.4")),
        ];
        for (of, stdin) in &all {
            about(host, "setup", of, stdin).works();
        }
        b.does_not_reach(&a.inside, "10.1.5.1");
        assert!(b.reaches(&host.wire, "10.1.0.1"));
        assert!(c.reaches(&d.inside, "10.1.5.4"));
        c.does_not_reach(&host.wire, "10.1.0.1");
        c.does_not_reach(&a.inside, "10.1.5.1");
        for (of, stdin) in &all {
            about(host, "teardown", of, stdin).works();
        }
        is_clean(host);
    });
}

#[test]
fn a_refused_container_leaves_nothing() {
    on_host(|host| {
        let net = network(&json!({ "parent": "up0" }));
        let a = host.container("a");
        let asked = container(&net, "a", "10.1.5.1");
        let with = |pointer: &str, value: Value| {
            let mut asked = asked.clone();
            *asked.pointer_mut(pointer).unwrap() = value;
            asked
        };
        let mapped = json!([{ "host_port": 8080, "container_port": 80, "protocol": "tcp", "host_ip": "", "range": 1 }]);
        for (stdin, words) in [
            (
                with("/port_mappings", mapped),
                "ports of the host are not mapped (here 8080)",
            ),
            (
                with("/network_options/options", json!({ "foo": "1" })),
                "unknown option `foo` (\"1\") of a container",
            ),
            (
                with("/network_options/static_ips", json!(["10.2.0.1"])),
                "in none of the network's subnets",
            ),
            (
                with("/network_options/static_ips", json!(["10.1.0.2"])),
                "host's own address",
            ),
            (
                with("/network_options/static_mac", json!("01:00:00:00:00:01")),
                "no address of a station",
            ),
            (
                with(
                    "/network/options",
                    json!({ "parent": "up0", "mode": "private" }),
                ),
                "unknown option `mode`",
            ),
            (with("/container_id", json!("../a")), "the container `../a`"),
            (
                with("/network_options/interface_name", json!("a/b")),
                "`a/b` is no device name",
            ),
            (with("/network_options", json!(null)), "cannot be read"),
        ] {
            refuses(&about(host, "setup", &a, &stdin), words);
            is_clean(host);
        }
        // The settings of a network that stands may have become wrong: its containers go all the same.
        about(host, "setup", &a, &asked).works();
        about(
            host,
            "teardown",
            &a,
            &with("/network/options", json!({ "foo": "1" })),
        )
        .works();
        is_clean(host);
    });
}

/// Nobody calls `teardown` where podman was killed and the namespace went.
#[test]
fn the_next_command_takes_away_what_a_lost_container_left() {
    on_host(|host| {
        let net = network(&json!({ "parent": "up0" }));
        for command in ["create", "setup", "teardown"] {
            let lost = host.container("lost");
            about(host, "setup", &lost, &container(&net, "lost", "10.1.5.1")).works();
            drop(lost);
            while !host.devices().is_empty() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            assert_eq!(files(&format!("{DRIVER_RECORDS}/guests")).len(), 1);
            let other = host.container("other");
            match command {
                "create" => drop(call(host, &["create"], &net).works()),
                _ => {
                    about(host, command, &other, &container(&net, "other", "10.1.5.1")).works();
                    about(
                        host,
                        "teardown",
                        &other,
                        &container(&net, "other", "10.1.5.1"),
                    )
                    .works();
                }
            }
            is_clean(host);
        }
    });
}

/// Moments at which a setup is killed.
const STEPS: u32 = 12;

/// Killed at whatever moment: `teardown`, which podman calls for what it knows of, takes away the rest.
#[test]
fn a_killed_setup_is_taken_away() {
    on_host(|host| {
        let net = network(&json!({ "parent": "up0" }));
        let stdin = container(&net, "a", "10.1.5.1");
        // What one takes, when nothing of it is new any more: the moments are spread over all of it.
        let mut whole = Duration::ZERO;
        for _ in 0..2 {
            let a = host.container("a");
            let began = Instant::now();
            about(host, "setup", &a, &stdin).works();
            whole = began.elapsed();
            about(host, "teardown", &a, &stdin).works();
        }
        let mut half_way = 0;
        for step in 0..STEPS {
            let a = host.container("a");
            let netns = a.inside.ns().proc_path();
            let words = ["setup", netns.to_str().unwrap()];
            let mut running = Running::start(command(host, &words), &stdin);
            std::thread::sleep(whole * step / STEPS);
            // It may have ended by itself.
            let _ = running.child.kill();
            let is_done = running.child.wait().unwrap().success();
            let is_begun = !files(&format!("{DRIVER_RECORDS}/guests")).is_empty();
            half_way += usize::from(is_begun && !is_done);
            if step % 2 == 0 {
                about(host, "teardown", &a, &stdin).works();
            }
            let inside = a.inside.index("eth0").is_ok();
            if !inside {
                about(host, "setup", &a, &stdin).works();
                assert!(a.reaches(&host.wire, "10.1.0.1"));
            }
            about(host, "teardown", &a, &stdin).works();
            is_clean(host);
        }
        assert!(half_way > 0, "no setup of {whole:?} was killed half-way");
    });
}

/// The same name in CNI and in podman is two networks: neither takes away the other's containers.
#[test]
fn networks_of_cni_are_others() {
    on_host(|host| {
        let podmans = host.container("a");
        let stdin = container(&network(&json!({ "parent": "up0" })), "a", "10.1.5.1");
        about(host, "setup", &podmans, &stdin).works();
        let mut cni = crate::host::conf_with("1.1.0", "guests", "10.1.5.2/16");
        let other = host.container("a");
        host.call("ADD", &cni, &other).works();
        assert!(podmans.reaches(&other.inside, "10.1.5.2"));
        cni["cni.dev/valid-attachments"] = json!([]);
        host.call_network("GC", &cni).works();
        assert!(podmans.reaches(&host.wire, "10.1.0.1"));
        about(host, "teardown", &podmans, &stdin).works();
        is_clean(host);
    });
}
