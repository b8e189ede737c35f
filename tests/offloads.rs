//! `hopyard doctor --offloads`: which offload matters, on real traffic.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::cli::{Running, Said, hopyard, nobody, run};
use crate::support::host::unharmed;
use crate::support::plan::Room;
use crate::support::{beside, schema, tell, until};

fn sweep(room: &Room, name: &str, path: &str, arguments: &[&str]) -> Running {
    let out = room.name(name);
    let mut command = hopyard(&["doctor", "--offloads", path, "--out", &out]);
    command.args(arguments);
    Running::start(command)
}

/// A combination by what was asked for.
fn combination<'a>(report: &'a Value, rest: &str, flags: &[&str]) -> &'a Value {
    let all = report["offloads"]["combinations"].as_array().unwrap();
    let wanted = serde_json::json!({ "rest": rest, "flags": flags });
    let found = all.iter().find(|c| c["change"] == wanted);
    found.unwrap_or_else(|| panic!("no {wanted}: {report:#}"))
}

#[test]
fn a_sweep_measures_what_the_kernel_makes_of_each_combination() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let few = ["--blocks", "2", "--window", "50ms", "--seed", "7", "--json"];
        let said = sweep(&room, "run", "veth", &few).wait();
        let report = said.exits(0).json();
        schema::check(&run(&["schema"]).exits(0).json(), &report);
        assert_eq!(report["run"]["base"], "offload");
        assert_eq!(report["run"]["seed"], 7);
        whole(&report);
        // Two blocks are a quick look.
        let finding = &report["offloads"]["findings"][0];
        assert_eq!(finding["load"], "tcp_stream");
        assert!(finding.get("flag").is_none(), "{finding:#}");
        assert!(
            finding["sentence"].as_str().unwrap().contains("quick look"),
            "{finding:#}"
        );
        let again = run(&["report", &room.name("run"), "--format", "json"]);
        assert_eq!(again.exits(0).stdout, said.stdout);
        let text = run(&["report", &room.name("run")]);
        text.exits(0).prints(&[
            "vs all on",
            "vs all off",
            "tso and gro off",
            "lro is fixed off",
            "Which offload matters",
        ]);
        assert!(text.stdout.starts_with("veth now has "), "{text}");
        for format in ["markdown", "csv", "netperf"] {
            run(&["report", &room.name("run"), "--format", format]).exits(0);
        }
    });
}

/// What holds of every veth: LRO cannot be had, and TSO not without checksums.
fn whole(report: &Value) {
    let fixed = &report["offloads"]["fixed"];
    assert_eq!(
        *fixed,
        serde_json::json!([{ "flag": "lro", "state": "off" }])
    );
    let now = report["offloads"]["now"].as_array().unwrap();
    assert_eq!(now.len(), 5, "{now:?}");
    let is_known = |flag: &Value| ["on", "off"].contains(&flag["state"].as_str().unwrap());
    assert!(now.iter().all(is_known), "{now:?}");
    assert!(
        now.contains(&fixed[0]),
        "what cannot be had is off now: {now:?}"
    );
    let tso = combination(report, "off", &["tso"]);
    assert_eq!(
        tso["same_as"],
        serde_json::json!({ "rest": "off", "flags": [] })
    );
    let checksum = combination(report, "on", &["tx_checksum"]);
    assert_eq!(
        checksum["changed"],
        serde_json::json!(["tx_checksum", "tso"])
    );
    let combinations = report["offloads"]["combinations"].as_array().unwrap();
    let measured = combinations.iter().filter(|c| c.get("same_as").is_none());
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(measured.count(), cells.len(), "{report:#}");
    for cell in cells {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert_eq!(cell["way"]["proved"], true, "{cell:#}");
        // What the cell says it is, it is.
        let axes = &cell["axes"];
        for flag in ["tx_checksum", "tso", "gso", "gro"] {
            let asked = axes.get(flag).unwrap_or(&axes["offload"]);
            let known = flag == "tso" && axes.get("tx_checksum") == Some(&"off".into());
            assert!(
                cell["offloads"][flag] == *asked || known,
                "{flag}: {cell:#}"
            );
        }
    }
}

/// The truth is known: whether anybody segments for TCP decides what a bridge costs.
#[test]
fn segmentation_is_named_for_bulk_tcp_through_a_bridge() {
    let _beside = beside();
    let room = Room::new();
    // Beside other tests each block takes the time that it may have.
    let enough = ["--blocks", "8", "--window", "100ms", "--json"];
    let limit = ["--time-limit", "60s"];
    let said = sweep(&room, "run", "bridge", &[&enough[..], &limit].concat()).wait();
    let report = said.exits(0).json();
    assert_eq!(report["run"]["quick_look"], false, "{said}");
    whole(&report);
    let finding = &report["offloads"]["findings"][0];
    tell(finding["sentence"].as_str().unwrap());
    for remark in finding["remarks"].as_array().unwrap() {
        tell(remark.as_str().unwrap());
    }
    let flag = finding["flag"].as_str().unwrap();
    assert!(["tso", "gso"].contains(&flag), "{finding:#}");
    let goodput = &finding["verdicts"]["goodput_bps"];
    assert_eq!(goodput["verdict"], "different", "{finding:#}");
    assert!(
        goodput["ratio"]["high"].as_f64().unwrap() < 0.8,
        "{finding:#}"
    );
    // That checksums take TSO along is not held to be their own doing.
    let remarks = finding["remarks"].to_string();
    assert!(
        remarks.contains("tx_checksum off takes tso off with it"),
        "{finding:#}"
    );
}

/// Runs the doctor with a request it cannot meet; nothing comes to be.
fn refused(arguments: &[&str]) -> Said {
    let room = Room::new();
    let out = room.name("run");
    let mut command = hopyard(&["doctor", "--out", &out]);
    command.args(arguments).current_dir(room.path());
    let said = Running::start(command).wait();
    said.exits(2);
    assert!(said.stdout.is_empty(), "{said}");
    assert!(!room.at("run").exists(), "{said}");
    said
}

#[test]
fn a_wrong_request_is_refused_before_anything_is_built() {
    let _beside = beside();
    unharmed(|| {
        refused(&["--offloads", "wormhole"])
            .says(&["there is no path `wormhole`", "choose native, unix"]);
        refused(&["--offloads", "veth", "--peer", "far"])
            .says(&["path `veth` has no peer `far`", "choose local, host"]);
        refused(&["--offloads", "veth", "--loads", "tcp_rrr"]).says(&["tcp_rrr", "tcp_stream"]);
        refused(&["--offloads", "veth", "--blocks", "0"]).says(&["not a number of blocks"]);
        refused(&["--peer", "local"]).says(&["--offloads <PATH>"]);
        for path in hopyard::lab::PATHS {
            if path.available().is_err() {
                refused(&["--offloads", path.name]).says(&[path.name, "cannot"]);
            }
        }
    });
}

#[test]
fn without_root_nothing_is_built() {
    let _beside = beside();
    let room = Room::new();
    let said = nobody(&room, &["doctor", "--offloads", "veth"]);
    said.exits(2).says(&["root"]);
    assert!(!room.at("hopyard-runs").exists(), "{said}");
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let running = sweep(&room, "run", "veth", &["--window", "100ms"]);
        let samples = room.at("run/samples.jsonl");
        let text = || std::fs::read_to_string(&samples).unwrap_or_default();
        until(
            "the second block is there",
            Duration::from_secs(200),
            || text().contains("\"block\":1,"),
        );
        // Cells that take turns are written down together, so that the third may be whole as well.
        let namespaces = running.namespaces();
        running.signal(Signal::SIGINT);
        let said = running.wait_for_nothing_left(&namespaces);
        said.exits(130).prints(&["Cut short", "vs all on"]);
        let whole = ["quick look of 2", "quick look of 3"];
        assert!(
            whole.iter().any(|blocks| said.stdout.contains(blocks)),
            "{said}"
        );
    });
}
