//! Open vSwitch in labs: what it is, what it counts as, where it lives and when it ends.

use std::path::Path;
use std::time::{Duration, Instant};

use hopyard::lab::{Lab, role};
use hopyard::meter::{CpuMeter, OwnProcesses};
use hopyard::model::{Cell, DatapathKind, LoadKind, Peer};
use hopyard_net::{NetNs, clock, has_genl_family};
use nix::sys::signal::Signal;

use crate::support::cli::{Running, hopyard, run};
use crate::support::host::unharmed;
use crate::support::icmp::ping;
use crate::support::ovs::{self, DAEMONS};
use crate::support::plan::{Room, plan};
use crate::support::traces::Traces;
use crate::support::{
    alone, apart, beside, cell, float, mostly, procs, proved, sampler, tell, until,
};

const PATHS: [&str; 2] = ["ovs-veth", "ovs-internal"];

fn build(cell: &Cell) -> Lab {
    let path = hopyard::lab::path(&cell.path).unwrap();
    Lab::build(path, cell.peer, &cell.axes).unwrap_or_else(|e| panic!("{}", hopyard::chain(&e)))
}

fn kind() -> DatapathKind {
    if has_genl_family("ovs_datapath").unwrap() {
        DatapathKind::Kernel
    } else {
        DatapathKind::Userspace
    }
}

#[test]
fn a_result_says_which_datapath_forwarded() {
    let _beside = beside();
    if !ovs::is_here() {
        return;
    }
    let room = Room::new();
    let file = room.file("mine.toml", plan(&[("paths", "[\"veth\", \"ovs-veth\"]")]));
    let out = room.name("run");
    let report = run(&["run", &file, "--json", "--out", &out])
        .exits(0)
        .json();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells[0]["datapath"], serde_json::Value::Null);
    let datapath = &cells[1]["datapath"];
    assert_eq!(datapath["kind"], kind().to_string());
    assert_eq!(datapath["switch"], "Open vSwitch");
    let line = format!(
        "ovs-veth: Open vSwitch {}, {} datapath.",
        datapath["version"].as_str().unwrap(),
        kind()
    );
    run(&["report", &out]).exits(0).prints(&[&line]);
    let warned = report["warnings"].to_string().contains("\"datapath\"");
    assert_eq!(warned, kind() == DatapathKind::Userspace, "{report:#}");
    tell(&line);
}

#[test]
fn the_switch_counts_as_the_loads_own() {
    let _alone = alone();
    if !ovs::is_here() {
        return;
    }
    for path in PATHS {
        let cell = cell(path, Peer::Local, LoadKind::TcpStream, &[]);
        let lab = build(&cell);
        // What others use between two readings, and in the window, is theirs.
        mostly(|| daemons_are_told_apart(&lab, &cell)).unwrap();
    }
}

/// The CPU time of a lab's daemons, by their own clocks and by a meter that has them among the load's or does not.
fn daemons_are_told_apart(lab: &Lab, cell: &Cell) -> Result<(), String> {
    let daemons = lab.daemons();
    assert_eq!(daemons.len(), 2);
    let used = || -> f64 {
        let all = daemons.iter().map(|pid| i32::try_from(*pid).unwrap());
        float(all.map(|pid| clock::process_cpu_ns(pid).unwrap()).sum())
    };
    let meter = CpuMeter::new().unwrap();
    let nobodys = OwnProcesses::default();
    let ours = OwnProcesses {
        pids: &daemons,
        cgroup: None,
    };
    // With the same load in between: all processes as foreign, all but the daemons.
    let (before, all_before) = (used(), meter.open(nobodys).unwrap());
    let rest_before = meter.open(ours).unwrap();
    let measured = proved(lab, cell, 300).unwrap();
    let rest = meter.close(ours).unwrap().since(&rest_before).foreign_ns;
    let all = meter.close(nobodys).unwrap().since(&all_before).foreign_ns;
    let (used, cpu) = (used() - before, measured.cpu);
    let said = format!(
        "{}: {:.2} Gbit/s, the daemons used {:.0} ms; foreign {:.1} % of busy time",
        cell.path,
        float(measured.received.bytes) * 8.0 / float(measured.window_ns),
        used / 1e6,
        cpu.foreign_ns / cpu.busy_ns * 100.0
    );
    tell(&said);
    if (all - rest - used).abs() >= 0.2 * used + 2e6 {
        return Err(format!("{said}; {all} with the daemons, {rest} without"));
    }
    if let Some(workers_ns) = cpu.workers_ns
        && kind() == DatapathKind::Userspace
    {
        // Without the switch's own, most would be nobody's or others': the workers are each below one CPU by far.
        let is_the_loads = workers_ns > 0.5 * (cpu.busy_ns - cpu.foreign_ns);
        if !is_the_loads || cpu.foreign_ns > rest + 0.2 * used {
            return Err(format!("{said}; {rest} without the daemons, {cpu:?}"));
        }
    }
    Ok(())
}

#[test]
fn long_frames_pass_whole() {
    let _beside = beside();
    if !ovs::is_here() {
        return;
    }
    for peer in Peer::ALL {
        let cell = cell("ovs-veth", peer, LoadKind::TcpStream, &[("mtu", "9000")]);
        let measured = proved(&build(&cell), &cell, 150).unwrap();
        let arrived = measured.arrived.unwrap();
        assert!(
            arrived.bytes / arrived.skbs > 4000,
            "{}: {arrived:?}",
            peer.name()
        );
    }
}

#[test]
fn a_lab_comes_and_goes_within_a_second() {
    let _beside = beside();
    if !ovs::is_here() {
        return;
    }
    for path in PATHS {
        let cell = cell(path, Peer::Local, LoadKind::TcpRr, &[]);
        let mut spans: Vec<Duration> = (0..5)
            .map(|_| {
                let began = Instant::now();
                drop(build(&cell));
                began.elapsed()
            })
            .collect();
        spans.sort();
        tell(&format!(
            "a lab of path {path} comes and goes in {:.0?}",
            spans[2]
        ));
        assert!(spans[2] < Duration::from_secs(1), "{path}: {spans:?}");
    }
}

#[test]
fn a_kept_lab_has_its_daemons_until_it_is_taken_down() {
    apart(|| {
        struct Ends;
        impl Drop for Ends {
            fn drop(&mut self) {
                let _ = hopyard(&["lab", "down", "test-ovs", "--force"]).output();
            }
        }
        if !ovs::is_here() {
            return;
        }
        let before = Traces::now();
        unharmed(|| {
            for path in PATHS {
                let _ends = Ends;
                let up = run(&["lab", "up", path, "--name", "test-ovs"]);
                up.exits(0)
                    .prints(&["datapath: ovs-vsctl --db=unix:/run/hopyard-ovs/"]);
                let daemons = ovs::all();
                assert_eq!(daemons.len(), 2, "{daemons:?}");
                run(&["clean"]).exits(0).prints(&["nothing to clean"]);
                let ns = NetNs::open(Path::new("/run/hopyard/test-ovs/a")).unwrap();
                ping(&ns, [198, 18, 0, 2].into()).unwrap();
                let show = up.stdout.lines().find_map(|l| l.split_once("datapath: "));
                let (_, show) = show.unwrap();
                let said = run(&["lab", "exec", "test-ovs", "hub", "--", "sh", "-c", show]);
                said.exits(0).prints(&["Bridge br0"]);
                // Only the lab's own daemons live in it: it is not in use.
                run(&["lab", "down", "test-ovs"]).exits(0);
                // They are this machine's init's by now, which may take its time to wait for them.
                let gone = |p: &procs::Process| {
                    procs::find(p.pid)
                        .is_none_or(|now| now.state == 'Z' || now.arguments.is_empty())
                };
                assert!(daemons.iter().all(gone), "{daemons:?}");
            }
        });
        before.unchanged().unwrap();
    });
}

#[test]
fn what_a_killed_builder_of_a_kept_lab_leaves_is_cleaned() {
    apart(|| {
        if !ovs::is_here() {
            return;
        }
        let before = Traces::now();
        let (mut with_daemons, mut whole) = (0, 0);
        for delay in (0..320).step_by(20) {
            let up = Running::start(hopyard(&[
                "lab",
                "up",
                "ovs-internal",
                "--name",
                "test-ovs",
            ]));
            until("it begins", Duration::from_secs(5), || {
                Path::new("/run/hopyard/test-ovs").exists()
            });
            std::thread::sleep(Duration::from_millis(delay));
            // It may be done.
            let _ = nix::sys::signal::kill(crate::support::cli::pid(up.pid()), Signal::SIGKILL);
            up.gone();
            let listed = run(&["lab", "list"]).exits(0).stdout.contains("test-ovs");
            let cleaned = run(&["clean"]);
            cleaned.exits(0);
            with_daemons += u32::from(cleaned.stdout.contains("daemon(s)"));
            whole += u32::from(listed);
            if listed {
                run(&["lab", "down", "test-ovs"]).exits(0);
            }
            run(&["clean"]).exits(0).prints(&["nothing to clean"]);
            assert_eq!(ovs::all(), []);
            assert_eq!(ovs::directories(), [""; 0]);
        }
        tell(&format!(
            "killed while building: daemons were left {with_daemons} times, the lab was whole {whole} times"
        ));
        assert!(with_daemons > 0);
        before.unchanged().unwrap();
    });
}

#[test]
fn daemons_end_with_a_killed_run_and_clean_takes_the_rest() {
    apart(|| {
        if !ovs::is_here() {
            return;
        }
        unharmed(|| {
            run(&["clean"]).exits(0);
            let room = Room::new();
            let changes = [("paths", "[\"ovs-internal\"]"), ("window", "\"3s\"")];
            let file = room.file("mine.toml", plan(&changes));
            let out = room.name("run");
            let running = Running::start(hopyard(&["run", &file, "--out", &out]));
            let daemons = ovs::until_measured(&running);
            assert!(DAEMONS.iter().all(|d| ovs::named(&daemons, d).is_some()));
            let namespaces = running.namespaces();
            running.signal(Signal::SIGKILL);
            running.wait_for_no_process(&namespaces);
            let left = ovs::directories();
            let [id] = &left[..] else {
                panic!("{left:?}");
            };
            run(&["doctor"]).exits(0).prints(&[id, "hopyard clean"]);
            let line = format!("removed Open vSwitch of lab {id}\n");
            run(&["clean"]).exits(0).prints(&[&line]);
            run(&["clean"]).exits(0).prints(&["nothing to clean"]);
            assert!(!Path::new(ovs::HOME).exists());
        });
    });
}

#[test]
fn clean_leaves_a_living_labs_daemons_alone() {
    apart(|| {
        if !ovs::is_here() {
            return;
        }
        let lab = build(&cell("ovs-internal", Peer::Local, LoadKind::TcpRr, &[]));
        run(&["clean"]).exits(0).prints(&["nothing to clean"]);
        let ns = lab.space(role::A).unwrap().handle.ns();
        ping(ns, lab.topology.server.addresses.v4.into()).unwrap();
        assert!(lab.death().is_none());
    });
}

#[test]
fn a_lab_touches_nothing_of_the_hosts_open_vswitch() {
    let _beside = beside();
    if !ovs::is_here() {
        return;
    }
    let listed = || {
        let directories = [
            "/etc/openvswitch",
            "/run/openvswitch",
            "/var/lib/openvswitch",
            "/var/log/openvswitch",
        ];
        let output = std::process::Command::new("find")
            .args(directories)
            .args(["-printf", "%p %s %T@\n"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let before = listed();
    for path in PATHS {
        drop(build(&cell(path, Peer::Host, LoadKind::TcpRr, &[])));
    }
    assert_eq!(listed(), before);
    // Its daemons answer on sockets of the lab's own alone.
    let sampler = sampler(60, 20);
    let cell = cell("ovs-veth", Peer::Host, LoadKind::TcpRr, &[]);
    assert!(
        sampler
            .measure_in(&build(&cell), &cell, 0.0)
            .unwrap()
            .way
            .proved
    );
}

#[test]
fn anybody_may_see_which_labs_there_are_and_nobody_what_is_in_them() {
    use std::os::unix::fs::PermissionsExt;
    let _beside = beside();
    if !ovs::is_here() {
        return;
    }
    let lab = build(&cell("ovs-veth", Peer::Local, LoadKind::TcpRr, &[]));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let home = Path::new("/run/hopyard-ovs");
    assert_eq!(mode(home) & 0o755, 0o755);
    assert_eq!(mode(&home.join(lab.id().to_string())), 0o700);
}
