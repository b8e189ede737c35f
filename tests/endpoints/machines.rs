//! Path `as-is` between machines: each worker reads its own.
//!
//! Two machines are two boot ids: a mount namespace in which another file is bound over that of the kernel is, for the worker
//! in it, another machine.

use std::collections::BTreeSet;

use hopyard_net::{NetNs, Offload};
use serde_json::Value;

use super::{Site, enter, may_lack_costs, only_cell, warning};
use crate::support::cli::{Running, Said, hopyard};
use crate::support::host::unharmed;
use crate::support::{beside, tell};

/// Boot ids of machines that there are not.
const ONE: &str = "11111111-1111-4111-8111-111111111111";
const OTHER: &str = "22222222-2222-4222-8222-222222222222";

impl Site {
    /// The command that leads to an end on a machine with this boot id; `before` comes before the mount.
    fn machine(&self, end: &NetNs, boot_id: &str, before: &str) -> String {
        let number = &boot_id[..1];
        let role = if std::ptr::eq(end, &self.client) {
            "client"
        } else {
            "server"
        };
        let id = self
            .room
            .file(&format!("boot-{number}"), format!("{boot_id}\n"));
        let mount = format!("mount --bind {id} /proc/sys/kernel/random/boot_id && exec \"$@\"");
        let text = format!("exec $ENTER unshare --mount {before} sh -c '{mount}' sh \"$@\"");
        self.script_to(end, &format!("machine-{role}-{number}"), &text)
    }

    /// A short run between two commands, kept in `run`.
    fn run_between(&self, client: &str, server: &str, more: &[&str]) -> Said {
        let out = self.room.name("run");
        let mut how = vec!["--warm-up", "50ms", "--out", &out];
        if !more.contains(&"--window") {
            how.extend(["--window", "200ms"]);
        }
        how.extend(more);
        let command = self.between(client, server, &how);
        Running::start(command).wait_for_nothing_left(&BTreeSet::new())
    }

    /// What the samples of that run hold.
    fn measured(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.room.at("run/samples.jsonl")).unwrap();
        let samples = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        samples
            .map(|mut sample| sample["outcome"]["measured"].take())
            .collect()
    }

    /// Its netperf layout, without comments.
    fn netperf(&self) -> String {
        let run = self.room.name("run");
        let said = Running::start(hopyard(&["report", &run, "--format", "netperf"])).wait();
        let lines = said.exits(0).stdout.lines();
        lines
            .filter(|line| !line.starts_with('#'))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Is there a figure of each of these, or did the hypervisor keep it from being one?
fn has_costs(said: &Said, cell: &Value, names: &[&str]) {
    let unknown = warning(said, "cpu_unknown").unwrap_or_default();
    assert!(!unknown.contains("could not be read"), "{unknown}");
    let may_lack = may_lack_costs(said);
    for name in names {
        let value = cell["estimates"][name]["value"].as_f64();
        tell(&format!("{} {name}: {value:?} {unknown}", cell["load"]));
        assert!(
            value.is_some_and(|v| v > 0.0) || may_lack,
            "{name}: {unknown} {cell:#}"
        );
    }
}

#[test]
fn each_of_two_machines_is_read_by_its_own_worker() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let far = hopyard_net::Handle::new(&site.server).unwrap();
        far.set_offload("eth0", Offload::Tso, false).unwrap();
        let [client, _] = site.prefixes();
        let server = site.machine(&site.server, ONE, "");
        let loads = [
            "--loads",
            "tcp_stream,udp_stream,tcp_rr",
            "--blocks",
            "2..2",
        ];
        let said = site.run_between(&client, &server, &loads);
        let report = said.exits(0).json();
        for cell in report["cells"].as_array().unwrap() {
            assert_eq!(cell["status"], "ok", "{cell:#}");
            assert_eq!(cell["way"]["proved"], true, "{cell:#}");
            let unit = match cell["load"].as_str() {
                Some("tcp_stream") => "byte",
                Some("udp_stream") => "packet",
                _ => "transaction",
            };
            let both = format!("cpu_ns_per_{unit}");
            let [local, remote] = ["client", "server"].map(|end| format!("{end}_{both}"));
            has_costs(&said, cell, &[&both, &local, &remote]);
            let ends = &cell["endpoints"];
            assert_eq!(ends["are_one_machine"], false);
            assert_eq!(ends["client"]["is_on_this_kernel"], true);
            assert_eq!(ends["server"]["is_on_this_kernel"], false);
            let interface = &ends["server"]["interface"];
            assert_eq!(interface["driver"], "veth");
            assert_eq!(interface["mtu_bytes"], 1500);
            assert_eq!(interface["offloads"]["tso"], "off");
            assert_eq!(ends["client"]["interface"]["offloads"]["tso"], "on");
            for field in ["cpus", "clock_source", "congestion_control", "hostname"] {
                let [a, b] = ["client", "server"].map(|end| &ends[end]["machine"][field]);
                assert!(!a.is_null() && a == b, "{field}: {ends:#}");
            }
            for end in ["client", "server"] {
                assert!(cell["machine_steal_ratio"][end].is_number(), "{cell:#}");
            }
            assert!(
                cell["clocks"]["edges_within_ns"].as_u64() > Some(0),
                "{cell:#}"
            );
        }
        let unlike = warning(&said, "ends_differ").unwrap();
        assert!(
            unlike.contains("tso on at the client and off at the server"),
            "{unlike}"
        );
        assert!(!unlike.contains("kernel"), "{unlike}");
        for sample in site.measured() {
            let machines = sample["machines"].as_array().unwrap();
            let of = |of: fn(&Value) -> &Value| machines.iter().map(of).collect::<Vec<_>>();
            assert_eq!(of(|m| &m["ends"]), ["client", "server"]);
            for machine in machines {
                assert!(
                    machine["cpu"]["workers_ns"].as_f64() > Some(0.0),
                    "{machine:#}"
                );
                assert_eq!(machine["unknown"], Value::Null);
            }
            // Two machines with the CPUs of one each.
            let cpus = of(|m| &m["cpu"]["cpus"])
                .iter()
                .map(|n| n.as_u64().unwrap())
                .sum::<u64>();
            assert_eq!(sample["cpu"]["cpus"], cpus);
            let [edges, bound] =
                ["edges_within_ns", "bound_ns"].map(|f| sample["clocks"][f].as_u64());
            assert!(edges >= bound && bound > Some(0), "{}", sample["clocks"]);
        }
        if !may_lack_costs(&said) {
            let netperf = site.netperf();
            tell(&netperf);
            assert!(
                !netperf.contains("% U") && !netperf.contains("-1.00"),
                "{netperf}"
            );
        }
    });
}

#[test]
fn one_other_machine_is_counted_once() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let client = site.machine(&site.client, ONE, "");
        let server = site.machine(&site.server, ONE, "");
        let loads = ["--loads", "tcp_rr,udp_paced", "--blocks", "2..2"];
        let said = site.run_between(&client, &server, &loads);
        for cell in said.exits(0).json()["cells"].as_array().unwrap() {
            assert_eq!(cell["status"], "ok", "{cell:#}");
            let ends = &cell["endpoints"];
            assert_eq!(ends["are_one_machine"], true);
            assert_eq!(ends["client"]["is_on_this_kernel"], false);
            // Its one clock tells one-way times exactly.
            assert_eq!(cell["clocks"], Value::Null);
            assert!(cell["estimates"]["latency_p50_ns"].is_object(), "{cell:#}");
            let names = cell["estimates"].as_object().unwrap().keys();
            let apart: Vec<_> = names.filter(|n| n.starts_with("server_cpu")).collect();
            assert!(apart.is_empty(), "{apart:?}");
        }
        has_costs(&said, &said.json()["cells"][0], &["cpu_ns_per_transaction"]);
        for sample in site.measured() {
            let [machine] = &sample["machines"].as_array().unwrap()[..] else {
                panic!("{sample:#}");
            };
            assert_eq!(machine["ends"], "both");
            assert_eq!(machine["cpu"]["cpus"], sample["cpu"]["cpus"]);
            assert!(sample["cpu"]["is_partial"].is_null(), "{sample:#}");
        }
    });
}

/// In a container's PID namespace other processes of the machine cannot be told from the load.
#[test]
fn cpu_time_that_cannot_be_read_is_absent_and_the_report_says_why() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let client = site.machine(&site.client, ONE, "");
        let before = "--fork --kill-child --pid --mount-proc";
        let server = site.machine(&site.server, OTHER, before);
        let loads = ["--loads", "tcp_stream", "--blocks", "2..2"];
        let said = site.run_between(&client, &server, &loads);
        let cell = only_cell(said.exits(0));
        assert_eq!(cell["way"]["proved"], true, "{cell:#}");
        let estimates = cell["estimates"].as_object().unwrap();
        assert!(estimates["goodput_bps"]["value"].as_f64().unwrap() > 0.0);
        for name in estimates.keys().filter(|name| !name.starts_with("client_")) {
            assert!(!name.contains("cpu") && !name.contains("core"), "{name}");
        }
        let why = warning(&said, "cpu_unknown").expect("it says why");
        assert!(
            why.contains(
                "could not be read of the server's machine (other processes of the machine are not seen from"
            ),
            "{why}"
        );
        tell(&why);
        for sample in site.measured() {
            let [client, server] = &sample["machines"].as_array().unwrap()[..] else {
                panic!("{sample:#}");
            };
            assert!(client["cpu"]["busy_ns"].is_number(), "{client:#}");
            assert_eq!(server["cpu"], Value::Null, "{server:#}");
        }
        let netperf = site.netperf();
        let figures = netperf.lines().last().unwrap();
        assert!(figures.trim_end().ends_with("-1.000"), "{netperf}");
    });
}

/// A clock that is 100,000 s ahead, and a link so slow that datagrams queue for longer than the clocks are uncertain.
#[test]
fn one_way_times_of_two_clocks_have_a_bound_or_are_not_told() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let near = hopyard_net::Handle::new(&site.client).unwrap();
        near.shape("eth0", 10_000_000).unwrap();
        let [client, _] = site.prefixes();
        let ahead = "--fork --kill-child --time --monotonic 100000";
        let server = site.machine(&site.server, ONE, ahead);
        let loads = [
            "--loads",
            "udp_paced",
            "--set",
            "pace=20mbit",
            "--blocks",
            "2..2",
        ];
        let said = site.run_between(&client, &server, &loads);
        let cell = only_cell(said.exits(0));
        let clocks = &cell["clocks"];
        tell(&format!("{clocks} {}", cell["estimates"]["latency_p50_ns"]));
        let bound_ns = clocks["bound_ns"].as_f64().unwrap();
        assert_eq!(clocks["one_way_samples"], serde_json::json!([2, 2]));
        let p50_ns = cell["estimates"]["latency_p50_ns"]["value"]
            .as_f64()
            .unwrap();
        assert!(p50_ns > bound_ns && p50_ns < 5e9, "{p50_ns} ±{bound_ns}");
        // What the link cannot carry is lost, by what was due.
        let lost = cell["estimates"]["lost_ratio"]["value"].as_f64().unwrap();
        assert!((0.2..0.8).contains(&lost), "{lost}");
        for sample in site.measured() {
            let ahead_s = sample["clocks"]["server_ahead_ns"].as_f64().unwrap() / 1e9;
            assert!((ahead_s - 100_000.0).abs() < 0.1, "{ahead_s}");
        }
        // Requests take so long that nothing is known of a delay of microseconds.
        near.unshape("eth0").unwrap();
        let slow = site.script_to(
            &site.server,
            "slow",
            &format!("perl -ne '$|=1; select(undef, undef, undef, 0.02); print' | {server} \"$@\""),
        );
        std::fs::remove_dir_all(site.room.at("run")).unwrap();
        let loads = [
            "--loads",
            "udp_paced",
            "--blocks",
            "2..2",
            "--set",
            "pace=200mbit",
            "--window",
            "800ms",
        ];
        let said = site.run_between(&client, &slow, &loads);
        let cell = only_cell(said.exits(0));
        let clocks = &cell["clocks"];
        tell(&clocks.to_string());
        assert_eq!(
            clocks["one_way_samples"],
            serde_json::json!([0, 2]),
            "{cell:#}"
        );
        assert!(clocks["bound_ns"].as_f64() > Some(10e6), "{clocks}");
        assert_eq!(cell["latency"], Value::Null, "{cell:#}");
        assert_eq!(cell["estimates"]["latency_p50_ns"], Value::Null, "{cell:#}");
        assert!(cell["estimates"]["lost_ratio"].is_object(), "{cell:#}");
        // How delays differ needs no common clock.
        for jitter in ["jitter_rfc3550_ns", "jitter_ipdv_ns"] {
            let jitter_ns = cell["estimates"][jitter]["value"].as_f64();
            assert!(jitter_ns > Some(0.0) && jitter_ns < Some(1e9), "{cell:#}");
        }
        assert_eq!(cell["estimates"]["jitter_pdv_ns"], Value::Null, "{cell:#}");
    });
}

/// The kernel is asked for the way to an address; a rule for TCP alone sends the data by another device.
#[test]
fn data_by_another_device_than_the_routes_refutes_the_way() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let inside = |script: &str| {
            let entered = enter(&site.client);
            let words = entered.split(' ').collect::<Vec<_>>();
            let done = std::process::Command::new(words[0])
                .args(&words[1..])
                .args(["sh", "-ec", script])
                .status()
                .unwrap();
            assert!(done.success(), "{script}");
        };
        let number = std::os::fd::AsRawFd::as_raw_fd(&std::os::fd::AsFd::as_fd(&site.server));
        let server = format!("/proc/{}/fd/{number}", std::process::id());
        inside(&format!(
            "ip link add eth1 type veth peer name eth1 netns {server}; ip link set eth1 up
             nsenter --net={server} sh -c 'ip link set eth1 up; ip addr add 198.51.100.2/24 dev eth1
                 for f in all eth0 eth1; do echo 0 > /proc/sys/net/ipv4/conf/$f/rp_filter; done'
             ip addr add 198.51.100.1/24 dev eth1
             ip route add 192.0.2.2 via 198.51.100.2 dev eth1 src 192.0.2.1 table 100
             ip rule add to 192.0.2.2 ipproto tcp lookup 100"
        ));
        let [_, server] = site.prefixes();
        let how = ["--loads", "tcp_stream,udp_stream", "--server-address"];
        let said = site.run(&server, &[&how[..], &["192.0.2.2"]].concat());
        let report = said.json();
        let cell = |load: &str| {
            let mut cells = report["cells"].as_array().unwrap().iter();
            cells.find(|cell| cell["load"] == load).unwrap()
        };
        assert_eq!(cell("udp_stream")["way"]["proved"], true, "{said}");
        let way = &cell("tcp_stream")["way"];
        assert_eq!(way["proved"], false, "{said}");
        let problems = way["problems"].to_string();
        for end in ["client/eth0 sent", "server/eth0 received"] {
            assert!(problems.contains(end), "{problems}");
        }
        tell(&problems);
        assert!(warning(&said, "way").is_some(), "{said}");
    });
}
