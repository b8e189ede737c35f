//! CHECK that finds something, and STATUS.

use std::time::{Duration, Instant};

use hopyard_switch::{NewSwitch, PortChange, Switch};
use serde_json::{Value, json};

use crate::host::{
    Container, Host, conf, conf_with, detach_from_uplink, has_netkit, on_host, with,
};

/// Adds a container with a default route, and gives the configuration for CHECK.
fn added(host: &Host) -> (Container, Value) {
    let result = json!({
        "ips": [{ "address": "10.1.0.5/16", "gateway": "10.1.0.1" }],
        "routes": [{ "dst": "0.0.0.0/0" }],
    });
    let conf = conf("1.0.0", "front", &result);
    let container = host.container("c1");
    let result = host.call("ADD", &conf, &container).works();
    (container, with(&conf, json!({ "prevResult": result })))
}

type Change = (fn(&Host, &Container), &'static str);

#[test]
fn check_finds_what_somebody_changed() {
    let changes: [Change; 10] = [
        (
            |h, _| {
                let device = h.devices().remove(0);
                h.runs("tc", &["qdisc", "del", "dev", &device, "clsact"]);
            },
            "does not run at `hc",
        ),
        (
            |h, _| detach_from_uplink(h, "cni-dev-up0"),
            "do not run at its uplink `up0`",
        ),
        (
            |_, c| {
                c.inside
                    .delete_address("eth0", "10.1.0.5".parse().unwrap(), 16)
                    .unwrap();
            },
            "10.1.0.5",
        ),
        (
            |_, c| {
                c.inside.set_down("eth0").unwrap();
                c.inside.set_up("eth0").unwrap();
            },
            "0.0.0.0/0",
        ),
        (|_, c| c.inside.set_down("eth0").unwrap(), "is down"),
        (
            |_, c| c.inside.set_mac("eth0", [2, 0, 0, 0, 0, 9]).unwrap(),
            "02:00:00:00:00:09",
        ),
        (
            |_, c| c.inside.delete_link("eth0").unwrap(),
            "no device `eth0`",
        ),
        (
            |h, _| {
                let device = h.devices().remove(0);
                h.in_hub(|| {
                    Switch::open("cni-dev-up0")
                        .unwrap()
                        .remove_port(&device)
                        .unwrap();
                })
                .unwrap();
            },
            "no port of switch",
        ),
        (
            |h, _| {
                let device = h.devices().remove(0);
                let change = PortChange {
                    device: &device,
                    allow_spoof: Some(true),
                    ..PortChange::default()
                };
                h.in_hub(|| {
                    let mut switch = Switch::open("cni-dev-up0").unwrap();
                    switch.set_port(&change).unwrap();
                })
                .unwrap();
            },
            "may send from any address",
        ),
        (
            |h, _| {
                h.in_hub(|| Switch::remove("cni-dev-up0").unwrap()).unwrap();
            },
            "no port of switch",
        ),
    ];
    on_host(|host| {
        for (change, found) in changes {
            let (container, conf) = added(host);
            host.call("CHECK", &conf, &container).works();
            change(host, &container);
            host.call("CHECK", &conf, &container).fails(102, &[found]);
            host.call("DEL", &conf, &container).works();
            host.is_clean();
        }
        // IPAM's own check, and a call that lacks the result.
        let (container, conf) = added(host);
        std::fs::remove_file("/run/ipam/c1:eth0").unwrap();
        host.call("CHECK", &conf, &container)
            .fails(103, &["fake-ipam", "CHECK"]);
        let without = with(&conf, json!({ "prevResult": null }));
        host.call("CHECK", &without, &container)
            .fails(7, &["prevResult"]);
        host.call("DEL", &conf, &container).works();
    });
}

#[test]
fn status_says_whether_a_container_can_be_added() {
    on_host(|host| {
        let base = conf_with("1.1.0", "front", "10.1.0.5/16");
        let status = |conf: &Value| host.call_network("STATUS", conf);
        status(&base).works();
        assert!(host.switches().is_empty(), "STATUS has made a switch");
        status(&with(&base, json!({ "master": "absent0" }))).fails(50, &["absent0"]);
        status(&with(&base, json!({ "switch": "absent" }))).fails(50, &["absent"]);
        status(&with(&base, json!({ "isGateway": true }))).fails(2, &["isGateway"]);
        let by_netkit = status(&with(&base, json!({ "device": "netkit" })));
        if has_netkit() {
            drop(by_netkit.works());
        } else {
            by_netkit.fails(50, &["CONFIG_NETKIT"]);
        }
        let mut failing = base.clone();
        failing["ipam"]["fail"] = "STATUS".into();
        status(&failing).fails(142, &["no more addresses"]);
        host.hub.set_down("up0").unwrap();
        status(&base).fails(50, &["`up0` is down"]);
        host.hub.set_up("up0").unwrap();
        host.wire.set_down("far0").unwrap();
        status(&base).fails(50, &["no carrier"]);
        host.wire.set_up("far0").unwrap();
        // With a container: those that there are suffer as well.
        let container = host.container("c1");
        host.call("ADD", &base, &container).works();
        status(&base).works();
        // What is wrong with the configuration alone cuts nobody off.
        status(&with(&base, json!({ "mtu": 9000 }))).fails(50, &["`mtu`"]);
        // The next ADD mends that.
        detach_from_uplink(host, "cni-dev-up0");
        status(&base).works();
        host.hub.set_down("up0").unwrap();
        status(&base).fails(51, &["`up0` is down"]);
        host.hub.delete_link("up0").unwrap();
        status(&base).fails(51, &["up0"]);
        host.call("DEL", &base, &container).works();
        host.is_clean();
    });
}

/// It is not the plugin's to mend.
#[test]
fn status_and_add_say_that_a_switch_of_somebody_lost_its_programs() {
    on_host(|host| {
        let new = NewSwitch {
            name: "own",
            uplink: Some("up0"),
            ..NewSwitch::default()
        };
        host.in_hub(|| Switch::create(&new).map(drop).unwrap())
            .unwrap();
        let conf = conf_with("1.1.0", "front", "10.1.0.5/16");
        let conf = with(&conf, json!({ "switch": "own", "master": null }));
        host.call_network("STATUS", &conf).works();
        detach_from_uplink(host, "own");
        let words = ["do not run", "`hopyard switch uplink own up0`"];
        host.call_network("STATUS", &conf).fails(50, &words);
        let container = host.container("c1");
        host.call("ADD", &conf, &container).fails(7, &words);
        host.in_hub(|| Switch::remove("own").unwrap()).unwrap();
        host.is_clean();
    });
}

#[test]
fn status_takes_milliseconds_and_waits_for_nobody() {
    on_host(|host| {
        let mut conf = conf_with("1.1.0", "front", "10.1.0.5/16");
        let container = host.container("c1");
        host.call("ADD", &conf, &container).works();
        conf.as_object_mut().unwrap().remove("ipam");
        // Somebody holds the lock of all switches.
        let lock = std::fs::File::create("/run/hopyard-switch.lock").unwrap();
        let lock = nix::fcntl::Flock::lock(lock, nix::fcntl::FlockArg::LockExclusive).unwrap();
        let mut times: Vec<Duration> = (0..20)
            .map(|_| {
                let began = Instant::now();
                host.call_network("STATUS", &conf).works();
                began.elapsed()
            })
            .collect();
        times.sort();
        drop(lock);
        // Some 3 ms; a debug build beside other tests takes longer. The fastest says what it does.
        assert!(times[0] < Duration::from_millis(50), "{times:?}");
        host.call("DEL", &conf, &container).works();
    });
}
