//! Path `as-is`: between namespaces of the test's own, which a command of the user leads to.

mod lines;
mod machines;
mod podman;
mod serial;
mod ssh;

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::support::cli::{PROGRAM, Running, Said, has_traffic, hopyard, pid, run};
use crate::support::host::unharmed;
use crate::support::plan::{PLAN, Room};
use crate::support::procs::Process;
use crate::support::skip::skip_part;
use crate::support::{beside, tell, until, waiting};

/// Longer than both ends of a connection may be silent.
const IN_TIME: Duration = Duration::from_secs(60);

/// Two namespaces with a cable between them.
struct Site {
    client: NetNs,
    server: NetNs,
    room: Room,
}

impl Site {
    fn new() -> Self {
        let (client, server) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        let (a, b) = (Handle::new(&client).unwrap(), Handle::new(&server).unwrap());
        for end in [&a, &b] {
            end.quiet_ipv6().unwrap();
            end.set_up("lo").unwrap();
        }
        let kind = LinkKind::veth("eth0", Some(&server));
        a.add_link(&NewLink {
            up: true,
            ..NewLink::new("eth0", kind)
        })
        .unwrap();
        b.set_up("eth0").unwrap();
        for (end, host) in [(&a, 1), (&b, 2)] {
            end.add_address("eth0", [192, 0, 2, host].into(), 24)
                .unwrap();
            end.add_address(
                "eth0",
                [0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host)].into(),
                64,
            )
            .unwrap();
        }
        Self {
            client,
            server,
            room: Room::new(),
        }
    }

    fn prefixes(&self) -> [String; 2] {
        [&self.client, &self.server].map(enter)
    }

    /// A shell script as the command that leads to the server; `$ENTER` stands for the plain one.
    fn script(&self, text: &str) -> String {
        self.script_to(&self.server, "prefix", text)
    }

    /// The same as a file of that name, to either end.
    fn script_to(&self, end: &NetNs, name: &str, text: &str) -> String {
        let text = text.replace("$ENTER", &enter(end));
        self.room.program(name, format!("#!/bin/sh\n{text}\n"))
    }

    /// `hopyard run` between the two.
    fn command(&self, server: &str, more: &[&str]) -> Command {
        let [client, _] = self.prefixes();
        self.between(&client, server, more)
    }

    fn between(&self, client: &str, server: &str, more: &[&str]) -> Command {
        let between = [
            "run", "--paths", "as-is", "--client", client, "--server", server, "--json",
        ];
        found(hopyard(&[&between[..], more].concat()), &self.room)
    }

    /// The same with short windows, to its end.
    fn run(&self, server: &str, more: &[&str]) -> Said {
        let mut how = vec!["--window", "200ms", "--warm-up", "50ms"];
        if !more.contains(&"--blocks") {
            how.extend(["--blocks", "1..1"]);
        }
        how.extend(more);
        let command = self.command(server, &how);
        Running::start(command).wait_for_nothing_left(&BTreeSet::new())
    }
}

/// The command that enters a namespace which this process holds.
fn enter(ns: &NetNs) -> String {
    let (pid, number) = (std::process::id(), ns.as_fd().as_raw_fd());
    format!("nsenter --net=/proc/{pid}/fd/{number}")
}

/// The program under test is what endpoints find as `hopyard`.
fn found(mut command: Command, room: &Room) -> Command {
    let directory = Path::new(PROGRAM).parent().unwrap().to_str().unwrap();
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{directory}:{path}"));
    command.current_dir(room.path());
    command
}

#[track_caller]
fn only_cell(said: &Said) -> Value {
    let cells = said.json()["cells"].take();
    let [cell] = &cells.as_array().unwrap()[..] else {
        panic!("{said}");
    };
    cell.clone()
}

#[track_caller]
fn warning(said: &Said, code: &str) -> Option<String> {
    let report = said.json();
    let mut warnings = report["warnings"].as_array().unwrap().iter();
    let found = warnings.find(|warning| warning["code"] == code)?;
    Some(found["message"].as_str().unwrap().to_owned())
}

/// May CPU figures be missing? The hypervisor and tests beside this one make some too uncertain; that is recorded. Nothing else is a
/// reason.
#[track_caller]
fn may_lack_costs(said: &Said) -> bool {
    let reasons = ["the hypervisor took time away", "beside that of others"];
    let unknown = warning(said, "cpu_unknown").unwrap_or_default();
    let may_lack = reasons.iter().any(|reason| unknown.contains(reason));
    if may_lack {
        skip_part("CPU figure", false, &unknown);
    }
    may_lack
}

/// All CPU time is of this machine; that of single samples may be uncertain.
#[track_caller]
fn cpu_is_read(said: &Said) {
    let unknown = warning(said, "cpu_unknown").unwrap_or_default();
    assert!(!unknown.contains("could not be read"), "{said}");
    let may_lack = may_lack_costs(said);
    for cell in said.json()["cells"].as_array().unwrap() {
        let estimates = cell["estimates"].as_object().unwrap().iter();
        let costs = estimates.filter(|(name, _)| name.starts_with("cpu_ns_per"));
        let costs: Vec<_> = costs
            .map(|(name, cost)| format!("{name} {}", cost["value"]))
            .collect();
        assert!(!costs.is_empty() || may_lack, "{unknown} {cell:#}");
        tell(&format!(
            "{} {}: {costs:?} {unknown}",
            cell["path"], cell["load"]
        ));
    }
}

#[test]
fn a_cell_between_endpoints_is_what_the_lab_measures() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let [client, server] = site.prefixes();
        let words = ["run", "--paths", "veth,as-is", "--client", &client];
        let how = ["--server", &server, "--json", "--turns", "off", "--blocks"];
        let more = ["2..2", "--window", "300ms", "--loads", "tcp_stream,udp_rr"];
        let command = found(hopyard(&[&words[..], &how, &more].concat()), &site.room);
        let said = Running::start(command).wait_for_nothing_left(&BTreeSet::new());
        let report = said.exits(0).json();
        let cells = report["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 4, "{said}");
        for cell in cells {
            assert_eq!(cell["status"], "ok", "{cell:#}");
            assert_eq!(cell["way"]["proved"], true, "{cell:#}");
            let devices = &cell["way"]["devices"];
            tell(&format!("{} {}: {devices}", cell["path"], cell["load"]));
        }
        let between = cells.iter().find(|cell| cell["path"] == "as-is").unwrap();
        let endpoints = &between["endpoints"];
        assert_eq!(endpoints["server_address"], "192.0.2.2");
        for (role, prefix) in [("client", &client), ("server", &server)] {
            let end = &endpoints[role];
            assert_eq!(end["connect"], **prefix);
            assert_eq!(end["device"], "eth0");
            assert_eq!(end["is_on_this_kernel"], true);
        }
        cpu_is_read(&said);
    });
}

#[test]
fn datagrams_too_large_for_the_path_say_what_fits() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        for end in [&site.client, &site.server] {
            let end = Handle::new(end).unwrap();
            end.set_mtu("eth0", 1400).unwrap();
        }
        let [_, server] = site.prefixes();
        let run = |more: &[&str]| site.run(&server, &[&["--loads", "udp_gso"], more].concat());
        let said = run(&[]).to_string();
        let most = "at most 1372 bytes at mtu 1400 over IPv4";
        assert!(said.contains(most), "{said}");
        let fits = run(&["--set", "message_size=1372"]);
        assert_eq!(only_cell(fits.exits(0))["status"], "ok", "{fits}");
    });
}

#[test]
fn a_plan_names_its_endpoints_and_the_family_its_address() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let [client, server] = site.prefixes();
        let named = |address: &str| {
            let plan = PLAN.replace("\"veth\"", "\"as-is\"");
            format!(
                "{plan}\n[set]\nfamily = 6\n[endpoint.client]\nconnect = \"{client}\"\n[endpoint.server]\nconnect = \
                 \"{server}\"\n{address}"
            )
        };
        let run = |plan: String| {
            let file = site.room.file("mine.toml", plan);
            let command = found(hopyard(&["run", &file, "--json"]), &site.room);
            Running::start(command).wait_for_nothing_left(&BTreeSet::new())
        };
        let cell = only_cell(run(named("")).exits(0));
        assert_eq!(cell["endpoints"]["server_address"], "2001:db8::2");
        assert_eq!(cell["way"]["proved"], true, "{cell:#}");
        run(named("address = \"192.0.2.2\"\n"))
            .exits(2)
            .says(&["192.0.2.2 is not of family 6"]);
        run(named("address = \"host2\"\n"))
            .exits(2)
            .says(&["mine.toml:", "address: invalid IP address"]);
        run(named("").replace("nsenter", "'nsenter"))
            .exits(2)
            .says(&["mine.toml:", "connect: ", "quotation mark"]);
    });
}

#[test]
fn what_cannot_be_asked_for_is_refused_before_anything_is_measured() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let [_, server] = site.prefixes();
        let refused = |arguments: &[&str]| {
            let command = found(hopyard(arguments), &site.room);
            let said = Running::start(command).wait_for_nothing_left(&BTreeSet::new());
            said.exits(2);
            said
        };
        refused(&["run", "--paths", "as-is"]).says(&[
            "path `as-is` measures between endpoints that stand already",
            "--client and --server",
        ]);
        refused(&["run", "--paths", "as-is", "--client", "env"]).says(&["--server is missing"]);
        refused(&[
            "run", "--paths", "veth", "--client", "env", "--server", "env",
        ])
        .says(&["add --paths as-is"]);
        refused(&["run", "--paths", "as-is", "--client", "", "--server", "env"])
            .says(&["a command has one word at least"]);
        let run = |server: &str, more: &[&str]| {
            let said = site.run(server, more);
            said.exits(2);
            said
        };
        run(&server, &["--set", "mtu=9000"]).says(&["builds nothing", "`mtu=9000`"]);
        run(&server, &["--server-address", "192.0.2.77"])
            .says(&["192.0.2.77 is no address of the server: it has 192.0.2.2"]);
        run("/nonexistent/ssh", &[]).says(&["cannot reach the server by `/nonexistent/ssh`"]);
        run("false", &[]).says(&["cannot reach the server by `false`", "exit status: 1"]);
        run("env PATH=/nonexistent", &[]).says(&["has no `hopyard` in PATH", "127"]);
        assert!(!site.room.at("hopyard-runs").exists());
    });
}

#[test]
fn lines_that_are_no_messages_say_what_they_are() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        for (script, words) in [
            (
                "echo 'Welcome to host2'; exec $ENTER \"$@\"",
                &["`Welcome to host2` is no message of hopyard"][..],
            ),
            (
                "$ENTER \"$@\" | perl -ne '$|=1; print; print'",
                &["it greeted twice", "one worker"],
            ),
            (
                "exec perl -MPOSIX -e '$|=1; open($p, \"-|\", @ARGV); while (<$p>) { \
                 if (/\"is\":\"host\"/) { print substr($_, 0, 20); POSIX::_exit(0) } print }' $ENTER \"$@\"",
                &["the connection ended in the middle of a message, after `"],
            ),
            (
                "$ENTER \"$@\" | perl -pe '$|=1; s/\"protocol\":\\d+/\"protocol\":3/'",
                &["protocol 3 of hopyard", "use the same version at both ends"],
            ),
            (
                "$ENTER \"$@\" | perl -pe '$|=1; s/\"cpus\":\\[[0-9,]*\\]/\"cpus\":[]/'",
                &["unexpected reply", "no CPU"],
            ),
        ] {
            let prefix = site.script(script);
            let said = site.run(&prefix, &["--loads", "tcp_rr"]);
            said.exits(2)
                .says(&["cannot reach the server by `"])
                .says(words);
        }
    });
}

/// A far end that reports what cannot be fails its own samples, and what is stored can be read again.
#[test]
fn impossible_figures_fail_their_samples() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let out = site.room.name("run");
        let lie = "s/\"window_ns\":\\d+/\"window_ns\":0/ if /\"is\":\"done\"/";
        let prefix = site.script(&format!("$ENTER \"$@\" | perl -pe '$|=1; {lie}'"));
        let how = ["--loads", "tcp_stream", "--blocks", "2..2", "--out", &out];
        let said = site.run(&prefix, &how);
        said.exits(1);
        let cell = only_cell(&said);
        assert_eq!(cell["failed_samples"], 2, "{said}");
        let cause = cell["cause"].as_str().unwrap();
        assert!(cause.contains("impossible figures: window_ns"), "{cause}");
        let again = run(&["report", &out, "--format", "json"]);
        assert_eq!(only_cell(&again)["failed_samples"], 2, "{again}");
    });
}

/// An end that takes nothing more is left, and does not keep the controller.
#[test]
fn an_end_that_stops_reading_is_given_up() {
    let _waiting = waiting();
    unharmed(|| {
        let site = Site::new();
        // More than a pipe holds: the sender is told the whole trace.
        let trace: String = (0..20_000).map(|_| "0.000001,1400\n").collect();
        let trace = format!("trace={}", site.room.file("trace.csv", trace));
        let script = "exec perl -e '$|=1; open($p, \"|-\", @ARGV); select($p); $|=1; \
                      while (sysread(STDIN, $c, 1)) { print $p $c; last if ($all .= $c) =~ /\"connect\"/ } sleep 1000' \
                      $ENTER \"$@\"";
        let mute = site.script_to(&site.client, "mute", script);
        let [_, server] = site.prefixes();
        let how = [
            "--window",
            "200ms",
            "--warm-up",
            "50ms",
            "--blocks",
            "1..1",
            "--loads",
            "udp_trace",
            "--set",
            &trace,
        ];
        let running = Running::start(site.between(&mute, &server, &how));
        let said = running.wait_for_nothing_left(&BTreeSet::new());
        assert!(said.took < IN_TIME, "{said}");
        said.exits(1);
        let cause = only_cell(&said)["cause"].as_str().unwrap().to_owned();
        assert!(
            cause.contains("`client` did not connect within 5s"),
            "{cause}"
        );
    });
}

/// A time namespace has a clock of its own, as another machine has.
#[test]
fn a_clock_of_its_own_is_gone_by() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let prefix = format!(
            "unshare --fork --kill-child --time --monotonic 100000 {}",
            enter(&site.server)
        );
        let said = site.run(&prefix, &["--loads", "tcp_stream,udp_paced"]);
        let report = said.exits(0).json();
        for cell in report["cells"].as_array().unwrap() {
            assert_eq!(cell["status"], "ok", "{cell:#}");
            assert_eq!(cell["way"]["proved"], true, "{cell:#}");
            // One-way times alone need both clocks, and are there where those are known closely enough.
            let is_told = cell["clocks"]["one_way_samples"] == serde_json::json!([1, 1]);
            let is_there = cell["latency"].is_object();
            assert_eq!(is_there, is_told, "{cell:#}");
            let drift_ns = cell["clocks"]["drift_ns"].as_f64().unwrap();
            assert!(drift_ns < 1e8, "{cell:#}");
        }
    });
}

/// A cell; in its first block, while its traffic flows, something happens.
fn change_in_traffic(
    site: &Site,
    server: &str,
    (blocks, window): (&str, &str),
    change: impl FnOnce(&Running, &[Process]),
) -> Said {
    let how = [
        "--loads",
        "tcp_stream",
        "--blocks",
        blocks,
        "--warm-up",
        "0s",
    ];
    let command = site.command(server, &[&how[..], &["--window", window]].concat());
    let running = Running::start(command);
    let mut workers = Vec::new();
    until("traffic flows", IN_TIME, || {
        workers = in_traffic(&running);
        !workers.is_empty()
    });
    change(&running, &workers);
    running.wait_for_nothing_left(&BTreeSet::new())
}

/// Both workers, where traffic flows between them; none otherwise.
fn in_traffic(running: &Running) -> Vec<Process> {
    let mut workers = running.processes();
    // Only what has become one: before, a command that leads there has other arguments.
    workers.retain(|process| process.is_worker() && has_traffic(process));
    if workers.len() == 2 {
        workers
    } else {
        Vec::new()
    }
}

/// The part of a relayed connection with these words.
fn relay(running: &Running, word: &str) -> Vec<u32> {
    let all = running.processes().into_iter();
    let of = all.filter(|p| p.arguments.first().is_some_and(|first| first == word));
    of.map(|p| p.pid).collect()
}

#[test]
fn a_cut_connection_is_a_failed_sample_and_leaves_nothing() {
    // It looks for workers in namespaces other than its own.
    let _beside = beside();
    unharmed(|| {
        for what in ["worker", "relay"] {
            // Traffic is told by what a device counted since it was made.
            let site = Site::new();
            let prefix = match what {
                "worker" => enter(&site.server),
                _ => site.script("cat | $ENTER \"$@\" | cat"),
            };
            let said = change_in_traffic(&site, &prefix, ("2..2", "1500ms"), |running, workers| {
                let victims = match what {
                    "worker" => vec![workers[0].pid],
                    _ => relay(running, "cat"),
                };
                // With the first part the others may end by themselves.
                let killed = |victim: &u32| kill(pid(*victim), Signal::SIGKILL).is_ok();
                assert!(victims.iter().filter(|victim| killed(victim)).count() > 0);
            });
            let cell = only_cell(said.exits(1));
            assert_eq!(cell["failed_samples"], 1, "{cell:#}");
            let cause = cell["cause"].as_str().unwrap();
            tell(&format!("{what} killed: {cause}"));
            assert!(cause.starts_with("the worker at `"), "{cause}");
        }
    });
}

/// As a network that is gone: nothing is closed, nothing comes.
#[test]
fn a_connection_that_falls_silent_is_given_up_by_both_ends() {
    let _waiting = waiting();
    unharmed(|| {
        let site = Site::new();
        let relayed = site.script("cat | $ENTER \"$@\" | cat");
        let began = Instant::now();
        let said = change_in_traffic(&site, &relayed, ("1..1", "60s"), |running, workers| {
            let relays = relay(running, "cat");
            for relay in &relays {
                kill(pid(*relay), Signal::SIGSTOP).unwrap();
            }
            let server = workers.iter().map(|worker| worker.pid);
            let cut = Instant::now();
            let servers: Vec<u32> = server.collect();
            until("the far worker ends by itself", IN_TIME, || {
                servers
                    .iter()
                    .any(|pid| crate::support::procs::find(*pid).is_none())
            });
            tell(&format!(
                "the far worker ended {:?} after the cut",
                cut.elapsed()
            ));
            until("hopyard gives it up", IN_TIME, || {
                !running.processes().iter().any(Process::is_worker)
            });
            for relay in relays {
                kill(pid(relay), Signal::SIGKILL).unwrap();
            }
        });
        let cell = only_cell(said.exits(1));
        let cause = cell["cause"].as_str().unwrap();
        tell(&format!("after {:?}: {cause}", began.elapsed()));
        assert!(
            cause.starts_with(
                "the connection to the worker at `server` is cut: nothing was heard of it for 15s"
            ),
            "{cause}"
        );
    });
}

/// `kubectl exec` may never close the stdin of what it started.
#[test]
fn a_worker_whose_stdin_stays_open_ends_without_its_controller() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let open = site.script("(cat; exec sleep 100) | $ENTER \"$@\"");
        let command = site.command(&open, &["--loads", "tcp_stream", "--window", "30s"]);
        let running = Running::start(command);
        let mut workers = Vec::new();
        until("traffic flows", IN_TIME, || {
            workers = in_traffic(&running);
            !workers.is_empty()
        });
        running.signal(Signal::SIGKILL);
        let killed = Instant::now();
        until("both workers end", IN_TIME, || {
            workers
                .iter()
                .all(|worker| crate::support::procs::find(worker.pid).is_none())
        });
        tell(&format!(
            "both workers ended {:?} after the controller",
            killed.elapsed()
        ));
        // The worker's stdin was open to the end.
        let sleepers = relay(&running, "sleep");
        assert_eq!(sleepers.len(), 1);
        for sleeper in sleepers {
            kill(pid(sleeper), Signal::SIGKILL).unwrap();
        }
        running.gone();
        // What a killed controller leaves: the lab's control group.
        run(&["clean"]).exits(0);
    });
}

/// The data link goes while a sample runs: later samples do not find their way.
#[test]
fn a_far_link_that_goes_down_fails_its_samples() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let [_, server] = site.prefixes();
        let said = change_in_traffic(&site, &server, ("2..2", "1s"), |_, _| {
            let far = Handle::new(&site.server).unwrap();
            far.set_down("eth0").unwrap();
        });
        let cell = only_cell(said.exits(1));
        let cause = cell["cause"].as_str().unwrap();
        tell(&format!("{} failed: {cause}", cell["failed_samples"]));
        assert!(cell["failed_samples"].as_u64() >= Some(1), "{cell:#}");
    });
}

#[test]
fn a_run_goes_on_with_the_endpoints_that_it_began_with() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let [client, server] = site.prefixes();
        let out = site.room.name("run");
        let how = ["--loads", "tcp_rr", "--blocks", "20..20", "--out", &out];
        let cut = ["--time-limit", "2s"];
        site.run(&server, &[&how[..], &cut].concat()).exits(0);
        let resume = |more: &[&str]| {
            let arguments = [&["run", "--resume", &out, "--time-limit", "2s"][..], more].concat();
            let command = found(hopyard(&arguments), &site.room);
            Running::start(command).wait_for_nothing_left(&BTreeSet::new())
        };
        resume(&[]).exits(2).says(&[
            "hopyard runs no command that it only finds",
            "--client",
            &server,
        ]);
        resume(&["--client", &server, "--server", &client])
            .exits(2)
            .says(&["give the commands that the run was started with"]);
        resume(&["--client", &client, "--server", &server]).exits(0);
    });
}
