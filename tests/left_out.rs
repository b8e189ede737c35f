//! What this host lacks: left out of a plan that nobody named paths of, refused where it was named.

use crate::support::beside;
use crate::support::cli::{Running, Said, hopyard};
use crate::support::plan::{Room, plan};

const SWITCHING: &str = "namespace-switching-2014";

/// As on a host without the programs of Open vSwitch and vde.
fn without_programs(arguments: &[&str]) -> Said {
    let mut command = hopyard(arguments);
    command.env("PATH", "/nonexistent");
    Running::start(command).wait()
}

#[test]
fn a_plan_runs_with_the_paths_that_are_there() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let how = [
        "--blocks", "1", "--window", "50ms", "--set", "flows=1", "--json",
    ];
    let said = without_programs(&[&["run", SWITCHING, "--out", &out], &how[..]].concat());
    let report = said.exits(0).json();
    said.says(&[
        "all of their cells are left out: ovs-veth, ovs-internal (",
        "install package `openvswitch-switch`",
    ]);
    let cells = report["cells"].as_array().unwrap();
    let mut paths: Vec<&str> = cells.iter().map(|c| c["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths, ["bridge-nf", "veth"]);
    assert!(cells.iter().all(|cell| cell["status"] == "ok"));
    let warnings = report["warnings"].as_array().unwrap();
    let told = warnings.iter().find(|w| w["code"] == "left_out").unwrap();
    let told = told["message"].as_str().unwrap();
    assert!(told.contains("ovs-veth, ovs-internal ("), "{told}");
    assert!(told.contains("openvswitch-switch"), "{told}");

    // NS4 compares the two that are not there.
    let judged = without_programs(&["claims", "--from", &out, "NS4", "--format", "json"]);
    let judged = judged.exits(0).json();
    let claim = &judged["reports"][0]["claims"][0];
    assert_eq!(claim["verdict"], "untestable", "{claim:#}");
    assert!(
        claim.to_string().contains("openvswitch-switch"),
        "{claim:#}"
    );
}

#[test]
fn what_was_named_or_leaves_nothing_is_refused() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let refused = |arguments: &[&str], words: &[&str]| {
        let all = [&["run", "--out", &out], arguments].concat();
        without_programs(&all).exits(2).says(words);
        assert!(!room.at("run").exists());
    };
    refused(
        &[SWITCHING, "--paths", "veth,ovs-veth"],
        &["path `ovs-veth` cannot be built here", "openvswitch-switch"],
    );
    refused(
        &[SWITCHING, "--base", "ovs-veth"],
        &["cannot compare with `ovs-veth`", "openvswitch-switch"],
    );
    // A plan of one's own names its paths, unless it says otherwise.
    let named = plan(&[("paths", "[\"veth\", \"tap-vde\"]")]);
    refused(
        &[&room.file("named.toml", named)],
        &["path `tap-vde` cannot be built here", "vde2"],
    );
    let nothing = plan(&[
        ("paths", "[\"tap-vde\"]"),
        ("base", "\"tap-vde\""),
        ("where_installed", "true"),
    ]);
    refused(
        &[&room.file("nothing.toml", nothing)],
        &["this host can build no path of the plan: tap-vde: ", "vde2"],
    );
}
