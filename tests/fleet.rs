//! `hopyard fleet`: namespaces on a bridge as machines, measured in pairs by the real program.

mod broken;
mod data;
mod kubernetes;
mod matrix;
mod relays;
mod resumed;
mod slurm;
mod ssh;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::time::Duration;

use hopyard_net::NetNs;
use serde_json::Value;

use crate::support::cli::{PROGRAM, Running, Said, hopyard};
use crate::support::host::unharmed;
use crate::support::plan::Room;
use crate::support::{beside, tell, until};

/// Windows so short that a pair takes two seconds.
const SHORT: [&str; 8] = [
    "--loads",
    "tcp_stream",
    "--window",
    "100ms",
    "--warm-up",
    "20ms",
    "--blocks",
    "2",
];

/// Machines `n1`, `n2`, … with addresses 192.0.2.1, …, all on one bridge.
struct Site {
    _hub: NetNs,
    machines: Vec<NetNs>,
    room: Room,
}

impl Site {
    fn new(count: usize) -> Self {
        let hub = NetNs::create().unwrap();
        within(&hub, "ip link add br0 type bridge; ip link set br0 up");
        let machine = |number: usize| {
            let machine = NetNs::create().unwrap();
            let there = file(&machine);
            within(
                &hub,
                &format!(
                    "ip link add p{number} type veth peer name eth0 netns {there}
                     ip link set p{number} master br0 up"
                ),
            );
            within(
                &machine,
                &format!(
                    "ip link set lo up; ip link set eth0 up; ip addr add 192.0.2.{number}/24 dev eth0"
                ),
            );
            machine
        };
        Self {
            machines: (1..=count).map(machine).collect(),
            _hub: hub,
            room: Room::new(),
        }
    }

    /// The command that leads to a machine, by its number.
    fn prefix(&self, number: usize) -> String {
        format!("nsenter --net={}", file(&self.machines[number - 1]))
    }

    /// A file that names them all, and further lines.
    fn file(&self, more: &str) -> String {
        let lines: String = (1..=self.machines.len())
            .map(|number| format!("n{number} {}\n", self.prefix(number)))
            .collect();
        self.room.file("endpoints", lines + more)
    }

    /// `hopyard fleet …`; the program under test is what machines find as `hopyard`.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = hopyard(&[&["fleet"], words].concat());
        let directory = std::path::Path::new(PROGRAM).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let bin = self.room.name("bin");
        command.env("PATH", format!("{bin}:{}:{path}", directory.display()));
        command.env("TMPDIR", self.room.path());
        command.current_dir(self.room.path());
        command
    }

    fn start(&self, words: &[&str]) -> Running {
        Running::start(self.command(words))
    }

    /// Runs it to its end, after which nothing of it is left.
    fn run(&self, words: &[&str]) -> Said {
        self.start(words).wait_for_nothing_left(&BTreeSet::new())
    }

    /// `fleet.json` of a directory.
    fn document(&self, directory: &str) -> Value {
        let text = std::fs::read(self.room.at(directory).join("fleet.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

/// A file that stands for a namespace as long as this process holds it.
fn file(ns: &NetNs) -> String {
    let number = ns.as_fd().as_raw_fd();
    format!("/proc/{}/fd/{number}", std::process::id())
}

fn within(ns: &NetNs, script: &str) {
    let enter = format!("--net={}", file(ns));
    let done = Command::new("nsenter")
        .args([&enter, "sh", "-ec", script])
        .status();
    assert!(done.unwrap().success(), "{script}");
}

/// Pairs of a document by `CLIENT→SERVER`.
fn pairs(document: &Value) -> BTreeMap<String, Value> {
    let pairs = document["pairs"].as_array().unwrap().iter();
    let name = |pair: &Value| {
        let [client, server] = ["client", "server"].map(|end| pair[end].as_str().unwrap());
        format!("{client}→{server}")
    };
    pairs.map(|pair| (name(pair), pair.clone())).collect()
}

/// For each machine the runs that have a worker in it now, by their process ids.
fn runs_in(running: &Running, machines: &[NetNs]) -> BTreeMap<String, BTreeSet<u32>> {
    let inode = |path: String| {
        std::fs::metadata(path)
            .ok()
            .map(|m| std::os::unix::fs::MetadataExt::ino(&m))
    };
    let of: BTreeMap<u64, String> = machines
        .iter()
        .zip(1..)
        .map(|(ns, number)| (inode(file(ns)).unwrap(), format!("n{number}")))
        .collect();
    let mut found: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for process in running.processes() {
        let there = inode(format!("/proc/{}/ns/net", process.pid));
        if let Some(name) = there.and_then(|there| of.get(&there)) {
            found
                .entry(name.clone())
                .or_default()
                .insert(process.parent);
        }
    }
    found
}

/// One of four sends slowly. What it receives is as fast as anybody's.
#[test]
fn all_pairs_are_measured_no_machine_is_in_two_and_the_slow_one_is_named() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(4);
        within(
            &site.machines[2],
            "tc qdisc add dev eth0 root tbf rate 20mbit burst 16k latency 50ms",
        );
        let endpoints = site.file("");
        let words = [
            "run",
            &endpoints,
            "-o",
            "out",
            "--pairs",
            "both-ways",
            "--json",
        ];
        let mut running = site.start(&[&words[..], &SHORT].concat());
        let (mut most, mut looks) = (0, 0);
        let said = loop {
            let runs = runs_in(&running, &site.machines);
            for (machine, of) in &runs {
                // A process that has just been started has its parent's namespace yet, or is being replaced.
                assert!(of.len() <= 1, "{machine} is in {of:?}");
            }
            most = most.max(runs.values().flatten().collect::<BTreeSet<_>>().len());
            looks += 1;
            if running.has_ended() {
                break running.wait_for_nothing_left(&BTreeSet::new());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        tell(&format!("{looks} looks, {most} runs at once at most"));
        assert_eq!(most, 2);
        let document = said.exits(0).json();
        assert_eq!(document["schema"], "hopyard/fleet/1");
        assert_eq!(document["counts"]["measured"], 12);
        assert_eq!(document, site.document("out"));
        let all = pairs(&document);
        assert_eq!(all.len(), 12);
        // By what it wrote itself, too.
        for (name, pair) in &all {
            let span = |pair: &Value| {
                let [began, took] = ["began_ms", "took_ms"].map(|f| pair[f].as_u64().unwrap());
                began..began + took
            };
            let ends = |pair: &Value| [pair["client"].clone(), pair["server"].clone()];
            for (other, beside) in all.iter().filter(|(other, _)| *other != name) {
                let shares = ends(pair).iter().any(|end| ends(beside).contains(end));
                let (a, b) = (span(pair), span(beside));
                assert!(
                    !shares || a.end <= b.start || b.end <= a.start,
                    "{name} and {other}"
                );
            }
            let figure = &pair["figures"][0];
            assert_eq!(figure["quantity"], "goodput_bps");
            assert_eq!(figure["unit"], "bit/s");
            assert!(
                figure["low"].as_f64() <= figure["value"].as_f64(),
                "{figure}"
            );
            // A window of 100 ms may have a burst of what was shaped to 20 Mbit/s; others have more than 1 Gbit/s.
            let slow = figure["value"].as_f64().unwrap() < 100e6;
            assert_eq!(slow, pair["client"] == "n3", "{name}: {figure}");
        }
        let worst = &document["machines"][0];
        assert_eq!(worst["name"], "n3", "{:#}", document["machines"]);
        assert!(worst["standing"].as_f64() < Some(0.5), "{worst:#}");
        // Again from the journal, for people.
        let shown = site.run(&["show", "out"]);
        shown.exits(0).prints(&["12 of 12 pairs measured"]);
        let lines: Vec<&str> = shown.stdout.lines().collect();
        let below = |head: &str| {
            let at = lines
                .iter()
                .position(|line| line.starts_with(head))
                .unwrap();
            lines[at + 2].split_whitespace().next().unwrap().to_owned()
        };
        assert_eq!(below("worst machines"), "n3", "{shown}");
        assert_eq!(below("worst pairs"), "n3", "{shown}");
        tell(&shown.stdout);
        let again = site.run(&["show", "out", "--json"]);
        assert_eq!(again.exits(0).json(), document);
    });
}

#[test]
fn a_plan_is_printed_and_nothing_is_reached_or_made() {
    let _beside = beside();
    let site = Site::new(0);
    let file = site.room.file(
        "five",
        "a false 1\nb false 2\nc false 3\nd false 4\ne false 5\n",
    );
    let said = site.run(&["plan", &file, "--window", "1s", "--blocks", "3..9"]);
    said.exits(0)
        .prints(&["10 pairs in 5 rounds, 2 at once", "round 5:"]);
    let plan = site.run(&["plan", &file, "--json", "--pairs", "ring"]);
    let plan = plan.exits(0).json();
    assert_eq!(plan["schema"], "hopyard/fleet-plan/1");
    assert_eq!(plan["rounds"].as_array().unwrap().len(), 3);
    assert_eq!(plan["rounds"][2][0], serde_json::json!(["e", "a"]));
    let many: String = (0..1000).map(|n| format!("n{n} ssh n{n}\n")).collect();
    let many = site.room.file("many", many);
    let said = site.run(&["plan", &many, "--at-once", "500"]);
    said.exits(0)
        .prints(&["499500 pairs in 999 rounds, 500 at once"]);
    tell(&format!("1000 machines planned in {:?}", said.took));
    let left = std::fs::read_dir(site.room.path()).unwrap().count();
    assert_eq!(left, 2);
}

/// `scontrol` and `srun` are stand-ins: the second checks its flags and enters the namespace of the node.
#[test]
fn the_nodes_of_a_slurm_allocation_are_a_fleet() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(2);
        std::fs::create_dir(site.room.at("bin")).unwrap();
        let script = |name: &str, text: &str| {
            let text = format!("#!/bin/sh\n{text}\n");
            site.room.program(&format!("bin/{name}"), text);
        };
        script(
            "scontrol",
            "[ \"$*\" = 'show hostnames node[1-2]' ] && printf 'node1\\nnode2\\n'",
        );
        script(
            "srun",
            &format!(
                "[ \"$1 $2 $4\" = '--nodes=1 --ntasks=1 --overlap' ] || exit 9
                 case $3 in --nodelist=node1) to='{}';; --nodelist=node2) to='{}';; *) exit 8;; esac
                 while case $1 in -*) true;; *) false;; esac; do shift; done
                 exec $to \"$@\"",
                site.prefix(1),
                site.prefix(2)
            ),
        );
        let words = [&["run", "--slurm", "-o", "out"], &SHORT[..]].concat();
        site.run(&words)
            .exits(2)
            .says(&["SLURM_JOB_NODELIST is not set", "salloc"]);
        assert!(!site.room.at("out").exists());
        let mut command = site.command(&words);
        command.env("SLURM_JOB_NODELIST", "node[1-2]");
        let said = Running::start(command).wait_for_nothing_left(&BTreeSet::new());
        said.exits(0).prints(&["1 of 1 pair measured", "node1"]);
    });
}
