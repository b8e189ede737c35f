//! `hopyard lab` and `hopyard clean`, for real.

use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hopyard::lab::{LabId, keep};
use hopyard::model::Peer;
use hopyard_net::Cgroup;
use nix::sys::signal::Signal;

use crate::leftovers::dead_id;
use crate::support::cli::{PROGRAM, Running, hopyard, run};
use crate::support::host::{has_cgroup2, unharmed};
use crate::support::traces::Traces;
use crate::support::{apart, procs, until};

mod half_built;

/// Takes labs down when a test ends, also by a panic.
struct Ends(&'static str);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = hopyard(&["lab", "down", self.0, "--force"]).output();
    }
}

#[test]
fn a_lab_is_built_listed_used_and_taken_down() {
    apart(|| {
        let before = Traces::now();
        unharmed(|| {
            let _ends = Ends("test-use");
            run(&[
                "lab", "up", "bridge", "--name", "test-use", "--set", "mtu=9000",
            ])
            .exits(0)
            .prints(&[
                "lab `test-use` is up",
                "path bridge",
                "198.18.0.1",
                "198.18.0.2",
            ]);
            run(&["lab", "list"])
                .exits(0)
                .prints(&["test-use", "bridge", "local"]);
            let labs = run(&["lab", "list", "--json"]).exits(0).json();
            assert!(
                labs.as_array()
                    .unwrap()
                    .iter()
                    .any(|l| l["name"] == "test-use" && l["path"] == "bridge"),
                "{labs}"
            );
            let said = run(&[
                "lab", "exec", "test-use", "a", "--", "ip", "-o", "link", "show", "eth0",
            ]);
            said.exits(0).prints(&["eth0", "mtu 9000"]);
            run(&["lab", "exec", "test-use", "hub", "--", "ip", "-o", "link"])
                .exits(0)
                .prints(&["br0", "veth-a", "veth-b"]);
            // The command's own exit status and output come back.
            let said = run(&[
                "lab",
                "exec",
                "test-use",
                "b",
                "--",
                "sh",
                "-c",
                "echo out; echo err >&2; exit 7",
            ]);
            said.exits(7).prints(&["out\n"]).says(&["err\n"]);
            // The same namespace by its file.
            let said = Running::start({
                let mut command = Command::new("nsenter");
                command.args(["--net=/run/hopyard/test-use/a", "ip", "-o", "-4", "address"]);
                command
            })
            .wait();
            said.exits(0).prints(&["198.18.0.1/20"]);
            run(&["lab", "down", "test-use"]).exits(0);
            run(&["lab", "list", "--json"]).exits(0).prints(&["[]"]);
        });
        before.unchanged().unwrap();
    });
}

#[test]
fn sysctls_in_a_lab_are_those_of_its_namespace() {
    apart(|| {
        unharmed(|| {
            let _ends = Ends("test-sysctl");
            run(&["lab", "up", "veth", "--name", "test-sysctl"]).exits(0);
            run(&[
                "lab",
                "exec",
                "test-sysctl",
                "a",
                "--",
                "sh",
                "-c",
                "echo 1 > /proc/sys/net/ipv4/ip_forward",
            ])
            .exits(0);
            run(&[
                "lab",
                "exec",
                "test-sysctl",
                "a",
                "--",
                "ls",
                "/sys/class/net",
            ])
            .exits(0);
        });
    });
}

#[test]
fn wrong_names_say_what_there_is() {
    apart(|| {
        let before = Traces::now();
        unharmed(|| {
            let _ends = Ends("test-names");
            run(&["lab", "up", "veth", "--name", "test-names"]).exits(0);
            run(&["lab", "up", "bridge", "--name", "test-names"])
                .exits(2)
                .says(&[
                    "there is a lab `test-names` already",
                    "--name",
                    "lab down test-names",
                ]);
            // The one that stands is as it was.
            run(&["lab", "exec", "test-names", "b", "--", "true"]).exits(0);
            run(&["lab", "exec", "test-names", "c", "--", "true"])
                .exits(2)
                .says(&["there is no endpoint `c`", "choose "]);
            run(&["lab", "exec", "test-names", "a", "--", "no-such-command"])
                .exits(2)
                .says(&["cannot run `no-such-command`", "No such file"]);
            run(&["lab", "exec", "test-names", "a"])
                .exits(2)
                .says(&["COMMAND"]);
            for command in ["exec", "down"] {
                let mut arguments = vec!["lab", command, "test-unknown"];
                if command == "exec" {
                    arguments.extend(["a", "--", "true"]);
                }
                run(&arguments).exits(2).says(&[
                    "there is no lab `test-unknown`",
                    "up: ",
                    "test-names",
                ]);
            }
            for name in [
                "../veth",
                "",
                "a b",
                "x/y",
                ".",
                "way-too-long-a-name-for-a-lab-to-have",
            ] {
                run(&["lab", "up", "veth", "--name", name])
                    .exits(2)
                    .says(&["is not a valid name of a lab", "1 to 32"]);
            }
            run(&["lab", "down", "test-names"]).exits(0);
            run(&["lab", "down", "test-names"])
                .exits(2)
                .says(&["there is no lab `test-names` (none is up)"]);
        });
        before.unchanged().unwrap();
    });
}

#[test]
fn a_lab_that_cannot_be_built_leaves_nothing() {
    apart(|| {
        let before = Traces::now();
        unharmed(|| {
            run(&["lab", "up", "wormhole"])
                .exits(2)
                .says(&["there is no path `wormhole`", "choose native, unix"]);
            run(&["lab", "up", "veth", "--peer", "far"])
                .exits(2)
                .says(&["path `veth` has no peer `far`", "local, host"]);
            run(&["lab", "up", "veth", "--set", "mtu=1500,9000"])
                .exits(2)
                .says(&[
                    "a lab has one value of `mtu`",
                    "a sweep is for `hopyard run`",
                ]);
            run(&["lab", "up", "bridge", "--set", "rate=100mbit"])
                .exits(2)
                .says(&["axis `rate` does nothing with peer local", "--peer"]);
            run(&["lab", "up", "veth", "--set", "lro=on"])
                .exits(2)
                .says(&["has lro off [fixed]", "leave `lro` out"]);
            // It would go with its builder.
            let mut within = Command::new("unshare");
            within.args(["--mount", "--propagation", "slave", PROGRAM]);
            within.args(["lab", "up", "veth"]);
            Running::start(within)
                .wait()
                .exits(2)
                .says(&["cannot be kept", "nsenter --net=FILE"]);
            run(&["lab", "up", "veth", "--set", "mtu=17"])
                .exits(2)
                .says(&["mtu goes from 1280"]);
        });
        before.unchanged().unwrap();
    });
}

#[test]
fn a_lab_in_use_is_taken_down_only_by_force() {
    apart(|| {
        let before = Traces::now();
        unharmed(|| {
            let _ends = Ends("test-busy");
            run(&["lab", "up", "veth", "--name", "test-busy"]).exits(0);
            let inside = Running::start(hopyard(&[
                "lab",
                "exec",
                "test-busy",
                "b",
                "--",
                "sleep",
                "50",
            ]));
            until("the command runs", Duration::from_secs(5), || {
                procs::find(inside.pid())
                    .is_some_and(|p| p.arguments.first().is_some_and(|a| a == "sleep"))
            });
            run(&["lab", "down", "test-busy"]).exits(2).says(&[
                "processes still run in lab `test-busy`",
                &format!("sleep ({})", inside.pid()),
                "in `b`",
                "--force",
            ]);
            run(&[
                "lab",
                "exec",
                "test-busy",
                "a",
                "--",
                "ip",
                "link",
                "show",
                "eth0",
            ])
            .exits(0);
            run(&["lab", "down", "test-busy", "--force"]).exits(0);
            run(&["lab", "list"]).exits(0).prints(&["no lab is up"]);
            // Forced is the lab, not the process.
            assert!(procs::find(inside.pid()).is_some());
            inside.signal(Signal::SIGKILL);
            inside.wait();
        });
        before.unchanged().unwrap();
    });
}

#[test]
fn a_kept_lab_survives_clean_and_the_end_of_its_builder() {
    apart(|| {
        let before = Traces::now();
        unharmed(|| {
            let _ends = Ends("test-kept");
            run(&["clean"]).exits(0);
            run(&[
                "lab",
                "up",
                "veth-route",
                "--name",
                "test-kept",
                "--peer",
                "far",
            ])
            .exits(0);
            run(&["clean"]).exits(0).prints(&["nothing to clean"]);
            run(&[
                "lab",
                "exec",
                "test-kept",
                "far",
                "--",
                "ip",
                "route",
                "show",
                "default",
            ])
            .exits(0)
            .prints(&["default via 198.18.48.254"]);
            // Runs do not mind it.
            run(&["lab", "down", "test-kept"]).exits(0);
        });
        before.unchanged().unwrap();
    });
}

#[test]
fn two_of_a_kind_stand_beside_each_other() {
    apart(|| {
        let before = Traces::now();
        let (_one, _other) = (Ends("test-one"), Ends("test-two"));
        run(&["lab", "up", "veth", "--name", "test-one"]).exits(0);
        run(&[
            "lab", "up", "veth", "--name", "test-two", "--set", "mtu=2000",
        ])
        .exits(0);
        let mtu = |name: &str| {
            run(&[
                "lab", "exec", name, "a", "--", "ip", "-o", "link", "show", "eth0",
            ])
        };
        mtu("test-one").prints(&["mtu 1500"]);
        mtu("test-two").prints(&["mtu 2000"]);
        run(&["lab", "down", "test-one"]).exits(0);
        mtu("test-two").exits(0);
        run(&["lab", "down", "test-two"]).exits(0);
        before.unchanged().unwrap();
    });
}

#[test]
fn clean_beside_a_builder_takes_nothing_of_its_lab() {
    apart(|| {
        let before = Traces::now();
        let path = hopyard::lab::path("veth").unwrap();
        let axes = hopyard::model::Axes::default();
        let done = AtomicBool::new(false);
        let _ends = Ends("test-beside");
        std::thread::scope(|scope| {
            let cleaner = scope.spawn(|| {
                let mut removed = Vec::new();
                while !done.load(Relaxed) {
                    let cleaned = hopyard::lab::clean::clean(false).unwrap();
                    removed.extend(cleaned.removed);
                    removed.extend(cleaned.problems);
                }
                removed
            });
            let mut failures = Vec::new();
            for _ in 0..100 {
                let up = keep::up("test-beside", path, Peer::Local, &axes);
                failures.extend(up.err().map(|e| hopyard::chain(&e)));
                let down = hopyard::lab::clean::down("test-beside", true);
                failures.extend(down.err().map(|e| hopyard::chain(&e)));
            }
            done.store(true, Relaxed);
            let removed = cleaner.join().unwrap();
            assert!(
                failures.is_empty() && removed.is_empty(),
                "{failures:?} {removed:?}"
            );
        });
        before.unchanged().unwrap();
    });
}

#[test]
fn a_draft_belongs_to_its_builder_and_to_clean_after_that() {
    apart(|| {
        let before = Traces::now();
        for (id, builder_lives) in [(LabId::next().to_string(), true), (dead_id(), false)] {
            let draft = Path::new(keep::HOME).join(format!(".{id}"));
            std::fs::create_dir_all(&draft).unwrap();
            run(&["lab", "list"]).exits(0);
            let cleaned = run(&["clean"]);
            cleaned.exits(0);
            assert_eq!(draft.exists(), builder_lives, "{cleaned}");
            assert_eq!(cleaned.stdout.contains(&id), !builder_lives, "{cleaned}");
            let _ = std::fs::remove_dir(&draft);
            let _ = std::fs::remove_dir(keep::HOME);
        }
        before.unchanged().unwrap();
    });
}

/// Somebody else's control group; it goes with the test, also with one that fails half-way.
struct Foreign(Cgroup);

impl Drop for Foreign {
    fn drop(&mut self) {
        // A panic on top of a failing test would hide why it fails.
        let _ = self.0.remove();
    }
}

#[test]
fn clean_takes_away_nothing_of_the_living_and_nothing_of_others() {
    apart(|| {
        if !has_cgroup2() {
            return;
        }
        // Not a lab's name, so not a lab's.
        let other = Foreign(Cgroup::create("somebody-else").unwrap());
        let lab = hopyard::lab::Lab::build(
            hopyard::lab::path("veth").unwrap(),
            Peer::Local,
            &hopyard::model::Axes::default(),
        )
        .unwrap();
        run(&["clean"]).exits(0);
        assert!(other.0.path().exists());
        assert!(lab.cgroup().unwrap().path().exists());
        drop(lab);
        let path = other.0.path().to_owned();
        drop(other);
        assert!(!path.exists());
        assert!(Path::new(PROGRAM).exists());
    });
}

/// Whoever can write to the directory of labs chooses what `lab down` removes as root.
#[test]
fn a_lab_is_kept_only_where_nobody_else_could_exchange_it() {
    apart(|| {
        let home = Path::new(keep::HOME);
        let data = Path::new("/run/data");
        std::fs::create_dir(data).unwrap();
        let refused = |why: &str, there: &Path| {
            let up = run(&["lab", "up", "veth", "--name", "test-theirs"]);
            assert!(!up.status.success(), "{up}");
            up.says(&[why]);
            assert_eq!(std::fs::read_dir(there).unwrap().count(), 0, "{up}");
        };
        std::fs::create_dir(home).unwrap();
        chown(home, Some(1000), None).unwrap();
        refused("`/run/hopyard` belongs to user 1000", home);
        std::fs::remove_dir(home).unwrap();
        symlink(data, home).unwrap();
        refused("symbolic link", data);
    });
}
