//! Workers that die, stop, keep silent or talk nonsense: a failed cell with its cause, and on it goes.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use hopyard::lab::Lab;
use hopyard::load::protocol::VERSION;
use hopyard::load::remote::Remote;
use hopyard::model::{LoadKind, Peer};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::support::cli::{Running, Said, hopyard, pid};
use crate::support::host::unharmed;
use crate::support::plan::{Room, measurements, plan};
use crate::support::procs::Process;
use crate::support::traces::Traces;
use crate::support::{apart, beside, cell, sampler, tell, until};

/// Longer than any patience of the product, shorter than what stands in for a worker.
const IN_TIME: Duration = Duration::from_secs(60);

/// Two cells in two blocks; in the first sample, while its traffic flows, something happens to one of the workers.
fn two_cells(room: &Room, status: i32, change: impl FnOnce(&[Process])) -> (Said, Value) {
    let file = room.file(
        "mine.toml",
        plan(&[
            ("paths", "[\"veth\", \"bridge\"]"),
            ("loads", "[\"tcp_stream\"]"),
            // The window opens with the traffic, so that what is done to a worker is done in it.
            ("warm_up", "\"0s\""),
            // Not over before what is seen of it is acted upon.
            ("window", "\"1s\""),
            ("blocks", "\"2..2\""),
        ]),
    );
    let out = room.name("run");
    let running = Running::start(hopyard(&[
        "run", &file, "--json", "--seed", "1", "--out", &out,
    ]));
    let mut workers = Vec::new();
    until("traffic flows", IN_TIME, || {
        let found = running.in_traffic().map(|(_, workers)| workers);
        workers = found.unwrap_or_default();
        !workers.is_empty()
    });
    let namespaces = running.namespaces();
    change(&workers);
    let said = running.wait_for_nothing_left(&namespaces);
    said.exits(status);
    let report = said.json();
    (said, report)
}

/// One cell of the two failed once, with a cause; everything else was measured.
fn one_sample_failed(report: &Value) -> String {
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    let failed: Vec<&Value> = cells.iter().filter(|c| c["failed_samples"] == 1).collect();
    let [failed] = failed[..] else {
        panic!("{cells:#?}");
    };
    assert_eq!(failed["status"], "failed", "{failed:#}");
    let other = cells.iter().find(|c| c["failed_samples"] == 0).unwrap();
    assert_eq!(other["status"], "ok", "{other:#}");
    assert!(other["estimates"]["goodput_bps"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(other["estimates"]["goodput_bps"]["n"], 2, "{other:#}");
    // What there is comes from the other block, and no zero is among it.
    if let Some(estimate) = failed["estimates"].get("goodput_bps") {
        assert_eq!(estimate["n"], 1, "{failed:#}");
        assert!(estimate["value"].as_f64().unwrap() > 0.0, "{failed:#}");
    }
    assert!(report["warnings"].to_string().contains("\"failed\""));
    failed["cause"].as_str().unwrap().to_owned()
}

#[test]
fn a_killed_worker_fails_its_cell_and_the_run_goes_on() {
    // It looks for network namespaces by number, and numbers come again.
    let _beside = beside();
    unharmed(|| {
        for victim in [0, 1] {
            let room = Room::new();
            let (said, report) = two_cells(&room, 1, |workers| {
                kill(pid(workers[victim].pid), Signal::SIGKILL).unwrap();
            });
            let cause = one_sample_failed(&report);
            tell(&format!("a killed worker: {cause}"));
            said.says(&["failed: ", &cause]);
            // Its peer is often heard first, which knows of a lost connection alone.
            assert!(
                cause.starts_with("the worker at `")
                    && cause.contains("died while hopyard waited for it to")
                    && cause.ends_with("signal: 9 (SIGKILL)"),
                "{cause}"
            );
        }
    });
}

/// As a machine that has no CPU for it when the window closes, for longer than the window is.
#[test]
fn a_window_that_a_worker_missed_is_measured_again() {
    // What is done in the window comes too late where others keep the CPUs.
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let (_, report) = two_cells(&room, 0, |workers| {
            let worker = pid(workers[0].pid);
            kill(worker, Signal::SIGSTOP).unwrap();
            std::thread::sleep(Duration::from_millis(2500));
            kill(worker, Signal::SIGCONT).unwrap();
        });
        for cell in report["cells"].as_array().unwrap() {
            assert_eq!(cell["status"], "ok", "{cell:#}");
            assert_eq!(cell["estimates"]["goodput_bps"]["n"], 2, "{cell:#}");
        }
        let measured = measurements(&room);
        let again = measured
            .iter()
            .filter(|m| m["missed_windows"].as_u64() > Some(0));
        let longest_ns = again.filter_map(|m| m["window_ns"].as_u64()).max();
        // The plan's is a second, and a missed one is repeated for twice as long.
        assert!(longest_ns > Some(1_800_000_000), "{longest_ns:?}");
        let warnings = report["warnings"].as_array().unwrap();
        let warning = warnings.iter().find(|w| w["code"] == "missed_windows");
        let message = warning.unwrap()["message"].as_str().unwrap();
        assert!(message.contains("measured again"), "{message}");
        tell(message);
    });
}

#[test]
fn a_stopped_worker_fails_its_cell_and_the_run_goes_on() {
    // It looks for network namespaces by number, and numbers come again.
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let (said, report) = two_cells(&room, 1, |workers| {
            kill(pid(workers[0].pid), Signal::SIGSTOP).unwrap();
        });
        let cause = one_sample_failed(&report);
        tell(&format!("a stopped worker, after {:?}: {cause}", said.took));
        assert!(
            cause.starts_with("the worker at `")
                && cause.ends_with("` did not report what it counted within 5s"),
            "{cause}"
        );
        assert!(said.took < IN_TIME, "{said}");
    });
}

/// A program that stands in for the worker: a shell script.
fn stand_in(room: &Room, script: &str) -> PathBuf {
    room.program("stand-in", format!("#!/bin/sh\n{script}\n"))
        .into()
}

fn hello(version: u32) -> String {
    format!("echo '{{\"is\":\"hello\",\"protocol\":{version},\"version\":\"0.0.1\"}}'")
}

/// Reads the number of the request `$x`, which the answer has too.
const NUMBER: &str = r#"n=${x#*'"nr":'}; n=${n%%[!0-9]*}"#;

/// What comes of a sample whose workers are a script; nothing may stay behind.
fn with_stand_in(script: &str) -> (String, Duration) {
    let before = Traces::now();
    let room = Room::new();
    let mut sampler = sampler(100, 20);
    sampler.program = stand_in(&room, script);
    let cell = cell("veth", Peer::Local, LoadKind::TcpStream, &[]);
    let began = Instant::now();
    let error = sampler.measure(&cell, 0.0).unwrap_err();
    let took = began.elapsed();
    drop((sampler, room));
    let text = hopyard::chain(&error);
    tell(&format!("`{script}`, after {took:?}: {text}"));
    before.unchanged().unwrap();
    (text, took)
}

#[test]
fn a_receiver_that_never_starts_is_given_up() {
    apart(|| {
        let (text, took) = with_stand_in(&format!("{}; exec sleep 100", hello(VERSION)));
        assert_eq!(text, "the worker at `b` did not listen within 5s");
        assert!(took < IN_TIME, "{took:?}");
    });
}

#[test]
fn a_worker_that_does_not_greet_is_given_up() {
    apart(|| {
        let (text, took) = with_stand_in("exec sleep 100");
        assert_eq!(text, "the worker at `a` did not start within 5s");
        assert!(took < IN_TIME, "{took:?}");
    });
}

#[test]
fn a_worker_that_ends_at_once_says_how() {
    apart(|| {
        let (text, _) = with_stand_in("exit 9");
        assert!(
            text.contains(
                "the worker at `a` died while hopyard waited for it to start: exit status: 9"
            ),
            "{text}"
        );
    });
}

#[test]
fn a_worker_that_is_not_heard_or_does_not_listen_any_more_is_not_called_dead() {
    apart(|| {
        let (text, _) = with_stand_in("exec >&-; exec sleep 100");
        assert_eq!(
            text,
            "the worker at `a` closed its output while hopyard waited for it to start, though it still runs: \
         whatever starts it must leave that open until it ends"
        );
        let (text, _) = with_stand_in(&format!("exec <&-; {}; exec sleep 100", hello(VERSION)));
        assert!(
            text.starts_with(
                "the worker at `b` closed its input while hopyard waited for it to listen, though"
            ),
            "{text}"
        );
    });
}

#[test]
fn garbage_from_a_worker_is_shown_for_what_it_is() {
    apart(|| {
        for garbage in [
            "echo 'Welcome to this machine!'",
            "echo",
            "echo '{\"is\":\"what\"}'",
            "printf '\\377\\376\\n'",
        ] {
            let (text, _) = with_stand_in(&format!("{garbage}; exec sleep 100"));
            assert!(
                text.starts_with("unexpected reply of the worker at `a`: "),
                "{text}"
            );
            let (text, _) = with_stand_in(&format!(
                "{}; read x; {garbage}; exec sleep 100",
                hello(VERSION)
            ));
            assert!(
                text.starts_with("unexpected reply of the worker at `b`: "),
                "{text}"
            );
        }
        // Right words at the wrong time.
        let (text, _) = with_stand_in(&format!(
            "{}; read x; {NUMBER}; echo '{{\"nr\":'$n',\"is\":\"connected\"}}'; exec sleep 100",
            hello(VERSION)
        ));
        assert!(
            text.contains("unexpected reply of the worker at `") && text.contains("`: Connected"),
            "{text}"
        );
    });
}

/// What comes of workers that answer as they should and report this many bytes and slices.
fn with_counts(bytes: u64, slices: usize) -> String {
    let slices = vec!["1"; slices].join(",");
    let done = format!(
        "{{\"nr\":'$n',\"is\":\"done\",\"window_ns\":100000000,\"late_ns\":0,\
        \"received\":{{\"bytes\":{bytes},\"messages\":1,\"transactions\":0}},\
        \"sent\":{{\"bytes\":1,\"messages\":1,\"transactions\":0}},\
        \"send_errors\":0,\"timeouts\":0,\"slices\":[{slices}],\"latency\":null,\"tcp\":null,\
        \"flows\":[],\"scheduling\":{{}}}}"
    );
    let (text, _) = with_stand_in(&format!(
        "{}; while read x; do {NUMBER}; case $x in \
            *'\"do\":\"serve\"'*) echo '{{\"nr\":'$n',\"is\":\"serving\",\"ports\":[9]}}';; \
            *'\"do\":\"connect\"'*|*'\"do\":\"accept\"'*) echo '{{\"nr\":'$n',\"is\":\"connected\"}}';; \
            *) echo '{done}';; \
         esac; done",
        hello(VERSION)
    ));
    text
}

#[test]
fn a_count_that_no_window_holds_is_an_error() {
    apart(|| {
        assert_eq!(
            with_counts(u64::MAX, 1),
            "the worker at `a` reports an impossible count; start the same version of hopyard at \
         both ends: received: 18446744073709551615 is more than any window holds (281474976710656)"
        );
    });
}

#[test]
fn a_list_longer_than_any_load_makes_is_an_error() {
    apart(|| {
        let text = with_counts(1, 5000);
        let words = "slices: 5000 of them, and a load makes 100 at most";
        assert!(text.ends_with(words), "{text}");
    });
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    apart(|| {
        // From here on, not what earlier tests took (`proc_pid_clear_refs(5)`).
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let peak = || -> u64 {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
            line.split_ascii_whitespace()
                .nth(1)
                .unwrap()
                .parse()
                .unwrap()
        };
        let before = peak();
        let (text, _) = with_stand_in(&format!("{}; exec cat /dev/zero", hello(VERSION)));
        assert!(
            text.starts_with("unexpected reply of the worker at `b`"),
            "{text}"
        );
        let grown = peak().saturating_sub(before) / 1024;
        assert!(grown < 100, "{grown} MiB more");
    });
}

#[test]
fn another_version_of_the_protocol_is_refused() {
    apart(|| {
        let (text, _) = with_stand_in(&format!("{}; exec sleep 100", hello(VERSION + 1)));
        assert!(
            text.contains(&format!(
                "protocol {} of hopyard 0.0.1, not {VERSION}",
                VERSION + 1
            )) && text.contains("use the same version at both ends"),
            "{text}"
        );
    });
}

#[test]
fn a_worker_that_is_not_there_names_the_endpoint() {
    apart(|| {
        let before = Traces::now();
        let error = Remote::start("b", Command::new("/nonexistent/worker"), &|| false).unwrap_err();
        let text = hopyard::chain(&error);
        assert!(
            text.contains("cannot start the worker at `b`: No such file"),
            "{text}"
        );
        before.unchanged().unwrap();
    });
}

#[test]
fn a_server_where_nobody_listens_is_a_failure_to_connect() {
    apart(|| {
        let (text, took) = with_stand_in(&format!(
            "{}; read x; {NUMBER}; case $x in *serve*) echo '{{\"nr\":'$n',\"is\":\"serving\",\"ports\":[9]}}';; esac; \
             exec sleep 100",
            hello(VERSION)
        ));
        // The stand-in plays both ends, so the client is silent too.
        assert!(
            text.contains("the worker at `a` did not connect within"),
            "{text}"
        );
        assert!(took < IN_TIME, "{took:?}");
        // A real client, and nobody at the server's port.
        let before = Traces::now();
        let cell = cell("veth", Peer::Local, LoadKind::TcpStream, &[]);
        let lab = Lab::build(hopyard::lab::path("veth").unwrap(), Peer::Local, &cell.axes).unwrap();
        let mut near = lab
            .start_worker(&lab.topology.client, crate::support::cli::PROGRAM.as_ref())
            .unwrap();
        let request = hopyard::load::protocol::Request::Connect {
            spec: hopyard::load::LoadSpec::new(cell.load, &cell.axes),
            address: std::net::IpAddr::from(lab.topology.server.addresses.v4).into(),
            ports: vec![9],
            cpus: Vec::new(),
            patience_ms: 500,
        };
        let error = near.ask(&request, "connect").unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("cannot connect to 198.18.0.2:9") && text.contains("refused"),
            "{text}"
        );
        drop((near, lab));
        before.unchanged().unwrap();
    });
}
