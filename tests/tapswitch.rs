//! The tap switch as a program and in labs: what it says, what it costs, and how it ends.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hopyard::lab::Lab;
use hopyard::model::{LoadKind, Peer};
use hopyard_net::NetNs;
use nix::sys::signal::{Signal, kill};

use crate::support::cli::{PROGRAM, Running, hopyard, pid, run};
use crate::support::host::unharmed;
use crate::support::icmp::ping;
use crate::support::plan::{Room, plan};
use crate::support::procs::{self, Process};
use crate::support::traces::Traces;
use crate::support::{alone, beside, cell, proved, tell, until};

/// Switches of labs among some processes.
fn switches(among: Vec<Process>) -> Vec<Process> {
    let mut found = among;
    found.retain(|p| p.arguments.get(1).is_some_and(|word| word == "tapswitch"));
    found
}

#[test]
fn a_switch_that_dies_in_the_window_fails_its_sample_by_name_and_leaves_nothing() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let file = room.file(
            "mine.toml",
            plan(&[
                ("paths", "[\"veth\", \"tap-mq\"]"),
                ("loads", "[\"tcp_stream\"]"),
                // Not over before what is seen of it is acted upon.
                ("window", "\"1500ms\""),
                ("blocks", "\"2..2\""),
            ]),
        );
        let out = room.name("run");
        let running = Running::start(hopyard(&["run", &file, "--json", "--out", &out]));
        let mut found = Vec::new();
        let what = "traffic flows through a switch";
        until(what, Duration::from_secs(60), || {
            let all = running.in_traffic().map(|(all, _)| all);
            found = switches(all.unwrap_or_default());
            found.len() == 1
        });
        let namespaces = running.namespaces();
        kill(pid(found[0].pid), Signal::SIGKILL).unwrap();
        let said = running.wait_for_nothing_left(&namespaces);
        said.exits(1);
        let report = said.json();
        let cell = &report["cells"][1];
        assert_eq!(cell["failed_samples"], 1, "{cell:#}");
        assert_eq!(report["cells"][0]["status"], "ok", "{report:#}");
        let cause = cell["cause"].as_str().unwrap();
        assert!(
            cause.starts_with("the tap switch died (signal: 9 (SIGKILL))"),
            "{cause}"
        );
        said.says(&["failed: ", cause]);
        tell(cause);
    });
}

#[test]
fn what_a_killed_run_leaves_clean_finds() {
    let _alone = alone();
    let before = Traces::now();
    let room = Room::new();
    let file = room.file(
        "mine.toml",
        plan(&[("paths", "[\"tap-mq\"]"), ("window", "\"5s\"")]),
    );
    let out = room.name("run");
    let running = Running::start(hopyard(&["run", &file, "--out", &out]));
    until("a switch runs", Duration::from_secs(30), || {
        switches(running.processes()).len() == 1 && running.lab_workers().len() == 2
    });
    let switch = switches(running.processes())[0].pid;
    running.signal(Signal::SIGKILL);
    running.wait();
    until(
        "the switch goes with its lab",
        Duration::from_secs(3),
        || procs::find(switch).is_none_or(|now| now.state == 'Z' || now.arguments.is_empty()),
    );
    run(&["clean"])
        .exits(0)
        .prints(&["removed tap switch of lab "]);
    run(&["clean"]).exits(0).prints(&["nothing to clean"]);
    before.unchanged().unwrap();
}

#[test]
fn a_kept_lab_has_its_switch_until_it_is_taken_down() {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            let _ = hopyard(&["lab", "down", "test-tap", "--force"]).output();
        }
    }
    let _alone = alone();
    let before = Traces::now();
    unharmed(|| {
        for peer in ["local", "far"] {
            let _ends = Ends;
            let words = ["lab", "up", "tap-mq", "--name", "test-tap", "--peer", peer];
            let up = run(&[&words[..], &["--set", "queues=3", "--set", "steering=cpu"]].concat());
            up.exits(0).prints(&["hopyard tapswitch show "]);
            let found = switches(procs::all());
            assert_eq!(found.len(), 1, "{found:?}");
            run(&["clean"]).exits(0).prints(&["nothing to clean"]);
            let ns = NetNs::open(Path::new("/run/hopyard/test-tap/a")).unwrap();
            let other = if peer == "local" { 2 } else { 3 };
            ping(&ns, [198, 18, 0, other].into()).unwrap();
            let name = &found[0].arguments[3];
            let shown = run(&["tapswitch", "show", name, "--json"]).exits(0).json();
            assert_eq!(shown[0]["queues"]["attached"], 3, "{shown:#}");
            assert_eq!(shown[0]["steering"], "cpu");
            assert!(shown[0]["ports"][0]["rx_frames"].as_u64().unwrap() > 0);
            run(&["tapswitch", "stats", name])
                .exits(0)
                .prints(&["rx frames", "eth0@"]);
            run(&["lab", "down", "test-tap"]).exits(0);
            let gone = |p: &Process| {
                procs::find(p.pid).is_none_or(|now| now.state == 'Z' || now.arguments.is_empty())
            };
            assert!(found.iter().all(gone), "{found:?}");
        }
    });
    before.unchanged().unwrap();
}

#[test]
fn a_switch_is_run_shown_watched_and_ended_by_hand() {
    let _beside = beside();
    let mut command = Command::new("unshare");
    let words = [
        "--net",
        PROGRAM,
        "tapswitch",
        "run",
        "test-hand",
        "--tap",
        "t0",
        "--tap",
        "t1",
    ];
    command.args(words);
    let running = Running::start(command);
    until("it answers", Duration::from_secs(10), || {
        let shown = hopyard(&["tapswitch", "show", "test-hand"]).output();
        shown.is_ok_and(|said| said.status.success())
    });
    run(&["tapswitch", "show"])
        .exits(0)
        .prints(&["tap switch test-hand", "(auto)", "t1"]);
    let stats = run(&["tapswitch", "stats", "test-hand", "--json"])
        .exits(0)
        .json();
    assert_eq!(stats["schema"], "hopyard/tapswitch/1");
    assert_eq!(stats["ports"].as_array().unwrap().len(), 2);
    let twice = [
        "tapswitch",
        "run",
        "test-hand",
        "--tap",
        "t0",
        "--tap",
        "t1",
    ];
    run(&twice)
        .exits(2)
        .says(&["a tap switch `test-hand` runs already"]);
    running.signal(Signal::SIGTERM);
    running.wait().exits(0).prints(&["rx frames", "t0"]);
    run(&["tapswitch", "show", "test-hand"])
        .exits(2)
        .says(&["there is no tap switch `test-hand`"]);
}

#[test]
fn wrong_flags_are_refused_with_what_is_right() {
    let _beside = beside();
    let two = ["--tap", "t0", "--tap", "t1"];
    for (words, said) in [
        (&["x"][..], "--tap <DEV[@NETNS]>"),
        (&["x", "--tap", "t0"], "it takes 2 to 1024 taps, not 1"),
        (&["x", "--tap", "t0@"], "name a network namespace"),
        (
            &["x", "--tap", "t0@nobodys", "--tap", "t1"],
            "/run/netns/nobodys",
        ),
        (&["x", "--tap", "lo", "--tap", "t1"], "neither tap nor tun"),
        (&["x", "--tap", "t0", "--tap", "t0"], "`t0` is named twice"),
        (
            &["a/b", two[0], two[1], two[2], two[3]],
            "is no name for a switch",
        ),
        (
            &["x", "--queues", "0", two[0], two[1], two[2], two[3]],
            "a number from 1 to 256",
        ),
        (
            &["x", "--steering", "luck", two[0], two[1], two[2], two[3]],
            "kernel, hash, cpu",
        ),
        (
            &["x", "--join", "all", two[0], two[1], two[2], two[3]],
            "off, packets, stream",
        ),
        (
            &["x", "--send-buffer", "1KiB", two[0], two[1], two[2], two[3]],
            "128KiB",
        ),
    ] {
        let mut command = Command::new("unshare");
        command
            .args(["--net", PROGRAM, "tapswitch", "run"])
            .args(words);
        Running::start(command).wait().exits(2).says(&[said]);
    }
    run(&["tapswitch", "stats", "nobody"])
        .exits(2)
        .says(&["there is no tap switch `nobody`"]);
}

#[test]
fn queues_and_steering_reach_the_switch_and_offloads_the_taps() {
    let _alone = alone();
    for (queues, steering, join) in [("1", "kernel", "packets"), ("4", "hash", "off")] {
        let set = [
            ("queues", queues),
            ("steering", steering),
            ("join", join),
            ("flows", "4"),
        ];
        let cell = cell("tap-mq", Peer::Local, LoadKind::TcpStream, &set);
        let path = hopyard::lab::path("tap-mq").unwrap();
        let lab = Lab::build(path, cell.peer, &cell.axes).unwrap();
        let measured = proved(&lab, &cell, 150).unwrap();
        // By hash, a flow stays where it is; with one queue there is nothing to count.
        let changes = measured.queue_changes.map(|c| (c.count, c.flows));
        assert_eq!(changes, (queues != "1").then_some((0, 4)));
        let shown = run(&["tapswitch", "show", &lab.id().to_string(), "--json"]).json();
        assert_eq!(shown[0]["queues"]["asked"], queues, "{shown:#}");
        assert_eq!(shown[0]["steering"], steering);
        assert_eq!(shown[0]["join"], join);
        let drops = shown[0]["ports"][0]["drops"].as_object().unwrap();
        assert!(!drops.contains_key("refused"), "{drops:?}");
    }
    let frame = |offload: &str| {
        let set = [("offload", offload), ("message_size", "131072")];
        let cell = cell("tap-mq", Peer::Local, LoadKind::TcpStream, &set);
        let path = hopyard::lab::path("tap-mq").unwrap();
        let lab = Lab::build(path, cell.peer, &cell.axes).unwrap();
        let arrived = proved(&lab, &cell, 150).unwrap().arrived.unwrap();
        arrived.bytes / arrived.skbs
    };
    let (with, without) = (frame("on"), frame("off"));
    tell(&format!(
        "bytes per frame on a tap: {with} with offloads, {without} without"
    ));
    assert!(with > 20_000 && without <= 1514, "{with}, {without}");
}
