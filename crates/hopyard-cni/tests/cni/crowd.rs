//! Many calls at once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::host::{Container, PATIENCE, RESERVED, conf_with, files, on_host, with};

const RECORDS_OF_FRONT: &str = "/var/lib/cni/hopyard/front";

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

/// A runtime that was started again deletes a container while the ADD of the one before is under way.
#[test]
fn an_add_waits_for_a_del_that_found_no_record() {
    on_host(|host| {
        let script = "#!/bin/sh\n\
            [ $CNI_COMMAND != DEL ] || { : >/run/asked; until [ -e /run/go ]; do sleep 0.02; done; }\n\
            exec /run/plugins/fake-ipam\n";
        let plugin = "/run/plugins/waiting-ipam";
        fs::write(plugin, script).unwrap();
        fs::set_permissions(plugin, fs::Permissions::from_mode(0o755)).unwrap();
        let mut conf = conf_with("1.0.0", "front", "10.1.0.5/16");
        conf["ipam"]["type"] = "waiting-ipam".into();
        let container = host.container("c1");
        let del = host.start("DEL", &conf, &container, "");
        let end = Instant::now() + PATIENCE;
        while !Path::new("/run/asked").exists() {
            assert!(Instant::now() < end, "the IPAM plugin is not asked");
            thread::sleep(Duration::from_millis(10));
        }
        let add = host.start("ADD", &conf, &container, "");
        // It would be done by then.
        thread::sleep(Duration::from_millis(300));
        fs::write("/run/go", "").unwrap();
        del.said().works();
        add.said().works();
        assert!(files(RESERVED).contains("c1:eth0"));
        assert!(container.reaches(&host.wire, "10.1.0.1"));
        host.call("DEL", &conf, &container).works();
        host.is_clean();
    });
}

#[test]
fn gc_of_more_than_are_taken_away_together_goes_on_after_errors() {
    on_host(|host| {
        let containers: Vec<Container> =
            (0..70).map(|n| host.container(&format!("c{n}"))).collect();
        for (n, some) in containers.chunks(10).enumerate() {
            let calls: Vec<_> = some
                .iter()
                .enumerate()
                .map(|(m, container)| {
                    let address = format!("10.1.1.{}/16", n * 10 + m + 1);
                    let mut conf = conf_with("1.1.0", "front", &address);
                    if (n, m) == (3, 3) {
                        conf["ipam"]["fail"] = "DEL".into();
                    }
                    host.start("ADD", &conf, container, "")
                })
                .collect();
            for call in calls {
                call.said().works();
            }
        }
        assert_eq!(host.devices().len(), 70);
        thread::sleep(std::time::Duration::from_millis(20));
        let gc = conf_with("1.1.0", "front", "10.1.1.1/16");
        let mut failing = gc.clone();
        failing["ipam"]["fail"] = "DEL".into();
        let said = host.call_network("GC", &failing);
        said.fails(142, &["container `c33`", "no more addresses"]);
        assert_eq!(host.devices(), Vec::<String>::new());
        assert_eq!(files(RECORDS_OF_FRONT).len(), 1);
        assert_eq!(files(RESERVED).len(), 1);
        // A record that cannot be read: the configuration of the call will do.
        std::fs::write(format!("{RECORDS_OF_FRONT}/c33:eth0"), "{").unwrap();
        thread::sleep(std::time::Duration::from_millis(20));
        host.call_network("GC", &gc).works();
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
