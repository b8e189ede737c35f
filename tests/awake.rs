//! `--keep-awake`: CPUs do not halt, and idle time is still told from busy time. These tests run alone: CPUs that stay awake change the
//! figures of tests beside them.

use std::fs;
use std::time::Duration;

use hopyard::meter::{CpuMeter, OwnProcesses};
use hopyard_net::clock;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::cli::{Running, Said, hopyard, run};
use crate::support::plan::Room;
use crate::support::{alone, mostly, tell, until};

/// This process uses a known CPU time and the rest of the machine is idle: the threads that keep CPUs awake count as neither.
#[test]
fn who_keeps_a_cpu_awake_is_not_busy() {
    const WORK_NS: u64 = 200_000_000;
    let _alone = alone();
    let mut meter = CpuMeter::new().unwrap();
    meter.keep_awake().unwrap();
    mostly(|| {
        let opened = meter.open(OwnProcesses::default()).unwrap();
        let until = clock::thread_cpu_ns() + WORK_NS;
        while clock::thread_cpu_ns() < until {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_millis(200));
        let used = meter.close(OwnProcesses::default()).unwrap().since(&opened);
        let work = WORK_NS as f64;
        let machine = used.elapsed_ns * f64::from(used.cpus);
        let (own, busy) = (used.controller_ns / work, used.busy_ns / work);
        let said = format!("own {own:.3}, busy {busy:.3} of the work, in {machine} ns");
        tell(&said);
        let rest = (used.busy_ns - work) / machine;
        if (0.99..1.1).contains(&own) && busy > 0.95 && rest < 0.2 {
            Ok(())
        } else {
            Err(said)
        }
    })
    .unwrap();
}

fn measured(room: &Room, more: &[&str]) -> Running {
    let out = room.name("run");
    let what = [
        "run",
        "--paths",
        "veth,bridge",
        "--loads",
        "tcp_rr",
        "--out",
        &out,
        "--keep-awake",
    ];
    Running::start(hopyard(&[&what[..], more].concat()))
}

fn accounting(said: &Said) -> Value {
    let report = said.exits(0).json();
    report["run"]["environment"]["cpu_accounting"].clone()
}

/// The names of the threads of a process.
fn threads(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let names = entries
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("comm")));
    names.flatten().map(|name| name.trim().to_owned()).collect()
}

#[test]
fn a_run_keeps_cpus_awake_and_says_so() {
    let _alone = alone();
    let room = Room::new();
    let running = measured(&room, &["--blocks", "2", "--quick", "--json"]);
    let pid = running.pid();
    let keepers = || {
        threads(pid)
            .iter()
            .filter(|name| name.starts_with("awake/"))
            .count()
    };
    let cpus = hopyard_net::cpu::online_cpus().unwrap().len();
    until("each CPU is kept awake", Duration::from_secs(20), || {
        keepers() == cpus
    });
    let said = running.wait();
    assert_eq!(accounting(&said), "kept_awake");
    for cell in said.json()["cells"].as_array().unwrap() {
        assert_eq!(cell["status"], "ok", "{cell:#}");
    }
    run(&["report", &room.name("run")])
        .exits(0)
        .prints(&["CPUs kept awake"]);
}

/// A run has figures of CPUs that stay awake, or of CPUs that halt, and never of both.
#[test]
fn a_run_that_goes_on_keeps_them_awake_again() {
    let _alone = alone();
    let room = Room::new();
    let running = measured(&room, &["--blocks", "200"]);
    let first = || {
        fs::read_to_string(room.at("run/samples.jsonl")).is_ok_and(|text| text.lines().count() > 2)
    };
    until("some are measured", Duration::from_secs(60), first);
    running.signal(Signal::SIGINT);
    running.wait().exits(130);
    let out = room.name("run");
    run(&["run", "--resume", &out, "--keep-awake"])
        .exits(2)
        .says(&["--resume", "--keep-awake"]);
    let said = run(&["run", "--resume", &out, "--time-limit", "1s", "--json"]);
    assert_eq!(accounting(&said), "kept_awake");
}
