//! Senders in containers: what they are made of, how they are scheduled, and the way of each.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hopyard::lab::{Lab, LabKey, Path, role};
use hopyard::load::remote::Remote;
use hopyard::model::{Axes, Cell, Containers, Family, FlowControl, Hop, LoadKind, Peer};
use hopyard_net::{Cgroup, LinkKind, NewLink};
use nix::sched::{CpuSet, sched_setaffinity};

use crate::support::cli::{PROGRAM, pid, run};
use crate::support::host::unharmed;
use crate::support::plan::Room;
use crate::support::traces::Traces;
use crate::support::walk::{Visit, those_here, walk_all};
use crate::support::{alone, beside, cell, float, mostly, proved, sampler, skip, slower, tell};

fn contained(path: &str, peer: Peer, load: LoadKind, more: &[(&str, &str)]) -> Cell {
    let set = [&[("containers", "own"), ("flows", "3")], more].concat();
    cell(path, peer, load, &set)
}

fn build(cell: &Cell) -> Result<Lab, String> {
    let path = hopyard::lab::path(&cell.path).unwrap();
    Lab::build(path, cell.peer, &cell.axes).map_err(|e| hopyard::chain(&e))
}

/// The namespaces of a kind that processes are in.
fn namespaces(remotes: &[Remote], kind: &str) -> BTreeSet<String> {
    let of = |remote: &Remote| fs::read_link(format!("/proc/{}/ns/{kind}", remote.pid())).unwrap();
    let links = remotes.iter().map(of);
    links
        .map(|link| link.to_string_lossy().into_owned())
        .collect()
}

fn own(kind: &str) -> String {
    let link = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
    link.to_string_lossy().into_owned()
}

#[test]
fn a_container_has_namespaces_of_its_own() {
    let _beside = beside();
    let lab = build(&contained("bridge", Peer::Local, LoadKind::UdpStream, &[])).unwrap();
    let clients = lab.start_clients(PROGRAM.as_ref()).unwrap();
    for kind in ["net", "pid", "mnt", "cgroup"] {
        let found = namespaces(&clients, kind);
        assert_eq!(found.len(), 3, "{kind}: {found:?}");
        assert!(!found.contains(&own(kind)), "{kind}");
    }
    for client in &clients {
        let status = fs::read_to_string(format!("/proc/{}/status", client.pid())).unwrap();
        let pids = status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:"))
            .unwrap();
        assert_eq!(pids.split_whitespace().last(), Some("1"), "{pids}");
        // It sees its own processes alone.
        let seen = fs::read_dir(format!("/proc/{}/root/proc", client.pid())).unwrap();
        let numbers = seen
            .flatten()
            .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        assert_eq!(numbers.collect::<Vec<_>>(), [1]);
    }
}

#[test]
fn native_senders_are_processes_of_one_endpoint() {
    let _beside = beside();
    let set = [("containers", "native"), ("flows", "3")];
    let cell = cell("bridge", Peer::Local, LoadKind::UdpStream, &set);
    let lab = build(&cell).unwrap();
    let clients = lab.start_clients(PROGRAM.as_ref()).unwrap();
    assert_eq!(clients.len(), 3);
    assert_eq!(namespaces(&clients, "net").len(), 1);
    assert_eq!(namespaces(&clients, "pid"), BTreeSet::from([own("pid")]));
    assert_eq!(namespaces(&clients, "mnt"), BTreeSet::from([own("mnt")]));
}

/// They are processes of the host, by its own interface; a container has another path.
#[test]
fn native_senders_send_by_the_interface_of_the_host() {
    let _beside = beside();
    let set = [("containers", "native"), ("flows", "3")];
    for load in [LoadKind::UdpFlood, LoadKind::TcpStream, LoadKind::UdpRr] {
        let cell = cell("native", Peer::Far, load, &set);
        let lab = build(&cell).unwrap();
        let measured = proved(&lab, &cell, 150).unwrap();
        assert_eq!(measured.silent_flows, Some(0), "{load}");
        // A wire of veth has no pause frames, and says so.
        let ends = measured
            .link
            .iter()
            .map(|end| (&*end.name, end.flow_control));
        let none = FlowControl::None;
        assert_eq!(ends.collect::<Vec<_>>(), [("up0", none), ("far0", none)]);
        let clients = lab.start_clients(PROGRAM.as_ref()).unwrap();
        assert_eq!(clients.len(), 3);
        let hub = lab.space("hub").unwrap().handle.ns().inode().unwrap();
        assert_eq!(
            namespaces(&clients, "net"),
            BTreeSet::from([format!("net:[{hub}]")])
        );
    }
    let local = cell("native", Peer::Local, LoadKind::UdpFlood, &set);
    let measured = proved(&build(&local).unwrap(), &local, 150).unwrap();
    assert!(measured.link.is_empty());
    let own = cell(
        "native",
        Peer::Far,
        LoadKind::UdpFlood,
        &[("containers", "own")],
    );
    let error = build(&own).unwrap_err();
    assert!(error.contains("set `containers=native`"), "{error}");
}

#[test]
fn containers_are_compared_with_native_senders() {
    let _beside = beside();
    let room = Room::new();
    let run_of = |more: &[&str]| {
        let what = ["run", "--peer", "far", "--loads", "udp_flood", "--out"];
        let how = [
            "--set", "flows=2", "--blocks", "2", "--window", "100ms", "--json",
        ];
        let out = room.name("run");
        run(&[&what[..], &[&out], &how, more].concat())
    };
    let both = ["--set", "containers=native,own", "--base", "native"];
    run_of(&["--paths", "native", "--set", "containers=own"])
        .exits(2)
        .says(&["path `native` has no cell with these values of its axes (containers)"]);
    let report = run_of(&[&["--paths", "native,macvlan"], &both[..]].concat());
    let report = report.exits(0).json();
    let cells = report["cells"].as_array().unwrap();
    let kinds: Vec<(&str, &str)> = cells
        .iter()
        .map(|cell| {
            let containers = &cell["axes"]["containers"];
            (cell["path"].as_str().unwrap(), containers.as_str().unwrap())
        })
        .collect();
    assert_eq!(
        kinds,
        [
            ("native", "native"),
            ("macvlan", "native"),
            ("macvlan", "own")
        ]
    );
    for cell in &cells[1..] {
        assert_eq!(cell["link"][0]["flow_control"], "none", "{cell:#}");
    }
    for cell in cells {
        let figure = |name: &str| cell["estimates"][name]["value"].as_f64();
        let switches = figure("client_context_switches_per_s");
        assert!(switches > Some(0.0), "{cell:#}");
        // Where the machine counts none there is no figure, which is not 0.
        assert_ne!(figure("client_cache_misses_per_s"), Some(0.0), "{cell:#}");
    }
    let text = run(&["report", &room.name("run")]);
    text.exits(0)
        .prints(&["Flow control of the link: hub/up0, far/far0: no pause frames"]);
}

/// The paths that have containers, with each of their peers.
fn walk_contained(what: &str, each: impl Fn(&'static Path, Peer) -> Result<(), String>) {
    walk_all(what, |path, peer, _| {
        let own = Axes {
            containers: Some(Containers::Own),
            ..Axes::default()
        };
        if path.axes.contains(&"containers") && (path.has)(&own) {
            each(path, peer)?;
            Ok(Visit::Checked)
        } else {
            Ok(Visit::PassedOver)
        }
    });
}

#[test]
fn every_container_carries_and_its_way_is_proved() {
    // Its many senders and receivers are late where others run.
    let _alone = alone();
    unharmed(|| {
        walk_contained("containers", |path, peer| {
            let before = Traces::now();
            let cells = [
                LoadKind::TcpStream,
                LoadKind::TcpMaerts,
                LoadKind::UdpRr,
                LoadKind::UdpFlood,
            ]
            .map(|load| contained(path.name, peer, load, &[]));
            let lab = build(&cells[0])?;
            for cell in &cells {
                assert_eq!(LabKey::of(cell), LabKey::of(&cells[0]), "another lab");
                let measured = proved(&lab, cell, 100)?;
                if measured.client_scheduling.switches().is_none() {
                    return Err("nobody counted context switches".to_owned());
                }
            }
            drop(lab);
            let cell = contained(path.name, peer, LoadKind::TcpCrr, &[("family", "6")]);
            proved(&build(&cell)?, &cell, 100)?;
            before.unchanged()
        });
    });
}

/// What comes from the server is routed by the domain's table, and by the main one only where that has no route.
#[test]
fn a_routing_domain_has_the_routes_to_its_containers() {
    let _beside = beside();
    if those_here(&["vrf"]).is_empty() {
        return;
    }
    let lab = build(&contained("vrf", Peer::Local, LoadKind::TcpRr, &[])).unwrap();
    let hub = lab.space(role::HUB).unwrap().handle.ns();
    let routes = |table: &str| {
        let listed = hub.run(|| {
            Command::new("ip")
                .args(["route", "show", "table", table])
                .output()
        });
        String::from_utf8(listed.unwrap().unwrap().stdout).unwrap()
    };
    let [domain, main] = ["100", "main"].map(routes);
    for container in &lab.topology.containers {
        let address = container.endpoint.addresses.of(Family::V4).to_string();
        let is_to_it = |line: &str| line.split(' ').next() == Some(&*address);
        assert!(domain.lines().any(is_to_it), "{address} in {domain}");
        assert!(!main.lines().any(is_to_it), "{address} in {main}");
    }
    tell(&format!("{} routes in the domain", domain.lines().count()));
}

#[test]
fn a_device_that_one_container_alone_does_not_pass_refutes_the_way() {
    let _beside = beside();
    for load in [LoadKind::TcpStream, LoadKind::UdpRr] {
        let cell = contained("bridge", Peer::Local, load, &[]);
        let mut lab = build(&cell).unwrap();
        let container = &mut lab.topology.containers[1];
        let role = container.endpoint.role;
        container.way.push(Hop::tx(role, "idle0"));
        let handle = &lab.space(role).unwrap().handle;
        let pair = LinkKind::veth("idle1", None);
        handle.add_link(&NewLink::new("idle0", pair)).unwrap();
        let measured = sampler(100, 30).measure_in(&lab, &cell, 0.0).unwrap();
        let problems = &measured.way.problems;
        assert!(
            problems.iter().any(|p| p.starts_with("c2/idle0 sent 0 ")),
            "{load}: {problems:?}"
        );
    }
}

#[test]
fn native_and_contained_senders_share_their_flows_alike() {
    let _beside = beside();
    for containers in ["native", "own"] {
        let set = [
            ("containers", containers),
            ("flows", "4"),
            ("pace", "40mbit"),
        ];
        let cell = cell("veth", Peer::Local, LoadKind::UdpStream, &set);
        let lab = build(&cell).unwrap();
        mostly(|| {
            let measured = proved(&lab, &cell, 300).unwrap();
            let bps = |bytes: u64| 8e9 * float(bytes) / float(measured.window_ns);
            let (sent, read) = (bps(measured.sent.bytes), bps(measured.received.bytes));
            let said = format!("{containers}: {sent} bit/s sent, {read} read");
            // Who reads late reads in the window what came before it too; who sends late leaves out what was due.
            assert!(sent < 44e6, "{said}");
            if (36e6..44e6).contains(&read) {
                Ok(())
            } else {
                Err(said)
            }
        })
        .unwrap();
    }
}

/// Scheduling policies of a process's threads: field 41 of their `stat` (`proc(5)`).
fn policies(pid: u32) -> BTreeSet<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let stat = |task: fs::DirEntry| fs::read_to_string(task.path().join("stat")).ok();
    let stats = tasks.flatten().filter_map(stat);
    stats
        .filter_map(|stat| {
            let (_, fields) = stat.rsplit_once(')')?;
            fields.split_whitespace().nth(38).map(str::to_owned)
        })
        .collect()
}

/// Those of the processes in the groups below one.
fn policies_below(cgroup: &std::path::Path) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let groups = fs::read_dir(cgroup).into_iter().flatten().flatten();
    for group in groups.filter(|entry| entry.path().is_dir()) {
        let procs = fs::read_to_string(group.path().join("cgroup.procs"));
        for pid in procs
            .unwrap_or_default()
            .lines()
            .filter_map(|l| l.parse().ok())
        {
            if fs::metadata(format!("/proc/{pid}")).is_ok() {
                seen.extend(policies(pid));
            }
        }
    }
    seen
}

#[test]
fn round_robin_is_of_the_senders() {
    let _beside = beside();
    let set = [("scheduler", "round-robin"), ("client_cpus", "0")];
    let cell = contained("bridge", Peer::Local, LoadKind::UdpStream, &set);
    let lab = build(&cell).unwrap();
    let cgroup = lab.cgroup().unwrap().path();
    // SCHED_OTHER until it begins, SCHED_FIFO (which its children do not have) for who counts, SCHED_RR for who sends.
    let wanted = BTreeSet::from(["0", "1", "2"].map(str::to_owned));
    // Who looks may have no CPU while one of them is to be seen.
    mostly(|| {
        let mut seen = BTreeSet::<String>::new();
        let ended = AtomicBool::new(false);
        let measured = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Relaxed) {
                    seen.extend(policies_below(cgroup));
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            let measured = proved(&lab, &cell, 300);
            ended.store(true, Relaxed);
            measured
        });
        assert!(measured.unwrap().received.messages > 0);
        assert!(seen.is_subset(&wanted), "{seen:?}");
        if seen == wanted {
            Ok(())
        } else {
            Err(format!("scheduling policies {seen:?}, not {wanted:?}"))
        }
    })
    .unwrap();
}

/// A process that is always ready, on CPU 0, in a control group.
struct Busy(Child);

impl Busy {
    fn in_group(group: &Cgroup) -> Self {
        let mut shell = Command::new("sh");
        let busy = Self(shell.args(["-c", "while :; do :; done"]).spawn().unwrap());
        let mut first = CpuSet::new();
        first.set(0).unwrap();
        sched_setaffinity(pid(busy.0.id()), &first).unwrap();
        group.add(busy.0.id()).unwrap();
        busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The control group that a sender's process is in.
fn group_of(client: &Remote) -> Cgroup {
    let text = fs::read_to_string(format!("/proc/{}/cgroup", client.pid())).unwrap();
    let mut lines = text.lines();
    let name = lines.find_map(|line| line.strip_prefix("0::/hopyard/"));
    Cgroup::open(name.unwrap()).unwrap()
}

/// CPU time of a sender's control group with three busy processes in it, divided by that of another sender's group with one. All are on
/// one CPU.
fn crowded_over_the_other(scheduler: &str) -> Result<f64, String> {
    let set = [("scheduler", scheduler)];
    let cell = contained("veth", Peer::Local, LoadKind::UdpStream, &set);
    let lab = build(&cell)?;
    // The senders have started, and wait to be told what to send.
    let clients = lab.start_clients(PROGRAM.as_ref()).unwrap();
    let groups: Vec<Cgroup> = clients.iter().map(group_of).collect();
    let distinct: BTreeSet<_> = groups.iter().map(Cgroup::path).collect();
    assert_eq!(distinct.len(), clients.len(), "{groups:?}");
    let [crowded, other] = [&groups[0], &groups[1]];
    let _busy = [crowded, crowded, crowded, other].map(Busy::in_group);
    let used = || [crowded, other].map(|group| group.usage().unwrap());
    let before = used();
    std::thread::sleep(Duration::from_millis(400 * slower()));
    let after = used();
    let [crowded, other] = [0, 1].map(|at| after[at] - before[at]);
    if other > Duration::from_millis(10) {
        Ok(crowded.div_duration_f64(other))
    } else {
        Err(format!("the one process had {other:?} of the CPU"))
    }
}

/// With a share for each sender's group, three processes in one have as much of the CPU as one in another; without, three times as
/// much. `kernels::conformance` runs this in a guest too, where nobody withholds the controller.
#[test]
fn a_group_has_its_share_whatever_runs_in_it() {
    let _beside = beside();
    if let Err(why) = Cgroup::check_cpu_shares() {
        let script = "grep -qw cpu $(sed -n 's/^[^ ]* \\([^ ]*\\) cgroup2 .*/\\1/p' /proc/mounts | head -n 1)/cgroup.subtree_control";
        let present = Command::new("sh").args(["-c", script]).status();
        return skip(
            "cgroup2 controller cpu",
            present.unwrap().success(),
            &why.to_string(),
        );
    }
    mostly(|| {
        let without = crowded_over_the_other("default")?;
        let with = crowded_over_the_other("groups")?;
        let said = format!(
            "three processes in a sender's group, one in another's: {with:.1} times as much CPU time with shares, {without:.1} without"
        );
        tell(&said);
        (without > 2.0 && (0.5..1.7).contains(&with))
            .then_some(())
            .ok_or(said)
    })
    .unwrap();
}

#[test]
fn what_cannot_be_scheduled_so_is_said_before_anything_is_built() {
    let _beside = beside();
    let of = |set: &[&str]| {
        let mut words = vec![
            "run", "--paths", "bridge", "--loads", "udp_rr", "--blocks", "1..1",
        ];
        words.extend(set.iter().flat_map(|set| ["--set", set]));
        run(&words)
    };
    of(&["client_cpus=1000"])
        .exits(2)
        .says(&["cannot use client_cpus 1000: this process may run on CPUs"]);
    of(&["client_cpus=x"])
        .exits(2)
        .says(&["CPUs as in 0, 0-3 or 0+2"]);
    of(&["scheduler=groups"])
        .exits(2)
        .says(&["set `containers`"]);
    if hopyard_net::Cgroup::check_cpu_shares().is_err() {
        of(&["scheduler=groups", "containers=own"])
            .exits(2)
            .says(&["cgroup2 controller cpu", "choose another scheduler"]);
    }
    let said = run(&[
        "run",
        "--paths",
        "vm",
        "--loads",
        "udp_rr",
        "--set",
        "containers=own",
    ]);
    said.exits(2);
}
