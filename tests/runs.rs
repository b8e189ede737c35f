//! `hopyard run` and `hopyard report`, from the plan to the document.

use std::time::Duration;

use hopyard::report::EXPORTS;
use serde_json::Value;

use crate::support::cli::{Running, Said, hopyard, run};
use crate::support::host::unharmed;
use crate::support::plan::{Room, plan};
use crate::support::{beside, schema, tell};

/// Every format that is text.
fn formats() -> impl Iterator<Item = &'static str> {
    let texts = EXPORTS.iter().filter(|export| !export.is_binary());
    texts.map(|export| export.name)
}

/// The samples of a run directory: (block, attempt, cell) in the order of the run.
fn order(room: &Room, name: &str) -> Vec<[u64; 3]> {
    let text = std::fs::read_to_string(room.at(name).join("samples.jsonl")).unwrap();
    text.lines()
        .map(|line| {
            let sample: Value = serde_json::from_str(line).unwrap();
            ["block", "attempt", "cell"].map(|key| sample[key].as_u64().unwrap())
        })
        .collect()
}

fn start(room: &Room, name: &str, arguments: &[&str]) -> Said {
    let out = room.name(name);
    let mut command = hopyard(&["run", "--out", &out]);
    command.args(arguments);
    Running::start(command).wait()
}

#[test]
fn a_run_says_what_its_schema_promises_and_can_be_reported_again() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let said = start(
            &room,
            "run",
            &[
                "--paths",
                "veth,bridge",
                "--loads",
                "tcp_rr",
                "--blocks",
                "2",
                "--window",
                "100ms",
                "--seed",
                "7",
                "--json",
            ],
        );
        let report = said.exits(0).json();
        let schema: Value = run(&["schema"]).exits(0).json();
        schema::check(&schema, &report);
        contract(&report);
        assert_eq!(report["run"]["seed"], 7);
        assert_eq!(report["run"]["blocks"], 2);
        assert_eq!(report["run"]["window_s"], 0.1);
        assert_eq!(report["run"]["complete"], true);
        // Two blocks are a quick look: figures, no verdicts.
        assert_eq!(report["run"]["quick_look"], true);
        assert!(report["warnings"].to_string().contains("quick_look"));
        for cell in report["cells"].as_array().unwrap() {
            assert_eq!(cell["status"], "ok");
            assert_eq!(cell["cause"], Value::Null);
            assert_eq!(cell["way"]["proved"], true, "{cell:#}");
            assert!(
                cell["estimates"]["transactions_per_s"]["value"]
                    .as_f64()
                    .unwrap()
                    > 100.0
            );
            assert!(
                cell["estimates"].get("goodput_bps").is_none(),
                "what was not measured is absent"
            );
            for verdict in cell["verdicts"].as_object().unwrap().values() {
                assert_eq!(verdict["verdict"], Value::Null, "{cell:#}");
                assert_eq!(verdict["base"], "veth");
            }
        }
        // The same again from what is stored.
        let directory = room.name("run");
        for format in formats() {
            let again = run(&["report", &directory, "--format", format]);
            again.exits(0);
            assert!(again.stdout.len() > 100, "{again}");
            assert!(again.stderr.is_empty(), "{again}");
            let file = room.name(format!("report.{format}").as_str());
            let quiet = run(&["report", &directory, "--format", format, "-o", &file]);
            quiet.exits(0);
            assert!(quiet.stdout.is_empty(), "{quiet}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), again.stdout);
        }
        assert_eq!(
            run(&["report", &directory, "--format", "json"]).stdout,
            said.stdout
        );
        assert_eq!(
            run(&["report", &directory]).stdout,
            run(&["report", &directory, "--format", "text"]).stdout
        );
        run(&["report", &directory, "--format", "papyrus"])
            .exits(2)
            .says(&["papyrus", "markdown"]);
        run(&["report", &directory, "-o", "/nonexistent/x"])
            .exits(2)
            .says(&["cannot write /nonexistent/x", "No such file"]);
    });
}

/// The core of the document that scripts rely on, by hand.
fn contract(report: &Value) {
    assert_eq!(report["schema"], "hopyard/run/1");
    let has = |value: &Value, keys: &[&str]| {
        for key in keys {
            assert!(value.get(key).is_some(), "`{key}` is missing: {value:#}");
        }
    };
    has(
        &report["run"],
        &[
            "id",
            "plan",
            "seed",
            "started",
            "blocks",
            "window_s",
            "environment",
        ],
    );
    has(
        &report["run"]["environment"],
        &[
            "hopyard_version",
            "kernel_release",
            "cpu_model",
            "cpus",
            "mitigations",
            "sysctls",
        ],
    );
    for cell in report["cells"].as_array().unwrap() {
        has(
            cell,
            &[
                "path",
                "peer",
                "load",
                "axes",
                "status",
                "cause",
                "estimates",
                "verdicts",
                "way",
            ],
        );
        for estimate in cell["estimates"].as_object().unwrap().values() {
            has(estimate, &["value", "low", "high", "confidence", "n"]);
        }
        has(&cell["way"], &["proved", "devices"]);
        for device in cell["way"]["devices"].as_array().unwrap() {
            has(device, &["namespace", "name", "packets"]);
        }
    }
    for warning in report["warnings"].as_array().unwrap() {
        has(warning, &["code", "message"]);
    }
}

#[test]
fn every_load_has_its_figures() {
    let _beside = beside();
    let room = Room::new();
    let loads = "tcp_stream,tcp_maerts,tcp_rr,tcp_crr,udp_stream,udp_flood,udp_paced,udp_rr";
    let said = start(
        &room,
        "run",
        &[
            "--paths", "veth", "--loads", loads, "--blocks", "2", "--window", "100ms", "--json",
        ],
    );
    let report = said.exits(0).json();
    schema::check(&run(&["schema"]).json(), &report);
    for cell in report["cells"].as_array().unwrap() {
        let wanted: &[&str] = match cell["load"].as_str().unwrap() {
            "tcp_stream" | "tcp_maerts" => &["goodput_bps", "bytes_per_skb", "retransmits_per_s"],
            "udp_stream" => &["goodput_bps", "packets_per_s", "lost_ratio"],
            "udp_flood" => &[
                "packets_per_s",
                "lost_ratio",
                "jitter_pdv_p99_ns",
                "jitter_rfc3550_ns",
                "interarrival_p50_ns",
                "reordered_ratio",
                "receiver_busy_ratio",
                "receiver_dropped_ratio",
            ],
            "udp_paced" => &["latency_p50_ns", "jitter_rfc3550_ns", "receiver_busy_ratio"],
            // Far quantiles need more transactions than a slow machine makes in such a window.
            _ => &["transactions_per_s", "latency_p50_ns"],
        };
        assert_eq!(cell["status"], "ok", "{cell:#}");
        for name in wanted {
            let value = cell["estimates"][name]["value"].as_f64();
            assert!(value.is_some_and(f64::is_finite), "{name}: {cell:#}");
        }
        let numbered = ["udp_flood", "udp_paced"].contains(&cell["load"].as_str().unwrap());
        assert_eq!(
            cell["estimates"]["jitter_rfc3550_ns"].is_object(),
            numbered,
            "{cell:#}"
        );
        let flows = cell["flows"].as_array().map_or(0, Vec::len);
        assert_eq!(flows, usize::from(numbered), "{cell:#}");
        // One flow makes no runs.
        assert!(
            cell["estimates"]["run_length_p50_packets"].is_null(),
            "{cell:#}"
        );
        for (name, estimate) in cell["estimates"].as_object().unwrap() {
            let [low, value, high] = ["low", "value", "high"].map(|k| estimate[k].as_f64());
            if let (Some(low), Some(value), Some(high)) = (low, value, high) {
                assert!(low <= value && value <= high, "{name}: {estimate}");
            }
        }
    }
    for format in formats() {
        run(&["report", &room.name("run"), "--format", format]).exits(0);
    }
}

#[test]
fn the_same_seed_gives_the_same_order_of_cells() {
    let _beside = beside();
    let room = Room::new();
    let file = room.file(
        "mine.toml",
        plan(&[
            ("paths", "[\"veth\", \"bridge\", \"native\"]"),
            ("loads", "[\"tcp_rr\", \"udp_rr\"]"),
            ("window", "\"50ms\""),
            ("warm_up", "\"10ms\""),
            ("blocks", "\"2..2\""),
        ]),
    );
    let of = |name: &str, seed: &str| {
        start(&room, name, &[&file, "--seed", seed]).exits(0);
        order(&room, name)
    };
    // A block that the hypervisor disturbed is measured again, so first attempts are compared.
    let first = |samples: Vec<[u64; 3]>| -> Vec<[u64; 3]> {
        samples
            .into_iter()
            .filter(|[_, attempt, _]| *attempt == 0)
            .collect()
    };
    let (one, again, other) = (
        first(of("one", "7")),
        first(of("again", "7")),
        first(of("other", "8")),
    );
    assert_eq!(one, again);
    assert_ne!(one, other);
    for block in 0..2 {
        let mut cells: Vec<u64> = one.iter().filter(|s| s[0] == block).map(|s| s[2]).collect();
        cells.sort_unstable();
        assert_eq!(
            cells,
            [0, 1, 2, 3, 4, 5],
            "each block visits each cell once"
        );
    }
    let blocks: Vec<Vec<u64>> = (0..2)
        .map(|block| one.iter().filter(|s| s[0] == block).map(|s| s[2]).collect())
        .collect();
    assert_ne!(blocks[0], blocks[1], "each block has an order of its own");
}

#[test]
fn a_seed_nobody_chose_is_recorded_and_differs() {
    let _beside = beside();
    let room = Room::new();
    let file = room.file("mine.toml", plan(&[("window", "\"50ms\"")]));
    let seed =
        |name: &str| start(&room, name, &[&file, "--json"]).exits(0).json()["run"]["seed"].clone();
    assert_ne!(seed("one"), seed("other"));
}

#[test]
fn the_time_limit_ends_a_run_with_what_it_has() {
    let _beside = beside();
    let room = Room::new();
    let said = start(
        &room,
        "run",
        &[
            "--paths",
            "veth,bridge",
            "--loads",
            "tcp_rr,udp_rr",
            "--blocks",
            "50",
            "--window",
            "200ms",
            "--time-limit",
            "2s",
            "--json",
        ],
    );
    let report = said
        .exits(0)
        .says(&["more than the time limit of 2s"])
        .json();
    tell(&format!("a time limit of 2 s took {:?}", said.took));
    // Preparing comes before, the sample under way after; fifty blocks take more than half a minute.
    assert!(said.took < Duration::from_secs(20), "{said}");
    let blocks = report["run"]["blocks"].as_u64().unwrap();
    assert!((1..50).contains(&blocks), "{blocks} blocks");
    assert_eq!(
        std::fs::read_to_string(room.at("run/end.json")).unwrap(),
        "\"time_limit\"\n"
    );
    assert_eq!(report["cells"][0]["status"], "ok");
}

#[test]
fn a_run_goes_to_a_directory_of_its_own_without_out() {
    let _beside = beside();
    let room = Room::new();
    let arguments = [
        "run", "--paths", "veth", "--loads", "tcp_rr", "--blocks", "1", "--window", "50ms",
    ];
    for number in 1..=2 {
        let mut command = hopyard(&arguments);
        command.current_dir(room.path());
        let said = Running::start(command).wait();
        said.exits(0).says(&[
            "the run is in hopyard-runs/",
            "-paths",
            "hopyard report hopyard-runs/",
        ]);
        assert_eq!(
            std::fs::read_dir(room.at("hopyard-runs")).unwrap().count(),
            number
        );
    }
}

#[test]
fn two_runs_at_once_do_not_meet() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let file = room.file(
            "mine.toml",
            plan(&[
                ("paths", "[\"bridge\", \"veth-route\"]"),
                ("base", "\"bridge\""),
            ]),
        );
        let runs = ["one", "two", "three"].map(|name| {
            Running::start(hopyard(&[
                "run",
                &file,
                "--json",
                "--out",
                &room.name(name),
            ]))
        });
        for running in runs {
            let report = running.wait().exits(0).json();
            for cell in report["cells"].as_array().unwrap() {
                assert_eq!(cell["way"]["proved"], true, "{cell:#}");
            }
        }
    });
}

#[test]
fn a_sweep_has_a_cell_for_each_value() {
    let _beside = beside();
    let room = Room::new();
    let said = start(
        &room,
        "run",
        &[
            "--paths",
            "veth",
            "--loads",
            "tcp_rr,tcp_stream",
            "--set",
            "message_size=64,16KiB",
            "--set",
            "flows=1,2",
            "--blocks",
            "1",
            "--window",
            "50ms",
            "--json",
        ],
    );
    let report = said.exits(0).json();
    let cells = report["cells"].as_array().unwrap();
    // An axis that a load does not have makes no cells for it.
    let of = |load: &str| cells.iter().filter(|c| c["load"] == load).count();
    assert_eq!((of("tcp_rr"), of("tcp_stream")), (2, 4));
    for cell in cells {
        assert_eq!(
            cell["axes"].get("message_size_bytes").is_some(),
            cell["load"] == "tcp_stream"
        );
    }
}
