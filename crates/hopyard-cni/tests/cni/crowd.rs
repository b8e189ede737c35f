//! Many calls at once.

use std::thread;

use serde_json::json;

use crate::host::{Container, conf_with, on_host, with};

#[test]
fn a_hundred_adds_and_dels_side_by_side() {
    on_host(|host| {
        let containers: Vec<Container> =
            (0..100).map(|n| host.container(&format!("c{n}"))).collect();
        let confs: Vec<_> = (0..100)
            .map(|n| conf_with("1.0.0", "front", &format!("10.1.1.{}/16", n + 1)))
            .collect();
        let all = |verb: &str| {
            let calls: Vec<_> = containers
                .iter()
                .zip(&confs)
                .map(|(container, conf)| host.start(verb, conf, container, ""))
                .collect();
            for call in calls {
                call.said().works();
            }
        };
        all("ADD");
        assert_eq!(host.devices().len(), 100);
        for (n, container) in containers.iter().enumerate().step_by(33) {
            assert!(container.reaches(&host.wire, "10.1.0.1"), "c{n}");
        }
        all("DEL");
        host.is_clean();
        // One goes while another comes: the switch is never removed under somebody's feet.
        let two = confs.iter().zip(&containers).take(2);
        thread::scope(|scope| {
            for (conf, container) in two {
                scope.spawn(move || {
                    for _ in 0..10 {
                        host.call("ADD", conf, container).works();
                        host.call("DEL", conf, container).works();
                    }
                });
            }
        });
        host.is_clean();
    });
}

#[test]
fn a_device_of_each_network_in_one_container() {
    on_host(|host| {
        let container = host.container("c1");
        let confs = ["front", "back"].map(|name| {
            let ip = if name == "front" {
                "10.1.0.5/16"
            } else {
                "10.1.0.6/16"
            };
            with(&conf_with("1.0.0", name, ip), json!({}))
        });
        let netns = container.inside.ns().proc_path();
        for verb in ["ADD", "DEL"] {
            for (n, conf) in confs.iter().enumerate() {
                let ifname = format!("eth{n}");
                let env = [
                    ("CNI_CONTAINERID", "c1"),
                    ("CNI_NETNS", netns.to_str().unwrap()),
                    ("CNI_IFNAME", ifname.as_str()),
                ];
                crate::host::Running::start(host.command(verb, &env), conf)
                    .said()
                    .works();
            }
        }
        host.is_clean();
    });
}
