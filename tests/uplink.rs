//! Labs whose wire is a card of this machine and one of another: two namespaces play the machines, a veth between them the cards.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aya::programs::{SchedClassifier, TcAttachType};
use aya::{Ebpf, include_bytes_aligned};
use hopyard_net::{Handle, NetNs};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::apart;
use crate::support::cli::{PATIENCE, PROGRAM, Running, Said, has_traffic, hopyard, run};
use crate::support::plan::Room;
use crate::support::procs::Process;
use crate::support::{skip_part, tell, until};

/// Boot ids of machines that there are not.
const BOOT: [&str; 2] = [
    "11111111-1111-4111-8111-111111111111",
    "22222222-2222-4222-8222-222222222222",
];

/// What udev calls the card of the first machine besides.
const ALTNAME: &str = "enp9s9";

/// Two machines with a management link each (`mgmt0`, which nobody may touch) and a cable between their cards `eth0`.
struct Site {
    here: NetNs,
    there: NetNs,
    room: Room,
}

fn file(ns: &NetNs) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), ns.as_fd().as_raw_fd())
}

impl Site {
    fn new() -> Self {
        let site = Self {
            here: NetNs::create().unwrap(),
            there: NetNs::create().unwrap(),
            room: Room::new(),
        };
        let there = file(&site.there);
        site.at(
            &site.here,
            &format!(
                "ip link set lo up; ip link add eth0 type veth peer name eth0 netns {there}
                 ip link add mgmt0 type veth peer name mgmt0 netns {there}
                 ip link set eth0 mtu 1400; ip link set eth0 addrgenmode none; ip -6 addr add fe80::77/64 dev eth0 nodad
                 ip addr add 10.9.0.1/24 dev eth0; ip -6 addr add fd00::1/64 dev eth0 nodad
                 ip link set mgmt0 addrgenmode none; ip -6 addr add fe80::99/64 dev mgmt0 nodad
                 ip addr add 10.8.0.1/24 dev mgmt0; ip link set mgmt0 up; ip link set eth0 up
                 ip route add 10.77.0.0/16 via 10.9.0.2 metric 50; ip route add 10.78.0.0/16 dev eth0
                 ip link property add dev eth0 altname {ALTNAME}
                 # As a network manager does: it makes the route to the subnet in the kernel's place.
                 ip addr add 10.9.1.1/24 dev eth0 noprefixroute
                 ip route add 10.9.1.0/24 dev eth0 proto kernel scope link src 10.9.1.1 metric 100
                 echo 1 > /proc/sys/net/ipv4/conf/eth0/accept_local
                 ethtool -K eth0 gro on tso off tx-tcp6-segmentation on 2>/dev/null || true"
            ),
        );
        site.at(
            &site.there,
            "ip link set lo up; ip addr add 10.9.0.2/24 dev eth0; ip link set eth0 up
             ip link set mgmt0 addrgenmode none; ip addr add 10.8.0.2/24 dev mgmt0; ip link set mgmt0 up",
        );
        site
    }

    fn at(&self, ns: &NetNs, script: &str) -> String {
        let enter = format!("--net={}", file(ns));
        let output = Command::new("nsenter")
            .args([&enter, "sh", "-ec", script])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// All that a machine has configured, in any order, with the index of its card: no counters, not whether the other end is up or the
    /// card ever was, and of the link-local addresses only the one that the test gave, because the kernel gives others a moment after a
    /// card comes up.
    fn state(&self, ns: &NetNs) -> String {
        self.at(
            ns,
            "ip -o link show dev eth0 2>/dev/null | cut -d: -f1
             ip -o link show | sed 's/^[0-9]*: //; s/@[^:]*//; s/ link-netns.*//; s/NO-CARRIER,//; s/,LOWER_UP//; s/ state [A-Z]*//; s/qdisc noop /qdisc noqueue /' | sort
             ip -o addr show | sed 's/^[0-9]*: //; s/valid_lft.*//; /fe80::77/b; /inet6 fe80:/d' | sort
             ip -4 route show table all | sed 's/ linkdown//' | sort; ip -6 route show table main | sed '/^fe80:/d' | sort
             ip -6 route show table main dev mgmt0 | sort
             cat /proc/sys/net/ipv4/conf/eth0/accept_local 2>/dev/null || true
             ethtool -k eth0 2>/dev/null | head -n 20 || true",
        )
    }

    /// A machine's own boot id, where hopyard looks for it.
    fn machine(&self, ns: &NetNs, number: usize) -> String {
        let boot = self.room.file(&format!("boot-{number}"), BOOT[number]);
        let script = format!("mount --bind {boot} /proc/sys/kernel/random/boot_id && exec \"$@\"");
        let program = std::path::Path::new(PROGRAM).parent().unwrap().display();
        let path = std::env::var("PATH").unwrap();
        self.room.file(
            &format!("machine-{number}"),
            format!(
                "#!/bin/sh\nexport PATH={program}:{path}\nexec nsenter --net={} unshare --mount --propagation unchanged sh -c '{script}' sh \"$@\"\n",
                file(ns)
            ),
        )
    }

    fn command(&self, words: &[&str]) -> Command {
        let far = format!("sh {}", self.machine(&self.there, 1));
        let out = self.room.name("run");
        let mut all = vec!["run", "--far", &far, "--json", "--out", &out];
        if !words.contains(&"--uplink") {
            all.extend(["--uplink", "eth0"]);
        }
        all.extend(words);
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={}", file(&self.here)))
            .arg(PROGRAM)
            .args(all);
        command
    }

    fn run(&self, words: &[&str]) -> Said {
        let _ = std::fs::remove_dir_all(self.room.at("run"));
        // Control groups are everybody's, and processes of other tests that are apart have the same numbers.
        Running::start(self.command(words)).wait_for_no_process(&BTreeSet::new())
    }

    /// A run whose traffic flows, and goes on to.
    fn with_traffic(&self) -> Running {
        let long = ["--window", "20s", "--blocks", "2..2"];
        let mut command =
            self.command(&[&["--paths", "bridge", "--loads", "tcp_stream"], &long[..]].concat());
        command.stdin(std::process::Stdio::null());
        let running = Running::start(command);
        until("traffic flows", PATIENCE, || {
            let processes = running.processes();
            processes
                .iter()
                .any(|p: &Process| p.is_worker() && has_traffic(p))
        });
        running
    }

    /// Kills a run. The far machine notices by itself, since its stdin ends, and is as it was.
    fn kill(&self, running: Running, far_before: &str) {
        running.signal(Signal::SIGKILL);
        running.wait_for_no_process(&BTreeSet::new());
        until("the far card is back", Duration::from_secs(20), || {
            far_before == self.state(&self.there)
        });
    }

    fn clean(&self, ns: &NetNs) -> Said {
        ns.run(|| Running::start(hopyard(&["clean"])).wait())
            .unwrap()
    }
}

/// From which ports the workers of a run connect: all namespaces of a lab say so, also that of the far machine.
fn ports_of_workers(running: &Running) -> Vec<String> {
    let mut workers = running.processes();
    workers.retain(Process::is_worker);
    let ports = |worker: &Process| {
        let ns = NetNs::open(format!("/proc/{}/ns/net", worker.pid).as_ref()).unwrap();
        let handle = Handle::new(&ns).unwrap();
        handle.sysctl("net/ipv4/ip_local_port_range").unwrap()
    };
    workers.iter().map(ports).collect()
}

const BRIEF: [&str; 6] = ["--window", "100ms", "--warm-up", "30ms", "--blocks", "2..2"];

#[test]
fn paths_are_built_on_the_cards_of_two_machines_and_the_cards_come_back_as_they_were() {
    apart(|| {
        let site = Site::new();
        let before = [site.state(&site.here), site.state(&site.there)];
        let paths = [
            "--paths",
            "native,veth-route,bridge,macvlan,vxlan,direct",
            "--loads",
            "tcp_rr,tcp_stream",
        ];
        let said = site.run(&[&paths[..], &BRIEF].concat());
        let report = said.json();
        let cells = report["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 12, "{said}");
        for cell in cells {
            let name = format!("{} {}", cell["path"], cell["load"]);
            assert_eq!(cell["status"], "ok", "{name}: {cell:#}");
            assert_eq!(cell["peer"], "far", "{name}");
            assert_eq!(cell["way"]["proved"], true, "{name}: {:#}", cell["way"]);
            let has_far = |device: &Value| device["namespace"] == "far";
            assert!(
                cell["way"]["devices"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(has_far),
                "{name}"
            );
            assert!(
                cell["estimates"]["latency_p50_ns"].is_object() || cell["load"] == "tcp_stream",
                "{name}"
            );
            tell(&format!(
                "{name}: {}",
                cell["estimates"]["goodput_bps"]["value"]
            ));
        }
        said.exits(0);
        assert_eq!(before, [site.state(&site.here), site.state(&site.there)]);
        assert!(!std::path::Path::new("/run/hopyard-cards").exists());
    });
}

/// The reports whose authors had two machines. Their plans make a wire; here the cable is it.
#[test]
fn plans_of_reports_run_on_two_machines_and_stand_beside_their_figures() {
    apart(|| {
        for (plan, paths, row, figure, whose_cpu) in [
            (
                "netns-macvlan-2007",
                &["native", "veth-route", "macvlan"][..],
                "here ",
                '±',
                "the client's machine",
            ),
            (
                "netback-direct-2006",
                &["bridge-nf", "bridge", "direct"],
                "netback switching",
                '×',
                "both machines",
            ),
        ] {
            let site = Site::new();
            // The far end brings it up, and down again.
            site.at(&site.there, "ip link set eth0 down");
            let before = [site.state(&site.here), site.state(&site.there)];
            let named = [plan, "--uplink", ALTNAME, "--far-uplink", "eth0"];
            let said = site.run(&[&named[..], &BRIEF].concat());
            said.says(&["the cable takes the place of the plan's wire: rate=1gbit and wire_pause=2ms left out"]);
            let report = said.json();
            let cells = report["cells"].as_array().unwrap();
            for path in paths {
                assert!(
                    cells.iter().any(|cell| cell["path"] == *path),
                    "{path}: {said}"
                );
            }
            for cell in cells {
                assert_eq!(cell["status"], "ok", "{cell:#}");
                assert_eq!(cell["peer"], "far", "{cell:#}");
                assert_eq!(cell["way"]["proved"], true, "{cell:#}");
                assert_eq!(cell["axes"]["rate"], Value::Null, "{cell:#}");
            }
            said.exits(0);
            let shown =
                Running::start(hopyard(&["report", &site.room.name("run"), "--published"])).wait();
            let has_figure = |line: &str| line.contains(row) && line.contains(figure);
            let shown = shown.exits(0);
            assert!(shown.stdout.lines().any(has_figure), "{shown}");
            let run = site.room.name("run");
            let judge = ["claims", "--from", &run, "--format", "json"];
            let judged = Running::start(hopyard(&judge)).wait();
            let stand_in = judged.exits(0).json()["reports"][0]["stand_in"].take();
            assert!(stand_in.as_str().unwrap().contains(whose_cpu), "{judged}");
            assert_eq!(before, [site.state(&site.here), site.state(&site.there)]);
        }
    });
}

#[test]
fn after_sigkill_clean_puts_both_cards_back() {
    apart(|| {
        let site = Site::new();
        let before = [site.state(&site.here), site.state(&site.there)];
        let running = site.with_traffic();
        assert_ne!(before[0], site.state(&site.here));
        assert_eq!(ports_of_workers(&running), ["1024\t65535"; 2]);
        // Whoever has a lab with it keeps it.
        let said = site.clean(&site.here);
        said.exits(0);
        assert_ne!(before[0], site.state(&site.here), "{said}");
        site.kill(running, &before[1]);
        let said = site.here.run(|| run(&["doctor"])).unwrap();
        said.exits(0)
            .prints(&["effect: a card of this host is away"]);
        let said = site.clean(&site.here);
        said.exits(0).prints(&["the card of lab"]);
        assert_eq!(before[0], site.state(&site.here), "{said}");
        assert!(!std::path::Path::new("/run/hopyard-cards").exists());
    });
}

#[test]
fn what_could_not_be_put_back_is_not_forgotten() {
    apart(|| {
        let site = Site::new();
        let [before, far] = [site.state(&site.here), site.state(&site.there)];
        let running = site.with_traffic();
        site.kill(running, &far);
        site.at(&site.here, "ip link add eth0 type veth peer name other0");
        site.clean(&site.here)
            .exits(1)
            .says(&["another device has its name now", "`hopyard clean`"]);
        assert!(!site.state(&site.here).contains("10.9.0.1"));
        site.at(&site.here, "ip link del eth0");

        let cards = std::fs::read_dir("/run/hopyard-cards").unwrap();
        let card = cards.map(|entry| entry.unwrap().path()).next().unwrap();
        let file = card.join("record.json");
        let whole = std::fs::read(&file).unwrap();
        let mut record: Value = serde_json::from_slice(&whole).unwrap();
        // No IPv4 route has a prefix of 33 bits.
        let routes = record["routes"].as_array_mut().unwrap();
        routes.push(serde_json::json!([2, 33, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0]));
        std::fs::write(&file, record.to_string()).unwrap();
        for _ in 0..2 {
            site.clean(&site.here).exits(1).says(&[
                "put a route back",
                "record.json",
                "tries again",
            ]);
        }
        assert_eq!(before, site.state(&site.here), "all the rest is back");
        site.run(&[&["--paths", "bridge", "--loads", "tcp_rr"], &BRIEF[..]].concat())
            .says(&[
                "an earlier lab did not restore its configuration",
                "record.json",
            ]);
        assert_eq!(before, site.state(&site.here));
        std::fs::write(&file, whole).unwrap();
        site.clean(&site.here).exits(0).prints(&["the card of lab"]);
        assert_eq!(before, site.state(&site.here));
        assert!(!std::path::Path::new("/run/hopyard-cards").exists());
    });
}

/// The report must not say of both ends what one alone has.
#[test]
fn offloads_are_set_at_both_ends_of_the_cable_and_restored() {
    apart(|| {
        let site = Site::new();
        let before = [site.state(&site.here), site.state(&site.there)];
        let axes = ["--set", "gro=off", "--set", "tso@far/far0=off"];
        let words = [
            &["--paths", "bridge,vxlan", "--loads", "tcp_rr"],
            &axes[..],
            &BRIEF,
        ];
        let said = site.run(&words.concat());
        let report = said.json();
        let cells = report["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 2, "{said}");
        for cell in cells {
            assert_eq!(cell["status"], "ok", "{cell:#}");
            let devices = cell["offloads_by_device"].as_array().unwrap();
            let of = |namespace: &str, name: &str| {
                let mut own = devices.iter();
                own.find(|d| d["namespace"] == namespace && d["name"] == name)
                    .unwrap_or_else(|| panic!("no {namespace}/{name}: {cell:#}"))["flags"]
                    .clone()
            };
            let (near, far) = (of("hub", "up0"), of("far", "far0"));
            assert_eq!((&near["gro"], &far["gro"]), (&"off".into(), &"off".into()));
            assert_eq!(far["tso"], "off", "{cell:#}");
            if cell["path"] == "vxlan" {
                let tunnel = devices
                    .iter()
                    .find(|device| device["namespace"] == "far" && device["name"] != "far0");
                assert_eq!(tunnel.unwrap()["flags"]["gro"], "off", "{cell:#}");
            }
        }
        assert_eq!(before, [site.state(&site.here), site.state(&site.there)]);
        let words = [
            "--paths",
            "bridge",
            "--loads",
            "tcp_rr",
            "--set",
            "gro@far7=off",
        ];
        site.run(&[&words[..], &BRIEF].concat())
            .says(&["far7", "far/far0"]);
    });
}

/// A program of somebody else at what the card receives, detached when the value goes.
fn foreign_program() -> Ebpf {
    let object = include_bytes_aligned!("../crates/hopyard-switch/tests/foreign/foreign.bpf.o");
    let mut object = Ebpf::load(object).unwrap();
    let program = object.program_mut("foreign_pass").unwrap();
    let program: &mut SchedClassifier = program.try_into().unwrap();
    program.load().unwrap();
    program.attach("eth0", TcAttachType::Ingress).unwrap();
    object
}

#[test]
fn cards_that_are_in_use_and_paths_that_cannot_are_refused_and_nothing_is_changed() {
    apart(|| {
        let site = Site::new();
        let far_less = site.state(&site.there);
        let check = |words: &[&str], why: &[&str]| {
            let before = site.state(&site.here);
            let said = site.run(&[words, &["--loads", "tcp_rr"], &BRIEF].concat());
            said.exits(2).says(why);
            assert_eq!(before, site.state(&site.here), "{said}");
            assert_eq!(far_less, site.state(&site.there), "{said}");
        };
        check(&["--paths", "veth"], &["veth"]);
        for (words, out) in [
            (["--peer", "local"], "leave `--peer local` out"),
            (["--turns", "on"], "leave `--turns on` out"),
            (["--set", "wire_pause=1ms"], "leave `wire_pause` out"),
        ] {
            check(&[&["--paths", "bridge"], &words[..]].concat(), &[out]);
        }
        check(
            &["--paths", "bridge", "--set", "rate=100mbit"],
            &["leave `rate` out"],
        );
        check(
            &["--paths", "bridge", "--far-uplink", "eth7"],
            &["the far machine", "eth7"],
        );
        site.at(&site.here, "ip route add default via 10.9.0.2");
        check(
            &["--paths", "bridge"],
            &["card `eth0`: the default route goes by it"],
        );
        site.at(
            &site.here,
            "ip route del default; ip route add default nexthop via 10.9.0.2 nexthop via 10.8.0.2",
        );
        check(
            &["--paths", "bridge"],
            &["card `eth0`: the default route goes by it"],
        );
        site.at(
            &site.here,
            "ip route del default; ip route add 10.79.0.0/16 nexthop via 10.9.0.2 nexthop via 10.8.0.2",
        );
        check(&["--paths", "bridge"], &["several next hops"]);
        site.at(
            &site.here,
            "ip route del 10.79.0.0/16; ip route add 10.66.0.0/16 dev mgmt0 src 10.9.0.1",
        );
        check(
            &["--paths", "bridge"],
            &["a route by `mgmt0` has an address of this card as its source"],
        );
        site.at(
            &site.here,
            "ip route del 10.66.0.0/16; ip nexthop add id 7 via 10.9.0.2 dev eth0; ip route add 10.79.0.0/16 nhid 7",
        );
        check(&["--paths", "bridge"], &["one of `ip nexthop`"]);
        site.at(&site.here, "ip route del 10.79.0.0/16; ip nexthop del id 7");
        check(
            &["--paths", "bridge", "--set", "rps=on"],
            &["leave `rps` out"],
        );
        site.at(&site.here, "tc qdisc add dev eth0 root handle 7: pfifo");
        check(&["--paths", "bridge"], &["queueing disciplines", "pfifo"]);
        site.at(
            &site.here,
            "tc qdisc del dev eth0 root; ip link add br9 type bridge; ip link set eth0 master br9",
        );
        check(&["--paths", "bridge"], &["port of a bridge"]);
        site.at(&site.here, "ip link set eth0 nomaster; ip link del br9; ip link add link eth0 name eth0.5 type vlan id 5 || true");
        if site.state(&site.here).contains("eth0.5") {
            check(&["--paths", "bridge"], &["`eth0.5` is on top of it"]);
        }
        site.at(
            &site.here,
            "ip link del eth0.5 || true; ip link add vx9 type vxlan id 9 dev eth0 dstport 4789",
        );
        check(&["--paths", "bridge"], &["`vx9` is on top of it"]);
        site.at(&site.here, "ip link del vx9; nft add table netdev t");
        site.at(
            &site.here,
            "nft add chain netdev t c '{ type filter hook ingress device eth0 priority 0; }'",
        );
        let why = "nftables has it in";
        check(&["--paths", "bridge"], &[why, "chain `t c`"]);
        site.at(
            &site.here,
            "nft flush ruleset; nft add table inet t
             nft add flowtable inet t f '{ hook ingress priority 0; devices = { mgmt0, eth0 }; }' || true",
        );
        if site
            .at(&site.here, "nft list ruleset")
            .contains("flowtable")
        {
            check(&["--paths", "bridge"], &[why, "flowtable `t f`"]);
        } else {
            let present = Path::new("/sys/module/nf_flow_table").exists();
            skip_part("flow tables", present, "nft cannot make one");
        }
        let _foreign = site.here.run(foreign_program).unwrap();
        check(&["--paths", "bridge"], &["its tcx hooks", "`foreign_pass`"]);
    });
}
