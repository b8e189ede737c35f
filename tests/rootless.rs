//! hopyard without root, and the paths that rootless containers have.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use hopyard::lab::{Lab, path};
use hopyard::model::{DatapathKind, Feature, LoadKind, Peer};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::cli::{PROGRAM, Running, Said, hopyard, nobody};
use crate::support::host::unharmed;
use crate::support::plan::Room;
use crate::support::traces::Traces;
use crate::support::walk::those_here;
use crate::support::{apart, beside, cell, proved, until};

const PROGRAMS: [&str; 2] = ["pasta", "slirp4netns"];

/// The program as a user whose number is not 0, in a directory that is that user's.
fn user(room: &Room, arguments: &[&str]) -> Command {
    const USER: u32 = 1000;
    let program = room.at("hopyard");
    if !program.exists() {
        fs::copy(PROGRAM, &program).unwrap();
    }
    std::os::unix::fs::chown(room.path(), Some(USER), Some(USER)).unwrap();
    let mut command = Command::new(&program);
    command.args(arguments).current_dir(room.path());
    command.uid(USER).gid(USER);
    command
}

fn cells(report: &Value) -> &Vec<Value> {
    report["cells"].as_array().unwrap()
}

#[test]
fn a_user_measures_what_a_user_namespace_allows() {
    apart(|| {
        unharmed(|| {
            let before = Traces::now();
            let room = Room::new();
            let what = [
                "run",
                "--paths",
                "veth,bridge",
                "--loads",
                "tcp_rr,tcp_stream",
                "--quick",
                "--blocks",
                "2",
                "--out",
                "out",
                "--json",
            ];
            let said = Running::start(user(&room, &what)).wait();
            said.exits(0)
                .says(&["not root", "user namespace", "hopyard doctor"]);
            let report = said.json();
            assert_eq!(cells(&report).len(), 4);
            for cell in cells(&report) {
                assert_eq!(cell["status"], "ok", "{cell:#}");
                let figure = match cell["load"].as_str().unwrap() {
                    "tcp_rr" => "transactions_per_s",
                    _ => "goodput_bps",
                };
                let value = cell["estimates"][figure]["value"].as_f64();
                assert!(
                    value.is_some_and(|value| value > 100.0),
                    "{figure}: {cell:#}"
                );
                // A cost is there, or is not; none is free.
                for (name, estimate) in cell["estimates"].as_object().unwrap() {
                    if name.starts_with("cpu_ns_per") {
                        assert!(
                            estimate["value"].as_f64().unwrap() > 0.0,
                            "{name}: {cell:#}"
                        );
                    }
                }
            }
            // The run is the user's own.
            let owner = std::os::unix::fs::MetadataExt::uid(
                &fs::metadata(room.at("out/run.json")).unwrap(),
            );
            assert_eq!(owner, 1000);
            before.unchanged().unwrap();
        });
    });
}

#[test]
fn what_a_user_namespace_has_not_is_refused_by_name() {
    apart(|| {
        let room = Room::new();
        for (asked, why) in [
            (
                &["run", "--paths", "direct", "--loads", "tcp_rr"][..],
                &["cannot load eBPF programs (direct switch)"][..],
            ),
            (
                &["run", "--paths", "veth-xdp", "--loads", "tcp_rr"],
                &["cannot load eBPF programs (xdp)"],
            ),
            (&["claims", "--quick"], &["`hopyard claims`"]),
        ] {
            let said = Running::start(user(&room, asked)).wait();
            said.exits(2).says(why).says(&["run as root"]);
        }
        assert!(
            !room.at("hopyard-runs").exists()
                || fs::read_dir(room.at("hopyard-runs")).unwrap().count() == 0
        );
    });
}

/// The program without any capability, in a user namespace that may have no others in it.
fn without_user_namespaces(arguments: &[&str]) -> Said {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && \
                  exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script, PROGRAM]);
    command.args(arguments);
    Running::start(command).wait()
}

#[test]
fn without_user_namespaces_the_answer_names_the_setting() {
    apart(|| {
        let before = Traces::now();
        let room = Room::new();
        let out = room.name("out");
        for paths in ["veth", "all"] {
            let said = without_user_namespaces(&["run", "--paths", paths, "--out", &out]);
            said.exits(2).says(&[
                "cannot make namespaces without root",
                "user.max_user_namespaces is 0: set it",
                "run as root",
            ]);
            assert!(said.stdout.is_empty(), "{said}");
            assert!(!room.at("out").exists(), "{said}");
        }
        let doctor = without_user_namespaces(&["doctor"]);
        doctor.exits(0).prints(&[
            "What needs root",
            "every path",
            "user.max_user_namespaces is 0",
        ]);
        before.unchanged().unwrap();
    });
}

#[test]
fn doctor_tells_a_user_which_figures_need_root() {
    apart(|| {
        let room = Room::new();
        let of_user = Running::start(user(&room, &["doctor", "--json"])).wait();
        let document = of_user.exits(0).json();
        let lacks = document["without_root"].to_string();
        for word in [
            "CPU costs in ns",
            "/proc/timer_list",
            "CAP_SYS_NICE",
            "--profile",
            "hopyard switch",
        ] {
            assert!(lacks.contains(word), "{word}: {lacks}");
        }
        let paths = document["paths"].as_array().unwrap();
        let ready = |name: &str| {
            paths
                .iter()
                .any(|path| path["name"] == name && path["available"] == true)
        };
        assert!(
            ready("veth") && ready("bridge") && !ready("direct"),
            "{document:#}"
        );
        let of_root = Running::start(hopyard(&["doctor", "--json"])).wait();
        assert_eq!(of_root.exits(0).json()["without_root"], Value::Null);
        // A user with another number is told the same.
        nobody(&room, &["doctor"])
            .exits(0)
            .prints(&["What needs root"]);
    });
}

/// Taps for everybody, as distributions have them, in a mount namespace of its own.
const OPEN_TUN: &str =
    "mount -t tmpfs dev /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec \"$0\" \"$@\"";

#[test]
fn a_user_measures_what_rootless_containers_have() {
    apart(|| {
        for name in those_here(&PROGRAMS) {
            let room = Room::new();
            let what = [
                "run", "--paths", name, "--peer", "host,far", "--loads", "tcp_rr", "--blocks", "1",
                "--window", "100ms", "--out", "out", "--json",
            ];
            let as_user = user(&room, &what);
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", OPEN_TUN, "setpriv"]);
            command.args(["--reuid", "1000", "--regid", "1000", "--clear-groups"]);
            command.arg(as_user.get_program()).args(as_user.get_args());
            command.current_dir(room.path());
            let said = Running::start(command).wait();
            let report = said.exits(0).json();
            assert_eq!(cells(&report).len(), 2, "{said}");
            assert!(
                cells(&report).iter().all(|cell| cell["status"] == "ok"),
                "{report:#}"
            );
        }
    });
}

/// CPU time of a process in clock ticks: fields 14 and 15 of `/proc/PID/stat` (proc_pid_stat(5)).
fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let times = fields.split_whitespace().skip(11).take(2);
    times.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn pasta_and_slirp4netns_need_no_privilege_and_are_programs() {
    let _beside = beside();
    for name in those_here(&PROGRAMS) {
        let of_name = path(name).unwrap();
        for peer in [Peer::Host, Peer::Far] {
            let cell = cell(name, peer, LoadKind::UdpRr, &[]);
            assert!(
                of_name
                    .offers(peer, &cell.axes)
                    .contains(&Feature::Unprivileged)
            );
            let lab = Lab::build(of_name, peer, &cell.axes).unwrap();
            let datapath = lab.datapath().unwrap();
            assert_eq!(
                (&*datapath.switch, datapath.kind),
                (name, DatapathKind::Userspace)
            );
            let daemons = lab.daemons();
            let [daemon] = daemons[..] else {
                panic!("{name} is one process: {daemons:?}");
            };
            let before = cpu_ticks(daemon);
            let measured = proved(&lab, &cell, 500).unwrap();
            assert!(measured.received.transactions > 0);
            // It works for each transaction, in the lab's group, so its time is the path's.
            assert!(cpu_ticks(daemon) > before, "{name} used no CPU time");
            if let Some(group) = lab.cgroup() {
                let members = fs::read_to_string(group.path().join("cgroup.procs")).unwrap();
                assert!(
                    members.lines().any(|pid| pid == daemon.to_string()),
                    "{members}"
                );
            }
        }
        assert!(
            !of_name
                .offers(
                    Peer::Local,
                    &cell(name, Peer::Host, LoadKind::UdpRr, &[]).axes
                )
                .contains(&Feature::Unprivileged)
        );
    }
}

#[test]
fn too_large_an_mtu_and_a_missing_program_are_refused_before_anything_is_built() {
    apart(|| {
        let before = Traces::now();
        let here = those_here(&PROGRAMS);
        for (name, package) in [("pasta", "passt"), ("slirp4netns", "slirp4netns")] {
            let mut command = hopyard(&["run", "--paths", name, "--peer", "host"]);
            command.env("PATH", "/nonexistent");
            Running::start(command)
                .wait()
                .exits(2)
                .says(&[name, &format!("install package `{package}`")]);
            if !here.contains(&name) {
                continue;
            }
            let axes = cell(name, Peer::Host, LoadKind::TcpRr, &[("mtu", "65530")]).axes;
            let error = Lab::build(path(name).unwrap(), Peer::Host, &axes).unwrap_err();
            assert!(error.is_unsupported());
            let text = hopyard::chain(&error);
            assert!(text.contains("set `mtu` to 6552"), "{text}");
        }
        before.unchanged().unwrap();
    });
}

#[test]
fn a_killed_run_leaves_no_program_behind() {
    apart(|| {
        for name in those_here(&PROGRAMS) {
            let room = Room::new();
            let out = room.name("out");
            let what = [
                "run", "--paths", name, "--peer", "far", "--loads", "udp_rr", "--window", "5s",
                "--out", &out,
            ];
            let running = Running::start(hopyard(&what));
            let directory = format!("/run/hopyard-{name}");
            until(
                "the program works for two workers",
                Duration::from_secs(60),
                || {
                    let ours = fs::read_dir(&directory).map_or(0, Iterator::count);
                    ours == 1 && running.lab_workers().len() == 2
                },
            );
            let namespaces = running.namespaces();
            running.signal(Signal::SIGKILL);
            running.wait_for_no_process(&namespaces);
            // Its directory is found by the lab's id.
            let cleaned = Running::start(hopyard(&["clean"])).wait();
            cleaned
                .exits(0)
                .prints(&[&format!("removed {name} of lab ")]);
            assert!(!fs::exists(&directory).unwrap());
        }
    });
}
