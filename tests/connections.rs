//! Load `tcp_conns`: connections that are opened at given instants, in real namespaces.

use serde_json::Value;

use crate::support::cli::run;
use crate::support::plan::Room;
use crate::support::{beside, unless_disturbed};

/// What a cell's estimates are, by name.
fn value(cell: &Value, name: &str) -> Option<f64> {
    cell["estimates"][name]["value"].as_f64()
}

#[test]
fn connections_come_and_go_at_the_rate_asked_for() {
    let _beside = beside();
    let room = Room::new();
    let mut nth = 0;
    let sample = || {
        nth += 1;
        let out = room.name(&nth.to_string());
        let what = [
            "run",
            "--paths",
            "veth",
            "--loads",
            "tcp_conns",
            "--blocks",
            "2..2",
        ];
        let set = [
            "flows=1,2",
            "connection_rate=500,2000",
            "distribution=constant,poisson",
        ];
        let set = set.iter().flat_map(|set| ["--set", set]);
        let how = ["--window", "200ms", "--out", &out];
        let said = run(&what.into_iter().chain(set).chain(how).collect::<Vec<_>>());
        if said.status.code() != Some(0) {
            return Err(said.to_string());
        }
        let report = run(&["report", &out, "--format", "json"]).exits(0).json();
        let cells = report["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 8);
        for cell in cells {
            assert_eq!(cell["way"]["proved"], true, "{cell:#}");
            let asked = cell["axes"]["connections_per_s"].as_f64().unwrap();
            let opened = value(cell, "transactions_per_s").unwrap();
            // Of 100 connections at random instants the number varies by ten.
            if !(0.6..1.4).contains(&(opened / asked)) {
                return Err(format!("{opened} of {asked} connections/s: {cell:#}"));
            }
            assert!(value(cell, "unfinished_ratio").is_some(), "{cell:#}");
            assert!(value(cell, "lost_ratio").is_none(), "{cell:#}");
            let connect = value(cell, "connect_p50_ns").unwrap();
            assert!(connect > 0.0, "{cell:#}");
            assert!(
                connect < value(cell, "latency_p50_ns").unwrap() * 1.5,
                "{cell:#}"
            );
        }
        run(&["report", &out])
            .exits(0)
            .prints(&["tcp_conns", "connection_rate"]);
        Ok(())
    };
    unless_disturbed(sample).unwrap();
}

/// A wire that carries a fraction of what is asked for: what is not kept up is said, and the run is no failure.
#[test]
fn what_is_not_kept_up_is_said() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    run(&[
        "run",
        "--paths",
        "veth-route",
        "--peer",
        "far",
        "--loads",
        "tcp_conns",
        "--set",
        "rate=1mbit",
        "--set",
        "connection_rate=5000",
        "--blocks",
        "2..2",
        "--window",
        "300ms",
        "--out",
        &out,
    ])
    .exits(0);
    let report = run(&["report", &out, "--format", "json"]).exits(0).json();
    let cell = &report["cells"][0];
    assert!(value(cell, "unfinished_ratio").unwrap() > 0.3, "{report:#}");
    assert!(value(cell, "latency_p50_ns").unwrap() > 50e6, "{report:#}");
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("did not keep up with the connections asked for"),
        "{warnings}"
    );
}

#[test]
fn rates_that_cannot_be_are_refused() {
    let _beside = beside();
    for (set, why) in [
        ("connection_rate=0", "connection_rate"),
        ("connection_rate=2000000", "connection_rate"),
        ("connection_rate=many", "connection_rate"),
    ] {
        run(&[
            "run",
            "--paths",
            "veth-route",
            "--loads",
            "tcp_conns",
            "--set",
            set,
        ])
        .exits(2)
        .says(&[why]);
    }
    run(&[
        "run",
        "--paths",
        "veth-route",
        "--loads",
        "tcp_conns",
        "--set",
        "connection_rate=20",
        "--set",
        "flows=8",
    ])
    .exits(2)
    .says(&["20 connections per second over 8 flows are too seldom"]);
}
