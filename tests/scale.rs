//! A thousand endpoints: built, addressed, connected, taken down; and what a SIGKILL in the middle leaves.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hopyard::lab::Lab;
use hopyard::model::{LoadKind, Peer};
use nix::sys::signal::Signal;

use crate::support::cli::{PATIENCE, PROGRAM, Running, hopyard, run};
use crate::support::host::unharmed;
use crate::support::icmp::ping_within;
use crate::support::traces::Traces;
use crate::support::{alone, beside, cell, mostly, sampler, tell, until};

const MANY: usize = 1000;
/// A first frame may have to be flooded to everybody.
const ANSWER: Duration = Duration::from_secs(2);

fn build(path: &str, containers: usize) -> Lab {
    let flows = containers.to_string();
    let set = [("containers", "own"), ("flows", flows.as_str())];
    let cell = cell(path, Peer::Local, LoadKind::UdpStream, &set);
    Lab::build(hopyard::lab::path(path).unwrap(), Peer::Local, &cell.axes).unwrap()
}

#[test]
fn a_thousand_endpoints_come_and_go() {
    let _alone = alone();
    unharmed(|| {
        drop(build("bridge", 2));
        let before = Traces::now();
        for path in ["bridge", "veth", "macvlan", "direct"] {
            let began = Instant::now();
            let lab = build(path, MANY);
            let built = began.elapsed();
            let server = lab.topology.server.addresses.v4.into();
            assert_eq!(lab.topology.containers.len(), MANY);
            for container in [0, MANY / 2, MANY - 1] {
                let role = lab.topology.containers[container].endpoint.role;
                let ns = lab.space(role).unwrap().handle.ns();
                ping_within(ns, server, ANSWER).unwrap();
            }
            let began = Instant::now();
            drop(lab);
            let gone = began.elapsed();
            tell(&format!(
                "{MANY} endpoints on {path}: built in {built:.2?}, removed in {gone:.2?}"
            ));
            before.unchanged().unwrap();
        }
    });
}

#[test]
fn a_thousand_workers_start_in_containers() {
    let _alone = alone();
    drop(build("bridge", 2));
    let before = Traces::now();
    let lab = build("bridge", MANY);
    let began = Instant::now();
    let clients = lab.start_clients(PROGRAM.as_ref()).unwrap();
    let started = began.elapsed();
    assert_eq!(clients.len(), MANY);
    let began = Instant::now();
    let mut clients = clients;
    clients
        .iter_mut()
        .for_each(hopyard::load::remote::Remote::dismiss);
    drop(clients);
    tell(&format!(
        "{MANY} workers in containers: started in {started:.2?}, gone in {:.2?}",
        began.elapsed(),
    ));
    drop(lab);
    // Namespaces that go keep a worker of the kernel busy all the time: the idle machine is read when they are gone.
    let idle = sampler(100, 50).quiet_cores().unwrap();
    assert!(idle.least < 0.9, "the machine was not quiet: {idle:?}");
    before.unchanged().unwrap();
}

/// Most of the memory that a process has had resident so far, KiB.
fn resident_kib(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The controller's memory, and the path proof.
#[test]
fn a_thousand_containers_are_measured() {
    const WINDOW_S: f64 = 0.5;
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let flows = format!("flows={MANY}");
    let mut command = hopyard(&["run", "--paths", "bridge", "--loads", "udp_flood"]);
    command.args([
        "--blocks",
        "2",
        "--window",
        &format!("{WINDOW_S}s"),
        "--json",
    ]);
    command.args(["--set", "containers=own", "--set", &flows, "--out"]);
    command.arg(home.path().join("run"));
    let running = Running::start(command);
    let mut resident = 0;
    until("the run ends", PATIENCE, || {
        let now = resident_kib(running.pid());
        resident = resident.max(now.unwrap_or(0));
        now.is_none()
    });
    let report = running.wait().exits(0).json();
    let cell = &report["cells"][0];
    assert_eq!(cell["way"]["proved"], true, "{}", cell["way"]);
    // Turns on one CPU take some 3 ms each.
    let silent = cell["estimates"]["silent_flows"]["value"].as_f64().unwrap();
    let warned = report["warnings"].as_array().unwrap().iter();
    let warned = warned.filter(|w| w["code"] == "silent_flows").count();
    assert_eq!(warned, usize::from(silent > 0.0), "{silent}");
    assert!((1..200 << 10).contains(&resident), "{resident} KiB");
    tell(&format!(
        "{MANY} containers: {silent} had no turn in {WINDOW_S} s, the controller had {resident} KiB"
    ));
}

/// Workers of the kernel that take down network namespaces just now, by their names.
fn namespaces_going() -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let names = entries.filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok());
    names
        .filter(|name| name.trim_end().ends_with("+netns"))
        .collect()
}

/// The first that are seen within a span of time.
fn first_going(within: Duration) -> Option<String> {
    let began = Instant::now();
    while began.elapsed() < within {
        let going = namespaces_going();
        if !going.is_empty() {
            return Some(format!("{going:?} after {:?}", began.elapsed()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Else the kernel's work on them would be in the next sample.
#[test]
fn what_many_containers_leave_is_gone_before_the_next_sample() {
    let _beside = beside();
    let set = [("containers", "own"), ("flows", "300")];
    let cell = cell("bridge", Peer::Local, LoadKind::UdpFlood, &set);
    // Other people's namespaces may go at any time.
    mostly(|| {
        let measured = sampler(100, 50).measure(&cell, 0.0);
        measured.map_err(|e| hopyard::chain(&e))?;
        first_going(Duration::from_millis(300)).map_or(Ok(()), Err)
    })
    .unwrap();
}

/// Ends a kept lab whatever happens.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        run(&["lab", "down", NAME, "--force"]);
        run(&["clean"]);
    }
}

const NAME: &str = "test-many";

fn entries(directory: &str) -> usize {
    fs::read_dir(directory).map_or(0, |entries| entries.flatten().count())
}

/// Has `lab up` killed on its way, and cleans.
fn killed(path: &str, containers: usize, kill: impl Fn(&[&str])) {
    // What others left is none of it.
    run(&["clean"]).exits(0);
    let before = Traces::now();
    let _ends = Ends;
    let flows = format!("flows={containers}");
    let up = ["lab", "up", path, "--name", NAME];
    let set = ["--set", "containers=own", "--set", &flows];
    kill(&[&up[..], &set].concat());
    let cleaned = run(&["clean"]);
    cleaned.exits(0).prints(&["unfinished lab `test-many`"]);
    run(&["clean"]).exits(0).prints(&["nothing to clean"]);
    assert!(!Path::new("/run/hopyard").join(NAME).exists());
    before.unchanged().unwrap();
}

/// Kills the program as one of its threads enters a call for the time of that number.
fn killed_at(call: &str, number: usize, words: &[&str]) {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "signal=none"]);
    strace.args(["-e", &format!("trace={call}"), "-e"]);
    strace.arg(format!("inject={call}:signal=SIGKILL:when={number}"));
    // The test runner's, where the loader would look first.
    strace.env_remove("LD_LIBRARY_PATH");
    strace.args(["--", PROGRAM]).args(words);
    let said = Running::start(strace).wait();
    assert_eq!(said.status.signal(), Some(9), "{said}");
}

/// Kills the program when half of 60 ports are bound; again where it was done before it was killed.
fn killed_while_binding(words: &[&str]) {
    const TRIES: u32 = 5;
    let is_bound = || {
        let switches = "/sys/fs/bpf/hopyard/switch";
        let mut found = fs::read_dir(switches).into_iter().flatten().flatten();
        found.any(|switch| entries(&switch.path().to_string_lossy()) > 40)
    };
    for _ in 0..TRIES {
        let up = Running::start(hopyard(words));
        until("30 ports are bound", Duration::from_secs(60), is_bound);
        up.signal(Signal::SIGKILL);
        up.wait();
        if !run(&["lab", "list"]).exits(0).stdout.contains(NAME) {
            return;
        }
        run(&["lab", "down", NAME]).exits(0);
    }
    panic!("{TRIES} labs were whole before they were killed");
}

#[test]
fn what_a_kill_in_the_middle_of_a_thousand_leaves_is_cleaned() {
    let _alone = alone();
    unharmed(|| {
        // Four threads at most make the namespaces, so that each makes 250 or more.
        killed("bridge", MANY, |up| killed_at("unshare", MANY / 5, up));
        // One gives them their names.
        killed("bridge", MANY, |up| {
            killed_at("mount", MANY / 2 + 1, up);
            assert!(entries(&format!("/run/hopyard/{NAME}")) > MANY / 2);
        });
        killed("direct", 60, killed_while_binding);
    });
}
