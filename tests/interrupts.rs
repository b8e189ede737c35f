//! Ctrl-C, SIGTERM and SIGKILL at every stage of a run.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::Duration;

use hopyard_net::Cgroup;
use nix::libc::{self, SIGINT};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::support::cli::{PROGRAM, Running, Said, has_traffic, hopyard, pid, run};
use crate::support::host::{has_cgroup2, mounts_cgroup2, unharmed};
use crate::support::plan::{Room, plan};
use crate::support::{apart, beside, procs, tell, traces, until};

const LONG: Duration = Duration::from_secs(20);

/// A run of three blocks of two cells whose windows are long enough to hit, and whose end is far: one cell after another.
fn start(room: &Room, warm_up: &str, window: &str) -> Running {
    start_with("false", room, warm_up, window)
}

/// The same, where `turns` says whether the labs of the cells stand side by side.
fn start_with(turns: &str, room: &Room, warm_up: &str, window: &str) -> Running {
    let file = room.file(
        "mine.toml",
        plan(&[
            ("paths", "[\"veth\", \"bridge\"]"),
            ("blocks", "\"3..3\""),
            ("turns", turns),
            ("warm_up", &format!("\"{warm_up}\"")),
            ("window", &format!("\"{window}\"")),
        ]),
    );
    let out = room.name("run");
    // The tests may run under `nohup`.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", PROGRAM, "run", &file]);
    command.args(["--seed", "1", "--json", "--out", &out]);
    Running::start(command)
}

fn until_listening(running: &Running) {
    until("signals are listened to", LONG, || {
        procs::find(running.pid()).is_some_and(|p| p.catches(SIGINT))
    });
}

fn until_traffic(running: &Running) {
    until("traffic flows", LONG, || running.in_traffic().is_some());
}

/// Those that are written to their end.
fn samples(room: &Room) -> usize {
    let text = std::fs::read_to_string(room.at("run/samples.jsonl"));
    text.map_or(0, |text| text.matches('\n').count())
}

/// Interrupts and waits; nothing is left, and what was measured is readable.
fn interrupt(room: &Room, running: Running, signal: impl FnOnce(&Running)) -> Said {
    let namespaces = running.namespaces();
    signal(&running);
    let asked = std::time::Instant::now();
    until("it ends", Duration::from_secs(3), || {
        procs::find(running.pid()).is_none_or(|p| p.state == 'Z')
    });
    let said = running.wait_for_nothing_left(&namespaces);
    assert!(asked.elapsed() < Duration::from_secs(3), "{said}");
    said.exits(130);
    readable(room, &said, "interrupted");
    said
}

/// The directory, if there is one, can be reported and says how it ended.
fn readable(room: &Room, said: &Said, end: &str) {
    if !room.at("run/run.json").exists() {
        assert!(!room.at("run").exists(), "{said}");
        return;
    }
    let stored =
        std::fs::read_to_string(room.at("run/end.json")).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert_eq!(stored.trim(), format!("\"{end}\""));
    let report = run(&["report", &room.name("run"), "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(report["schema"], "hopyard/run/1");
    assert_eq!(report["run"]["complete"], end != "interrupted");
    if end == "interrupted" {
        assert!(
            report["warnings"].to_string().contains("cut_short"),
            "{report:#}"
        );
    }
    // What was printed is what is stored.
    if !said.stdout.is_empty() {
        assert_eq!(said.json(), report);
    }
    run(&["report", &room.name("run")]).exits(0);
}

#[test]
fn ctrl_c_while_preparing() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let out = room.name("run");
        // Each size is another thing to try the generator with, which takes some seconds for all of them.
        let sizes: Vec<String> = (1..=20).map(|n| (1000 * n).to_string()).collect();
        let sizes = format!("message_size={}", sizes.join(","));
        let loads = "tcp_stream,tcp_maerts,udp_stream";
        let running = Running::start(hopyard(&[
            "run", "--paths", "veth", "--loads", loads, "--set", &sizes, "--out", &out,
        ]));
        until_listening(&running);
        let said = interrupt(&room, running, |r| r.signal(Signal::SIGINT));
        said.says(&["interrupted"]);
        assert!(!room.at("run").exists(), "{said}");
    });
}

#[test]
fn ctrl_c_in_the_warm_up() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        // Traffic that is seen is the warm-up's: it lasts longer than the test waits.
        let running = start(&room, "120s", "50ms");
        until_traffic(&running);
        let said = interrupt(&room, running, |r| r.signal(Signal::SIGINT));
        assert_eq!(samples(&room), 0, "{said}");
    });
}

#[test]
fn ctrl_c_in_the_window() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        // The window opens with the traffic.
        let running = start(&room, "0s", "120s");
        until_traffic(&running);
        let said = interrupt(&room, running, |r| r.signal(Signal::SIGINT));
        assert_eq!(samples(&room), 0, "{said}");
    });
}

#[test]
fn ctrl_c_between_samples_and_blocks() {
    let _beside = beside();
    unharmed(|| {
        for done in 1..4 {
            let room = Room::new();
            // The next is far from its end when it is seen that these are there.
            let running = start(&room, "20ms", "1s");
            until("samples are there", LONG, || samples(&room) == done);
            interrupt(&room, running, |r| r.signal(Signal::SIGINT));
            assert_eq!(samples(&room), done);
            let report = run(&["report", &room.name("run"), "--format", "json"]).json();
            assert_eq!(report["run"]["blocks"], done / 2);
        }
    });
}

#[test]
fn ctrl_c_at_any_time() {
    let _beside = beside();
    unharmed(|| {
        let mut ends = Vec::new();
        for delay in (0..1500).step_by(125) {
            let room = Room::new();
            let running = start(&room, "20ms", "300ms");
            until_listening(&running);
            std::thread::sleep(Duration::from_millis(delay));
            // As a terminal does it: to the whole process group.
            let said = interrupt(&room, running, |r| r.signal_group(Signal::SIGINT));
            ends.push(format!("{delay} ms: {} samples", samples(&room)));
            assert!(!said.stderr.contains("failed"), "{said}");
        }
        tell(&format!("interrupted after {}", ends.join(", ")));
    });
}

/// Several labs stand then, each with workers in its control group.
#[test]
fn ctrl_c_while_cells_take_turns() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let running = start_with("true", &room, "20ms", "8s");
        until("all cells have traffic", LONG, || {
            let workers = running.lab_workers();
            workers.len() == 4 && workers.iter().all(has_traffic)
        });
        let said = interrupt(&room, running, |r| r.signal(Signal::SIGINT));
        assert!(!said.stderr.contains("could not remove"), "{said}");
    });
}

#[test]
fn ctrl_c_at_the_terminal_while_preparing() {
    let _beside = beside();
    // Many loads, so that the generator is tried for some time.
    for delay in [0, 60, 120, 180, 240, 300] {
        let room = Room::new();
        let out = room.name("run");
        let loads = "tcp_stream,tcp_maerts,tcp_rr,tcp_crr,udp_stream,udp_rr";
        let running = Running::start(hopyard(&[
            "run", "--paths", "veth", "--loads", loads, "--json", "--window", "2s", "--out", &out,
        ]));
        until_listening(&running);
        std::thread::sleep(Duration::from_millis(delay));
        interrupt(&room, running, |r| r.signal_group(Signal::SIGINT));
    }
}

#[test]
fn sigterm_and_sighup_are_as_ctrl_c() {
    let _beside = beside();
    unharmed(|| {
        for signal in [Signal::SIGTERM, Signal::SIGHUP] {
            let room = Room::new();
            let running = start(&room, "0s", "120s");
            until_traffic(&running);
            interrupt(&room, running, |r| r.signal(signal));
        }
    });
}

/// To the first thread of a process.
fn signal_thread(process: u32, signal: Signal) {
    let id = process.cast_signed();
    // SAFETY: the call takes three numbers.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, id, id, signal as i32) };
    assert_eq!(answer, 0);
}

#[test]
fn ctrl_c_twice_ends_at_once() {
    apart(|| {
        unharmed(|| {
            let room = Room::new();
            let running = start(&room, "0s", "120s");
            until_traffic(&running);
            // A stopped worker is waited for when a lab is taken down.
            let worker = running.lab_workers().remove(0);
            kill(pid(worker.pid), Signal::SIGSTOP).unwrap();
            let (namespaces, owner) = (running.namespaces(), running.pid());
            // The second waits for it to go on, so that it does nothing between them; what comes within 0.3 s is one request.
            signal_thread(owner, Signal::SIGINT);
            // Its handler has run by then; to take the lab down takes longer, for the sake of the stopped worker.
            std::thread::sleep(Duration::from_millis(50));
            running.signal(Signal::SIGSTOP);
            until("it stops", LONG, || {
                procs::find(owner).is_some_and(|p| p.state == 'T')
            });
            std::thread::sleep(Duration::from_millis(350));
            signal_thread(owner, Signal::SIGTERM);
            running.signal(Signal::SIGCONT);
            until("it ends", Duration::from_secs(3), || {
                procs::find(owner).is_none_or(|p| p.state == 'Z')
            });
            assert_eq!(running.gone().code(), Some(130));
            // Interrupted once, it says how it ended.
            assert!(room.at("run/run.json").exists() && !room.at("run/end.json").exists());
            run(&["report", &room.name("run")]).exits(0);
            // What stays is for `clean`: the stopped worker, with its control group.
            run(&["clean"]).exits(0);
            until("everything is gone", LONG, || {
                procs::held(&namespaces, None).is_empty()
            });
            assert!(traces::groups_of(owner).is_empty());
        });
    });
}

/// Programs such as `timeout` signal their child and then its whole group.
#[test]
fn two_signals_at_once_are_one_request() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let running = start(&room, "0s", "120s");
        until_traffic(&running);
        let owner = running.pid();
        interrupt(&room, running, |_| {
            signal_thread(owner, Signal::SIGINT);
            signal_thread(owner, Signal::SIGTERM);
        });
    });
}

/// Kills the controller in mid-window.
fn killed(room: &Room, before: impl FnOnce(&Running)) -> (u32, BTreeSet<u64>, Running) {
    let running = start(room, "0s", "120s");
    until_traffic(&running);
    let (owner, namespaces) = (running.pid(), running.namespaces());
    assert!(namespaces.len() >= 2, "{namespaces:?}");
    before(&running);
    running.signal(Signal::SIGKILL);
    (owner, namespaces, running)
}

#[test]
fn a_killed_controller_takes_workers_and_namespaces_along_and_clean_the_rest() {
    apart(|| {
        unharmed(|| {
            run(&["clean"]).exits(0);
            let room = Room::new();
            let (owner, namespaces, running) = killed(&room, |_| {});
            running.wait_for_no_process(&namespaces);
            let left = traces::groups_of(owner);
            let cleaned = run(&["clean"]);
            cleaned.exits(0);
            if mounts_cgroup2() {
                assert_eq!(left.len(), 1, "{left:?}");
                assert_eq!(
                    cleaned.stdout,
                    format!("removed control group of lab {}\n", left[0])
                );
            }
            assert!(traces::groups_of(owner).is_empty());
            run(&["clean"]).exits(0).prints(&["nothing to clean"]);
            // The directory is readable, and says that the run was cut short.
            let report: Value = run(&["report", &room.name("run"), "--format", "json"])
                .exits(0)
                .json();
            assert_eq!(report["run"]["complete"], false);
            assert!(
                report["warnings"].to_string().contains("cut_short"),
                "{report:#}"
            );
        });
    });
}

#[test]
fn a_stopped_worker_of_a_killed_controller_goes_too() {
    apart(|| {
        unharmed(|| {
            run(&["clean"]).exits(0);
            let room = Room::new();
            let (owner, namespaces, running) = killed(&room, |running| {
                let worker = running.lab_workers()[0].pid;
                kill(pid(worker), Signal::SIGSTOP).unwrap();
                until("it stops", LONG, || {
                    procs::find(worker).is_some_and(|p| p.state == 'T')
                });
            });
            running.gone();
            // It sees no end of input. The kernel may hang it up (an orphaned process group with a stopped
            // member, POSIX.1 `_exit`); otherwise it is for `clean`.
            run(&["clean"]).exits(0);
            until("its namespaces go", LONG, || {
                procs::held(&namespaces, None).is_empty()
            });
            assert!(traces::groups_of(owner).is_empty());
            run(&["clean"]).exits(0).prints(&["nothing to clean"]);
        });
    });
}

#[test]
fn processes_in_a_dead_labs_control_group_are_ended() {
    apart(|| {
        if !has_cgroup2() {
            return;
        }
        run(&["clean"]).exits(0);
        let dead = run(&["list", "loads"]).pid;
        // Of a lab whose builder was in this PID namespace: of others nobody knows whether they live.
        let mine = std::fs::metadata("/proc/self/ns/pid").unwrap().ino();
        let id = format!("{dead}.1.{mine}.1");
        let group = Cgroup::create(&id).unwrap();
        let mut stuck = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        group.add(stuck.id()).unwrap();
        assert_eq!(
            run(&["clean"]).exits(0).stdout,
            format!("removed control group of lab {id} and 1 process(es) in it\n")
        );
        assert!(!stuck.wait().unwrap().success());
        run(&["clean"]).exits(0).prints(&["nothing to clean"]);
    });
}

#[test]
fn doctor_tells_of_what_a_killed_controller_left() {
    apart(|| {
        if !has_cgroup2() {
            return;
        }
        run(&["clean"]).exits(0);
        let room = Room::new();
        let (owner, namespaces, running) = killed(&room, |_| {});
        running.wait_for_no_process(&namespaces);
        assert_eq!(traces::groups_of(owner).len(), 1);
        let said = run(&["doctor"]);
        assert!(said.stdout.contains("hopyard clean"), "{said}");
        run(&["clean"]).exits(0);
        let said = run(&["doctor"]);
        assert!(!said.stdout.contains("hopyard clean"), "{said}");
    });
}
