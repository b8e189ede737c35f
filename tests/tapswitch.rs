//! The tap switch as a program and in labs: what it says, what it costs, and how it ends.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hopyard::lab::{Lab, role};
use hopyard::model::{LoadKind, Peer};
use hopyard::tapswitch::{Claim, Error, socket};
use hopyard_net::{Handle, NetNs};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::support::cli::{PROGRAM, Running, hopyard, pid, run};
use crate::support::host::unharmed;
use crate::support::icmp::ping;
use crate::support::plan::{Room, plan};
use crate::support::procs::{self, Process};
use crate::support::traces::Traces;
use crate::support::{apart, beside, cell, proved, tell, until};

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
                ("turns", "false"),
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
    apart(|| {
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
    });
}

#[test]
fn a_kept_lab_has_its_switch_until_it_is_taken_down() {
    apart(|| {
        struct Ends;
        impl Drop for Ends {
            fn drop(&mut self) {
                let _ = hopyard(&["lab", "down", "test-tap", "--force"]).output();
            }
        }
        let before = Traces::now();
        unharmed(|| {
            for peer in ["local", "far"] {
                let _ends = Ends;
                let words = ["lab", "up", "tap-mq", "--name", "test-tap", "--peer", peer];
                let up =
                    run(&[&words[..], &["--set", "queues=3", "--set", "steering=cpu"]].concat());
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
                    procs::find(p.pid)
                        .is_none_or(|now| now.state == 'Z' || now.arguments.is_empty())
                };
                assert!(found.iter().all(gone), "{found:?}");
            }
        });
        before.unchanged().unwrap();
    });
}

#[test]
fn of_two_switches_that_take_a_name_at_once_one_has_it() {
    apart(|| {
        let before = Traces::now();
        let one = Claim::take("test-twice").unwrap();
        // What the other sees where both looked before either listened.
        fs::remove_file(socket("test-twice")).unwrap();
        let error = Claim::take("test-twice").unwrap_err();
        assert!(matches!(error, Error::Taken(_)), "{error}");
        drop(one);
        drop(Claim::take("test-twice").unwrap());
        before.unchanged().unwrap();
    });
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
fn rules_of_ports_are_given_shown_and_what_they_drop_is_counted() {
    let _beside = beside();
    let mut command = Command::new("unshare");
    let words = "--tap t0 --mac 02:00:00:00:00:01 --isolated --tap t1 --isolated --addresses 7 --broadcasts unlimited";
    command
        .args(["--net", PROGRAM, "tapswitch", "run", "test-rules"])
        .args(words.split(' '));
    let running = Running::start(command);
    let shown = || run(&["tapswitch", "show", "test-rules", "--json"]).json();
    until("it answers", Duration::from_secs(10), || {
        let shown = hopyard(&["tapswitch", "show", "test-rules"]).output();
        shown.is_ok_and(|said| said.status.success())
    });
    let document = shown();
    let [first, second] = [0, 1].map(|at| &document[0]["ports"][at]);
    assert_eq!(first["macs"][0], "02:00:00:00:00:01", "{document:#}");
    assert_eq!(
        (&first["isolated"], &second["isolated"]),
        (&true.into(), &true.into())
    );
    assert_eq!(
        (&first["broadcasts_per_s"], &first["address_quota"]),
        (&100.into(), &1024.into())
    );
    assert_eq!(
        (&second["broadcasts_per_s"], &second["address_quota"]),
        (&Value::Null, &7.into())
    );
    run(&["tapswitch", "show", "test-rules"]).exits(0).prints(&[
        "mac 02:00:00:00:00:01",
        "7 addresses",
        "100 broadcasts/s",
    ]);
    // The kernel's own frames (neighbour discovery) are from other addresses than the one that is given.
    until("a frame is dropped", Duration::from_secs(20), || {
        shown()[0]["ports"][0]["drops"]["mac"].as_u64() > Some(0)
    });
    run(&["tapswitch", "stats", "test-rules"])
        .exits(0)
        .prints(&["mac "]);
    running.signal(Signal::SIGTERM);
    running.wait().exits(0);
}

/// The kernel has no memory for the buffers of the second worker, which the load asks for.
#[test]
fn a_worker_that_cannot_be_made_takes_no_queue_and_show_says_why() {
    let _beside = beside();
    let mut command = Command::new("unshare");
    let words = "tapswitch run test-worker --tap t0 --tap t1";
    command.args(["--net", PROGRAM]).args(words.split(' '));
    let running = Running::start(command);
    until("it answers", Duration::from_secs(10), || {
        let shown = hopyard(&["tapswitch", "show", "test-worker"]).output();
        shown.is_ok_and(|said| said.status.success())
    });
    let pid = running.pid().to_string();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=io_uring_setup"]);
    strace.args(["-e", "inject=io_uring_setup:error=ENOMEM", "-p", &pid]);
    let mut strace = strace.spawn().unwrap();
    until("it is traced", Duration::from_secs(10), || {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let mut states = threads.map(|thread| {
            let status = thread.unwrap().path().join("status");
            fs::read_to_string(status).unwrap_or_default()
        });
        states.all(|status| !status.contains("TracerPid:\t0\n"))
    });
    let ns = NetNs::open(Path::new(&format!("/proc/{pid}/ns/net"))).unwrap();
    let handle = Handle::new(&ns).unwrap();
    handle.add_address("t0", [10, 7, 0, 1].into(), 24).unwrap();
    let nobody = [2, 0, 0, 0, 0, 9];
    handle
        .add_neighbour("t0", [10, 7, 0, 2].into(), nobody)
        .unwrap();
    let bind = || UdpSocket::bind("10.7.0.1:0").unwrap();
    let sender = ns.run(bind).unwrap();
    sender.connect("10.7.0.2:9").unwrap();
    let mut queues = Value::Null;
    until("a second queue is tried", Duration::from_secs(60), || {
        for _ in 0..5000 {
            // The tap's queue may be full.
            let _ = sender.send(&[0; 64]);
        }
        let shown = run(&["tapswitch", "show", "test-worker", "--json"]).json();
        queues = shown[0]["queues"].clone();
        queues["attached"] != 1 || queues["trouble"].is_string()
    });
    strace.kill().unwrap();
    strace.wait().unwrap();
    assert_eq!(queues["attached"], 1, "{queues:#}");
    let trouble = queues["trouble"].as_str().unwrap();
    assert!(trouble.contains("no memory left for it"), "{trouble}");
    run(&["tapswitch", "show", "test-worker"])
        .exits(0)
        .says(&["test-worker: cannot start worker 1", "memory.max"]);
    running.signal(Signal::SIGTERM);
    running.wait().exits(0);
}

#[test]
fn a_switch_that_may_not_open_enough_files_says_what_to_raise_and_leaves_nothing() {
    let _beside = beside();
    let mut command = Command::new("unshare");
    let words =
        "--net prlimit --nofile=24 PROGRAM tapswitch run test-files --queues 8 --tap t0 --tap t1";
    command.args(
        words
            .split(' ')
            .map(|word| word.replace("PROGRAM", PROGRAM)),
    );
    let said = Running::start(command).wait();
    said.exits(2)
        .says(&["may not open enough files", "ulimit -n"]);
    run(&["tapswitch", "show", "test-files"])
        .exits(2)
        .says(&["there is no tap switch `test-files`"]);
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
            &["x", "--isolated", "--tap", "t0", "--tap", "t1"],
            "--isolated applies to the --tap before it",
        ),
        (
            &[
                "x",
                "--tap",
                "t0",
                "--mac",
                "01:00:00:00:00:01",
                "--tap",
                "t1",
            ],
            "01:00:00:00:00:01 of tap `t0` is no address of a station",
        ),
        (
            &["x", "--tap", "t0", "--broadcasts", "all", "--tap", "t1"],
            "or `unlimited`",
        ),
        (
            &["a/b", two[0], two[1], two[2], two[3]],
            "is no name for a switch",
        ),
        (
            &["x", "--queues", "0", two[0], two[1], two[2], two[3]],
            "a number from 1 to 256",
        ),
        (
            &[
                "x",
                "--queues",
                "2",
                "--threads",
                "3",
                two[0],
                two[1],
                two[2],
                two[3],
            ],
            "2 queue(s) have 1 to 2 of them, not 3",
        ),
        (
            &["x", "--threads", "1", two[0], two[1], two[2], two[3]],
            "give a number of queues",
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

/// The threads of a switch that serve queues, as the kernel shows them.
fn queue_threads(pid: &Value) -> usize {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let names = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("comm")));
    names
        .filter(|name| name.as_ref().is_ok_and(|n| n.starts_with("tap queue")))
        .count()
}

#[test]
fn a_switch_has_the_threads_that_were_asked_for_and_all_queues_carry() {
    let _beside = beside();
    let path = hopyard::lab::path("tap-mq").unwrap();
    let of = |queues, threads: Option<&'static str>| {
        // Each flow has a queue of its own, in turn.
        let set = [("queues", queues), ("steering", "pinned"), ("flows", "4")];
        let threads = threads.map(|threads| ("queue_threads", threads));
        let set: Vec<_> = set.into_iter().chain(threads).collect();
        cell("tap-mq", Peer::Local, LoadKind::TcpStream, &set)
    };
    for (queues, threads, wanted) in [
        ("2", None, 2),
        ("2", Some("1"), 1),
        ("4", Some("3"), 3),
        ("4", Some("4"), 4),
    ] {
        let cell = of(queues, threads);
        let lab = Lab::build(path, cell.peer, &cell.axes).unwrap();
        proved(&lab, &cell, 150).unwrap();
        let shown = run(&["tapswitch", "show", &lab.id().to_string(), "--json"]).json();
        assert_eq!(queue_threads(&shown[0]["pid"]), wanted, "{shown:#}");
        assert_eq!(shown[0]["queues"]["threads"], wanted, "{shown:#}");
        let by_queue = shown[0]["ports"][0]["rx_frames_by_queue"]
            .as_array()
            .unwrap();
        assert_eq!(by_queue.len().to_string(), queues);
        let busy = |frames: &Value| frames.as_u64() > Some(100);
        assert!(by_queue.iter().all(busy), "{by_queue:?}");
    }
    let cell = of("2", Some("3"));
    let refused = Lab::build(path, cell.peer, &cell.axes).err().unwrap();
    let said = hopyard::chain(&refused);
    assert!(
        said.contains("the tap switch cannot have queue_threads=3"),
        "{said}"
    );
}

/// As iproute2 reads it.
fn queue_length(lab: &Lab) -> Value {
    let space = &lab.space(role::A).unwrap().handle;
    let ip = || {
        Command::new("ip")
            .args(["-json", "link", "show", "eth0"])
            .output()
    };
    let said = space.ns().run(ip).unwrap().unwrap();
    let links: Value = serde_json::from_slice(&said.stdout).unwrap();
    links[0]["txqlen"].clone()
}

#[test]
fn queues_and_steering_reach_the_switch_and_offloads_the_taps() {
    let _beside = beside();
    for (queues, length, steering, join) in [
        ("1", "64", "kernel", "packets"),
        ("4", "1000", "hash", "off"),
        ("4", "2000", "pinned", "stream"),
    ] {
        let set = [
            ("queues", queues),
            ("queue_length", length),
            ("steering", steering),
            ("join", join),
            ("flows", "4"),
        ];
        let cell = cell("tap-mq", Peer::Local, LoadKind::TcpStream, &set);
        let path = hopyard::lab::path("tap-mq").unwrap();
        let lab = Lab::build(path, cell.peer, &cell.axes).unwrap();
        let measured = proved(&lab, &cell, 150).unwrap();
        // By hash or pinned, a flow stays where it is; with one queue there is nothing to count.
        let changes = measured.queue_changes.map(|c| (c.count, c.flows));
        assert_eq!(changes, (queues != "1").then_some((0, 4)));
        let taps = measured.queue_frames.iter().map(|tap| tap.frames.len());
        let both: &[usize] = if queues == "1" { &[] } else { &[4, 4] };
        assert_eq!(taps.collect::<Vec<_>>(), both);
        let shown = run(&["tapswitch", "show", &lab.id().to_string(), "--json"]).json();
        assert_eq!(shown[0]["queues"]["asked"], queues, "{shown:#}");
        assert_eq!(shown[0]["steering"], steering);
        assert_eq!(shown[0]["join"], join);
        assert_eq!(queue_length(&lab).to_string(), length);
        let by_queue = shown[0]["ports"][0]["rx_frames_by_queue"]
            .as_array()
            .unwrap();
        assert_eq!(by_queue.len().to_string(), queues);
        if steering == "pinned" {
            // Each of the four flows has a queue of its own.
            let busy = |frames: &Value| frames.as_u64() > Some(100);
            assert!(by_queue.iter().all(busy), "{by_queue:?}");
            let window = &measured.queue_frames[0].frames;
            assert!(window.iter().all(|frames| *frames > 0), "{window:?}");
        }
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
