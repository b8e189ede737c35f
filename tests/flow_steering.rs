//! Axes `rps` and `rfs`: packets are worked on by other CPUs, where they are read, and the machine is as before.

use std::fs;
use std::process::Command;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use hopyard::lab::Lab;
use hopyard::model::{LoadKind, Peer};
use hopyard_net::cpu;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;

use crate::axes::{build, devices, measured};
use crate::support::cli::{PROGRAM, Running, hopyard, run};
use crate::support::plan::Room;
use crate::support::traces::Traces;
use crate::support::walk::{Visit, walk};
use crate::support::{alone, beside, cell, mostly, tell, until};

/// The kernel has one table of readers for the whole machine, and tests beside each other would see each other's.
static TABLE: Mutex<()> = Mutex::new(());

/// Entries of the kernel's table of readers.
fn entries() -> u32 {
    let text = fs::read_to_string("/proc/sys/net/core/rps_sock_flow_entries").unwrap();
    text.trim().parse().unwrap()
}

/// What the kernel says of the first receive queue of each device of a lab: the device, its CPUs as a set, and flows.
fn first_queues(lab: &Lab) -> Vec<(String, String, u32)> {
    let mut queues = Vec::new();
    for of_space in devices(lab).chunk_by(|(one, _), (other, _)| one == other) {
        let role = of_space[0].0;
        let names: Vec<&str> = of_space.iter().map(|(_, name)| name.as_str()).collect();
        let script = format!(
            "mount -t sysfs sysfs /sys || exit; for name in {}; do queue=/sys/class/net/$name/queues/rx-0; \
             echo \"$(cat $queue/rps_cpus) $(cat $queue/rps_flow_cnt)\"; done",
            names.join(" ")
        );
        let words = ["--mount", "sh", "-c", &script];
        let ns = lab.space(role).unwrap().handle.ns();
        let output = ns.run(|| Command::new("unshare").args(words).output());
        let text = String::from_utf8(output.unwrap().unwrap().stdout).unwrap();
        let mut lines = text.lines();
        for name in names {
            let line = lines.next().unwrap_or_default();
            let (cpus, flows) = line.split_once(' ').unwrap_or_default();
            queues.push((
                format!("{role}/{name}"),
                cpus.to_owned(),
                flows.parse().unwrap_or(0),
            ));
        }
    }
    assert!(!queues.is_empty(), "no device: {}", lab.path.name);
    queues
}

/// Anybody may lock a directory that they can read.
#[test]
fn a_lock_on_a_directory_that_everybody_can_read_holds_up_no_lab() {
    let _table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let _beside = beside();
    let run = fs::File::open("/run").unwrap();
    let held = Flock::lock(run, FlockArg::LockExclusive).unwrap();
    let (end, ended) = mpsc::channel();
    std::thread::spawn(move || {
        drop(
            build(&cell(
                "veth",
                Peer::Local,
                LoadKind::TcpRr,
                &[("rfs", "on")],
            ))
            .unwrap(),
        );
        end.send(()).unwrap();
    });
    let built = ended.recv_timeout(Duration::from_secs(20));
    drop(held);
    assert_eq!(built, Ok(()));
    assert!(!std::path::Path::new("/run/hopyard-rfs.lock").exists());
}

#[test]
fn every_device_is_steered_and_the_machine_is_as_before() {
    let _table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let _beside = beside();
    let before = entries();
    let all = (1_u64 << cpu::online_cpus().unwrap().len()) - 1;
    walk("rfs", |path, peer| {
        let of = |value| cell(path.name, peer, LoadKind::TcpRr, &[("rfs", value)]);
        let lab = build(&of("on")).map_err(|e| hopyard::chain(&e))?;
        assert_eq!(entries(), 32_768);
        for (device, cpus, flows) in first_queues(&lab) {
            if u64::from_str_radix(&cpus, 16) != Ok(all) || !(128..=32_768).contains(&flows) {
                return Err(format!("{device}: CPUs {cpus}, {flows} flows"));
            }
        }
        drop(lab);
        assert_eq!(entries(), before);
        let lab = build(&of("off")).map_err(|e| hopyard::chain(&e))?;
        for (device, cpus, flows) in first_queues(&lab) {
            if u64::from_str_radix(&cpus, 16) != Ok(0) || flows != 0 {
                return Err(format!("off: {device}: CPUs {cpus}, {flows} flows"));
            }
        }
        Ok(Visit::Checked)
    });
}

/// Packets that a CPU was told to work on by another one, all CPUs together (`received_rps` of softnet_stat).
fn steered() -> u64 {
    let text = fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let column = |line: &str| {
        let word = line.split_whitespace().nth(9).unwrap();
        u64::from_str_radix(word, 16).unwrap()
    };
    text.lines().map(column).sum()
}

#[test]
fn packets_are_worked_on_where_they_are_read() {
    let _alone = alone();
    let of = |value| {
        let set = [("rfs", value), ("placement", "split")];
        let cell = cell("veth", Peer::Local, LoadKind::UdpStream, &set);
        let before = steered();
        let measured = measured(&cell, 200, 50).unwrap();
        (steered() - before, measured.received.messages)
    };
    mostly(|| {
        let (off, _) = of("off");
        let (on, received) = of("on");
        let said = format!("steered: {on} of {received} with rfs=on, {off} with rfs=off");
        tell(&said);
        assert_eq!(off, 0, "{said}");
        if 10 * on > received {
            Ok(())
        } else {
            Err(said)
        }
    })
    .unwrap();
}

#[test]
fn every_device_is_steered_without_readers() {
    let _table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let _beside = beside();
    let before = entries();
    let all = (1_u64 << cpu::online_cpus().unwrap().len()) - 1;
    walk("rps", |path, peer| {
        let cell = cell(path.name, peer, LoadKind::TcpRr, &[("rps", "on")]);
        let lab = build(&cell).map_err(|e| hopyard::chain(&e))?;
        // The kernel's table is for `rfs` alone.
        assert_eq!(entries(), before);
        for (device, cpus, flows) in first_queues(&lab) {
            if u64::from_str_radix(&cpus, 16) != Ok(all) || flows != 0 {
                return Err(format!("{device}: CPUs {cpus}, {flows} flows"));
            }
        }
        Ok(Visit::Checked)
    });
}

#[test]
fn a_hash_spreads_flows_over_cpus() {
    let _alone = alone();
    let of = |value| {
        let set = [("rps", value), ("flows", "8"), ("placement", "same")];
        let cell = cell("veth", Peer::Local, LoadKind::UdpStream, &set);
        let before = steered();
        let measured = measured(&cell, 200, 50).unwrap();
        (steered() - before, measured.received.messages)
    };
    assert_eq!(of("off").0, 0);
    // All flows are sent by one CPU; the hash gives another one half of them, or less by chance.
    mostly(|| {
        let (on, received) = of("on");
        let said = format!("steered: {on} of {received}");
        tell(&said);
        if 20 * on > received {
            Ok(())
        } else {
            Err(said)
        }
    })
    .unwrap();
}

#[test]
fn a_namespace_without_the_table_is_told() {
    let _beside = beside();
    let mut command = Command::new("unshare");
    command.args([
        "--net", PROGRAM, "run", "--paths", "veth", "--set", "rfs=on",
    ]);
    Running::start(command).wait().exits(2).says(&[
        "no receive flow steering support",
        "run hopyard in the machine's first network namespace, or leave `rfs` out",
    ]);
}

/// A run that ends by SIGKILL while it measures.
fn killed_run() {
    let room = Room::new();
    let out = room.name("run");
    let set = ["--set", "rfs=on", "--blocks", "100", "--out", &out];
    let words = ["run", "--paths", "veth", "--loads", "tcp_rr"];
    let running = Running::start(hopyard(&[&words[..], &set[..]].concat()));
    until("a lab is in use", Duration::from_secs(10), || {
        running.lab_workers().len() == 2
    });
    running.signal(Signal::SIGKILL);
    assert!(!running.gone().success());
}

#[test]
fn the_last_lab_sets_the_table_back_also_after_sigkill() {
    let _alone = alone();
    // Control groups of tests that were apart, whose PID namespaces have ended.
    run(&["clean"]).exits(0);
    let (before, traces) = (entries(), Traces::now());
    let up = |name| run(&["lab", "up", "veth", "--name", name, "--set", "rfs=on"]);
    up("test-rfs").exits(0);
    killed_run();
    run(&["doctor"])
        .exits(0)
        .prints(&["effect: a sysctl of this machine is raised"]);
    run(&["clean"]).exits(0);
    assert_eq!(entries(), 32_768, "a lab that stands needs it");
    run(&["lab", "down", "test-rfs"]).exits(0);
    assert_eq!(entries(), before);

    // As the last one it is set back by `clean`.
    killed_run();
    assert_eq!(entries(), 32_768);
    let said = run(&["clean"]);
    let back = format!("sysctl `net/core/rps_sock_flow_entries`, set back to {before}");
    assert!(said.exits(0).stdout.contains(&back), "{said}");
    assert_eq!(entries(), before);
    traces.unchanged().unwrap();
}
