//! Which process gives the addresses of `host-local` where `ipamInProcess` does not say so.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::garbage::{attachments, how_many, killed};
use crate::host::{RECORDS, with};
use crate::host_local::{
    REFERENCE, STORE, address, by_program, conf, forget_addresses, in_process, reserved, simple,
    with_reference,
};

/// A `host-local` of somebody's own, which comes first in `CNI_PATH`.
const OWN: &str = "/run/plugins/host-local";
/// Its calls.
const CALLS: &str = "/run/host-local.log";
/// The record of container `c1`.
const RECORD: &str = "front/c1:eth0";

fn install_own() {
    let script = format!("#!/bin/sh\necho \"$CNI_COMMAND\" >>{CALLS}\nexec {REFERENCE}\n");
    fs::write(OWN, script).unwrap();
    fs::set_permissions(OWN, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The calls of the own program since the last time.
fn calls() -> Vec<String> {
    let text = fs::read_to_string(CALLS).unwrap_or_default();
    let _ = fs::remove_file(CALLS);
    text.lines().map(str::to_owned).collect()
}

fn record() -> String {
    format!("{RECORDS}/{RECORD}")
}

/// Has the plugin itself reserved what container `c1` has?
fn is_its_own() -> bool {
    let entry: Value = serde_json::from_slice(&fs::read(record()).unwrap()).unwrap();
    let reserved = entry["reserved"]
        .as_array()
        .is_some_and(|all| !all.is_empty());
    assert_eq!(reserved, entry["in_process"] == true, "{entry}");
    reserved
}

#[test]
fn the_plugin_does_what_the_reference_program_would() {
    with_reference(|host| {
        let confs = [
            (simple(), true),
            (in_process(&simple()), true),
            (by_program(&simple()), false),
        ];
        for (conf, is_own) in confs {
            let container = host.container("c1");
            let result = host.call("ADD", &conf, &container).works();
            assert_eq!(is_its_own(), is_own, "{conf}");
            assert_eq!(reserved(), BTreeSet::from([address(&result)]));
            let previous = json!({ "prevResult": result });
            host.call("CHECK", &with(&conf, previous), &container)
                .works();
            host.call("DEL", &conf, &container).works();
            assert_eq!(reserved(), BTreeSet::new());
            host.is_clean();
        }
    });
}

#[test]
fn another_program_of_its_name_is_run() {
    with_reference(|host| {
        install_own();
        let container = host.container("c1");
        for (conf, is_run) in [(simple(), true), (in_process(&simple()), false)] {
            let result = host.call("ADD", &conf, &container).works();
            assert_eq!(is_its_own(), !is_run);
            let previous = json!({ "prevResult": result });
            host.call("CHECK", &with(&conf, previous), &container)
                .works();
            host.call("DEL", &conf, &container).works();
            let all: &[&str] = if is_run {
                &["ADD", "CHECK", "DEL"]
            } else {
                &[]
            };
            assert_eq!(calls(), all);
        }
        host.is_clean();
    });
}

#[test]
fn what_the_plugin_does_not_take_is_the_programs() {
    with_reference(|host| {
        let range = json!({ "subnet": "10.1.0.0/16", "rangeStart": "10.1.3.1" });
        let container = host.container("c1");
        // The reference program passes over the first two, releases before 1.5 over the last as well.
        for (keys, is_refused) in [
            (json!({ "exclude": [] }), true),
            (
                json!({ "routes": [{ "dst": "10.9.0.0/16", "note": "x" }] }),
                true,
            ),
            (
                json!({ "routes": [{ "dst": "10.9.0.0/16", "mtu": 1400 }] }),
                false,
            ),
        ] {
            let conf = conf(with(&range, keys));
            if is_refused {
                host.call("ADD", &in_process(&conf), &container)
                    .fails(2, &["unsupported key"]);
            }
            host.call("ADD", &conf, &container).works();
            assert!(!is_its_own());
            host.call("DEL", &conf, &container).works();
            assert_eq!(reserved(), BTreeSet::new());
        }
        // Errors are its own, too.
        let said = host.call_with("ADD", &simple(), &container, "IP=10.1.2.1");
        said.fails(999, &["IPAM plugin `host-local`, ADD", "10.1.2.1"]);
        host.is_clean();
    });
}

#[test]
fn del_frees_addresses_whichever_program_is_there_by_then() {
    with_reference(|host| {
        let container = host.container("c1");
        let call = |verb: &str| host.call(verb, &simple(), &container).works();
        for is_killed in [false, true] {
            call("ADD");
            if is_killed {
                forget_addresses(&record());
            }
            install_own();
            call("DEL");
            assert_eq!((reserved(), calls()), (BTreeSet::new(), Vec::new()));
            call("ADD");
            assert_eq!(calls(), ["ADD"]);
            fs::remove_file(OWN).unwrap();
            call("DEL");
            assert_eq!(reserved(), BTreeSet::new());
            host.is_clean();
        }
    });
}

#[test]
fn check_asks_whoever_has_reserved() {
    with_reference(|host| {
        let container = host.container("c1");
        let result = host.call("ADD", &simple(), &container).works();
        let conf = with(&simple(), json!({ "prevResult": result }));
        install_own();
        host.call("CHECK", &conf, &container).works();
        let mut other = conf.clone();
        other["ipam"]["exclude"] = json!([]);
        host.call("CHECK", &other, &container).works();
        // As an earlier version of the plugin wrote it.
        let mut entry: Value = serde_json::from_slice(&fs::read(record()).unwrap()).unwrap();
        entry.as_object_mut().unwrap().remove("in_process");
        fs::write(record(), entry.to_string()).unwrap();
        host.call("CHECK", &conf, &container).works();
        host.call("DEL", &simple(), &container).works();
        assert_eq!((reserved(), calls()), (BTreeSet::new(), Vec::new()));
        host.is_clean();
        // A program that keeps its own account has reserved; by now the key has the plugin do it, or another program is named.
        let result = host.call("ADD", &simple(), &container).works();
        assert_eq!(calls(), ["ADD"]);
        let conf = with(&simple(), json!({ "prevResult": result }));
        let in_process = json!({ "ipamInProcess": true });
        let other = json!({ "ipam": { "type": "static" } });
        for now in [in_process, other] {
            host.call("CHECK", &with(&conf, now), &container).works();
        }
        assert_eq!(calls(), ["CHECK", "CHECK"]);
        host.call("DEL", &simple(), &container).works();
        host.is_clean();
    });
}

#[test]
fn gc_frees_what_the_plugin_has_reserved_and_nothing_of_others() {
    with_reference(|host| {
        let conf = with(&simple(), json!({ "cniVersion": "1.1.0" }));
        let mut containers = Vec::new();
        let done = killed(host, how_many() / 4, &mut containers, |_| conf.clone());
        assert!(
            reserved().len() > 2,
            "nothing was reserved ({done} were done)"
        );
        fs::write(format!("{STORE}/10.1.9.1"), "of another runtime\r\neth0").unwrap();
        thread::sleep(Duration::from_millis(50));
        let stay = json!({ "cni.dev/valid-attachments": attachments(&["first", "second"]) });
        host.call_network("STATUS", &conf).works();
        host.call_network("GC", &with(&conf, stay)).works();
        assert_eq!((reserved().len(), host.devices().len()), (3, 2));
        host.call_network("GC", &conf).works();
        assert_eq!(reserved(), BTreeSet::from(["10.1.9.1".to_owned()]));
        assert!(!Path::new(&record()).exists());
        host.is_clean();
    });
}
