//! Open vSwitch that is not there, too old, broken, or dies: a sentence that names it, and nothing left.

use std::process::Command;
use std::time::Duration;

use hopyard_net::has_genl_family;
use nix::sys::signal::{Signal, kill};

use crate::support::cli::{PROGRAM, Running, Said, hopyard, pid, run};
use crate::support::host::unharmed;
use crate::support::ovs::{self, DAEMONS};
use crate::support::plan::{Room, plan};
use crate::support::traces::Traces;
use crate::support::{apart, apart_waiting, beside, skip, tell, until};

#[test]
fn a_daemon_that_dies_fails_its_sample_by_name_and_the_run_goes_on() {
    let _beside = beside();
    if !ovs::is_here() {
        return;
    }
    unharmed(|| {
        for victim in DAEMONS {
            let room = Room::new();
            let file = room.file(
                "mine.toml",
                plan(&[
                    ("paths", "[\"veth\", \"ovs-veth\"]"),
                    ("loads", "[\"tcp_stream\"]"),
                    // Not over before what is seen of it is acted upon.
                    ("window", "\"500ms\""),
                    ("blocks", "\"2..2\""),
                ]),
            );
            let out = room.name("run");
            let running = Running::start(hopyard(&["run", &file, "--json", "--out", &out]));
            let mut daemons = Vec::new();
            let what = "traffic flows through a switch with two daemons";
            until(what, Duration::from_secs(60), || {
                // Two of each cell: the labs stand side by side.
                let all = running.in_traffic_of(4).map(|(all, _)| all);
                daemons = ovs::daemons(all.unwrap_or_default());
                daemons.len() == 2
            });
            let namespaces = running.namespaces();
            let daemon = ovs::named(&daemons, victim).unwrap();
            kill(pid(daemon.pid), Signal::SIGKILL).unwrap();
            let said = running.wait_for_nothing_left(&namespaces);
            said.exits(1);
            let report = said.json();
            let cell = &report["cells"][1];
            assert_eq!(cell["failed_samples"], 1, "{cell:#}");
            // No figure of half a window is among those there are.
            if let Some(estimate) = cell["estimates"].get("goodput_bps") {
                assert_eq!(estimate["n"], 1, "{cell:#}");
            }
            assert_eq!(report["cells"][0]["status"], "ok", "{report:#}");
            let cause = cell["cause"].as_str().unwrap();
            let start = format!("Open vSwitch's {victim} died (signal: 9 (SIGKILL))");
            assert!(cause.starts_with(&start), "{cause}");
            said.says(&["failed: ", cause]);
            tell(cause);
        }
    });
}

/// The program with stand-ins for programs of Open vSwitch: (name, shell script), before the others in
/// PATH.
fn with_stand_ins(room: &Room, stand_ins: &[(&str, &str)], words: &[&str]) -> Command {
    for (name, script) in stand_ins {
        room.program(name, format!("#!/bin/sh\n{script}\n"));
    }
    let path = std::env::var("PATH").unwrap();
    let mut command = hopyard(words);
    command.env("PATH", format!("{}:{path}", room.path().display()));
    command
}

/// What `lab up` says of them; nothing may be left.
fn up_with(stand_ins: &[(&str, &str)]) -> Said {
    let before = Traces::now();
    let room = Room::new();
    let words = ["lab", "up", "ovs-internal", "--name", "test-ovs"];
    let said = Running::start(with_stand_ins(&room, stand_ins, &words)).wait();
    said.exits(2);
    tell(said.stderr.trim_end());
    assert_eq!(ovs::all(), []);
    before.unchanged().unwrap();
    said
}

#[test]
fn without_the_programs_the_paths_say_which_package_has_them() {
    let _beside = beside();
    let room = Room::new();
    let without = |words: &[&str]| {
        let mut command = hopyard(words);
        command.env("PATH", room.path());
        Running::start(command).wait()
    };
    let paths = without(&["list", "paths", "--json"]).exits(0).json();
    for name in ["ovs-veth", "ovs-internal"] {
        let all = paths.as_array().unwrap();
        let path = all.iter().find(|p| p["name"] == name).unwrap();
        assert_eq!(path["available"], false);
        let reason = path["reason"].as_str().unwrap();
        assert!(
            reason.contains("no ovs-vswitchd support") && reason.contains("`openvswitch-switch`"),
            "{reason}"
        );
        without(&["run", "--paths", name])
            .exits(2)
            .says(&[name, "`openvswitch-switch`"]);
    }
    let doctor = without(&["doctor"]).exits(0).stdout.clone();
    assert!(!doctor.contains("choose another path"), "{doctor}");
    let mut lines = doctor.lines().map(str::trim_start);
    let found = lines.find_map(|line| line.strip_prefix("ovs-veth "));
    let found = found.unwrap_or_else(|| panic!("no line of ovs-veth: {doctor}"));
    assert!(
        found.trim_start().starts_with("cannot run Open vSwitch"),
        "{doctor}"
    );
    let file = room.file(
        "mine.toml",
        plan(&[
            ("paths", "[\"all\"]"),
            ("turns", "false"),
            ("window", "\"50ms\""),
        ]),
    );
    let out = room.name("run");
    let report = without(&["run", &file, "--json", "--out", &out]).json();
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("ovs-veth, ovs-internal"), "{warnings}");
    let mut cells = report["cells"].as_array().unwrap().iter();
    assert!(cells.all(|cell| !cell["path"].as_str().unwrap().starts_with("ovs")));
}

#[test]
fn without_a_module_and_without_taps_there_is_no_datapath() {
    let _beside = beside();
    if !ovs::is_here() {
        return;
    }
    if has_genl_family("ovs_datapath").unwrap() {
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap();
        let is_absent = !symbols.contains("ovs_datapath");
        let reason = "this kernel has its datapath, which needs no taps";
        skip("userspace datapath of Open vSwitch", is_absent, reason);
        return;
    }
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs none /dev/net && exec \"$0\" run --paths ovs-veth";
    command.args(["--mount", "sh", "-c", script, PROGRAM]);
    Running::start(command).wait().exits(2).says(&[
        "path `ovs-veth` cannot be built here",
        "load module `openvswitch`",
        "/dev/net/tun",
    ]);
}

#[test]
fn a_release_that_is_too_old_is_named() {
    apart(|| {
        if !ovs::is_here() {
            return;
        }
        let old = "echo 'ovs-vswitchd (Open vSwitch) 2.5.9'";
        up_with(&[("ovs-vswitchd", old)]).says(&["Open vSwitch 2.13", "is version 2.5.9", "newer"]);
        up_with(&[("ovs-vswitchd", "echo 'Welcome!'")])
            .says(&["does not print its version", "it says: Welcome!"]);
        up_with(&[("ovs-vswitchd", "echo no >&2; exit 4")]).says(&[
            "does not print its version",
            "exit status: 4",
            "no",
        ]);
    });
}

/// The real program, from a stand-in of its name.
const REAL: &str = "exec \"$(PATH=${PATH#*:} command -v ${0##*/})\" \"$@\"";

#[test]
fn programs_that_fail_are_heard() {
    apart(|| {
        if !ovs::is_here() {
            return;
        }
        let vsctl = "echo 'ovs-vsctl: unknown command' >&2; exit 1";
        up_with(&[("ovs-vsctl", vsctl)]).says(&[
            "cannot make bridge `br0` of Open vSwitch: ovs-vsctl failed (exit status: 1)",
            "unknown command",
        ]);
        let soft = "echo \"ovs-vsctl: Error detected while setting up 'br0'.\" >&2";
        up_with(&[("ovs-vsctl", soft)]).says(&["ovs-vsctl failed", "setting up 'br0'"]);
        let full = "echo 'ovsdb-tool: I/O error: No space left on device' >&2; exit 1";
        up_with(&[("ovsdb-tool", full)]).says(&[
            "cannot create a database for Open vSwitch: ovsdb-tool failed",
            "No space left",
        ]);
        up_with(&[("ovsdb-server", "echo 'no more' >&2; exit 3")])
            .says(&["Open vSwitch's ovsdb-server died (exit status: 3): no more"]);
        let switch =
            format!("[ \"$1\" != --version ] && {{ echo 'no cores' >&2; exit 5; }}; {REAL}");
        up_with(&[("ovs-vswitchd", &switch)])
            .says(&["Open vSwitch's ovs-vswitchd died (exit status: 5): no cores"]);
        up_with(&[("ovsdb-tool", "kill -9 $$")]).says(&["ovsdb-tool failed (signal: 9 (SIGKILL))"]);
    });
}

#[test]
fn a_program_that_hangs_is_given_up() {
    apart_waiting(|| {
        if !ovs::is_here() {
            return;
        }
        let said = up_with(&[("ovs-vsctl", "sleep 100 & sleep 100")]);
        said.says(&["ovs-vsctl did not end within 10s"]);
        assert!(said.took < Duration::from_secs(60), "{said}");
        let said = up_with(&[("ovsdb-server", "exec sleep 100")]);
        said.says(&[
            "ovsdb-server does not listen on /run/hopyard-ovs/",
            "after 10s",
        ]);
    });
}

#[test]
fn a_locked_database_is_told() {
    apart(|| {
        if !ovs::is_here() {
            return;
        }
        // Somebody else serves the database as soon as it is there, until its directory is gone.
        let tool = "real=$(PATH=${PATH#*:} command -v ovsdb-tool); \"$real\" \"$@\" || exit; \
        for db; do :; done; \
        ovsdb-server --unixctl=\"$0.ctl\" --remote=punix:\"$db.other\" -vsyslog:off \"$db\" \
            >/dev/null 2>&1 & holder=$!; \
        until [ -S \"$db.other\" ]; do sleep 0.01; done; \
        (while [ -e \"$db\" ]; do sleep 0.05; done; kill -9 $holder) >/dev/null 2>&1 &";
        up_with(&[("ovsdb-tool", tool)]).says(&["Open vSwitch's ovsdb-server died", "lock"]);
    });
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let _beside = beside();
    if !ovs::is_here() {
        return;
    }
    let room = Room::new();
    let file = room.file("mine.toml", plan(&[("paths", "[\"ovs-veth\"]")]));
    for (options, words) in [
        (
            "ro",
            ["cannot make directory /run/hopyard-ovs/", "Read-only"],
        ),
        ("size=4k", ["ovsdb-tool failed", "No space left"]),
    ] {
        let script = format!("mount -t tmpfs -o {options} none /run && exec \"$0\" run {file}");
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, PROGRAM]);
        let said = Running::start(command).wait();
        said.exits(2).says(&words);
        tell(said.stderr.trim_end());
    }
}

#[test]
fn a_switch_that_cannot_be_set_up_does_not_keep_the_others_from_being_measured() {
    apart(|| {
        if !ovs::is_here() {
            return;
        }
        let room = Room::new();
        let changes = [("paths", "[\"veth\", \"ovs-internal\"]")];
        let file = room.file("mine.toml", plan(&changes));
        let out = room.name("run");
        let words = ["run", &file, "--json", "--out", &out];
        let command = with_stand_ins(&room, &[("ovs-vsctl", "exit 1")], &words);
        let report = Running::start(command).wait().json();
        assert_eq!(report["cells"][0]["status"], "ok", "{report:#}");
        let cell = &report["cells"][1];
        assert_eq!(cell["status"], "unsupported", "{cell:#}");
        let cause = cell["cause"].as_str().unwrap();
        assert!(cause.contains("ovs-vsctl failed (exit status: 1): it said nothing"));
        run(&["clean"]).exits(0);
    });
}
