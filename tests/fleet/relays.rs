//! Pairs that relays run: processes of their own in namespaces of their own, as on other machines.

use nix::sys::signal::{Signal, kill};

use super::*;
use crate::support::cli::{PATIENCE, pid};
use crate::support::plan::write_program;
use crate::support::procs::Process;
use crate::support::waiting;

/// Begins a fleet of short pairs by these relays.
fn begun(site: &Site, file: &str, directory: &str, relays: &[&str]) -> Running {
    let by = relays.iter().flat_map(|relay| ["--relay", relay]);
    let words: Vec<&str> = ["run", file, "-o", directory]
        .into_iter()
        .chain(by)
        .collect();
    site.start(&[&words[..], &SHORT].concat())
}

fn is_relay(process: &Process) -> bool {
    process.arguments.get(2).is_some_and(|word| word == "relay")
}

#[test]
fn relays_run_the_pairs_and_one_that_dies_costs_those_that_it_ran() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(5);
        let file = site.file("");
        let said = begun(&site, &file, "out", &["env A=1", "env A=2"])
            .wait_for_nothing_left(&BTreeSet::new());
        said.exits(0).prints(&["10 of 10 pairs measured"]);
        // Runs are removed where they were made; samples came with what ended.
        assert_eq!(
            std::fs::read_dir(site.room.at("out/pairs"))
                .unwrap()
                .count(),
            0
        );
        assert_eq!(homes(&site), 0);
        let parts = walk(&site.room.at("out/samples"));
        assert!(parts >= 5, "{parts}");
        // Both ways between four of them.
        let four: String = (1..=4)
            .map(|number| format!("n{number} {}\n", site.prefix(number)))
            .collect();
        let four = site.room.file("four", four);
        let words = [
            "run",
            &four,
            "-o",
            "again",
            "--pairs",
            "both-ways",
            "--relay",
            "env A=1",
            "--relay",
            "env A=2",
        ];
        let running = site.start(&[&words[..], &SHORT].concat());
        signal_a_relay(&site, &running, "again", 0, Signal::SIGKILL);
        let said = running.wait_for_nothing_left(&BTreeSet::new());
        said.exits(1);
        let document = site.document("again");
        let failed: Vec<Value> = pairs(&document)
            .into_values()
            .filter(|p| p["state"] == "failed")
            .collect();
        tell(&format!("{} pairs went with a relay", failed.len()));
        assert!((1..=2).contains(&failed.len()), "{said}");
        for pair in failed {
            let cause = pair["cause"].as_str().unwrap();
            assert!(
                cause.contains("relay `env A=") && cause.contains("is gone: its connection ended"),
                "{cause}"
            );
        }
        assert_eq!(document["counts"]["skipped"], 0, "{said}");
        let resumed = site.run(&[
            "run", &four, "-o", "again", "--resume", "--relay", "env A=3",
        ]);
        resumed.exits(0).prints(&["12 of 12 pairs measured"]);
        assert_eq!(homes(&site), 1, "of the one that was killed");
        // What is no relay.
        let words = ["run", &file, "-o", "none", "--relay", "false"];
        site.run(&words)
            .exits(2)
            .says(&["relay `false`: `hopyard fleet relay` did not greet"]);
        // What it says does not command the terminal.
        let red = "sh -c 'printf \"\\033[31mred\\n\" >&2'";
        let words = ["run", &file, "-o", "none", "--relay", red];
        let said = site.run(&words);
        said.exits(2).says(&["[31mred"]);
        assert!(!said.stderr.contains('\u{1b}'), "{said:?}");
        // Nothing that it started is left either.
        let other = "sh -c 'sleep 1000 & echo hello; exec sleep 1000'";
        let words = ["run", &file, "-o", "other", "--relay", other];
        site.run(&words).exits(2).says(&["not to say"]);
        let words = ["run", &file, "-o", "flood", "--relay", "yes"];
        site.run(&words).exits(2);
        let words = ["run", &file, "-o", "again", "--relay", "false"];
        site.run(&words).exits(2).says(&["is not empty"]);
        for unmade in ["none", "other", "flood"] {
            assert!(!site.room.at(unmade).exists(), "{unmade}");
        }
    });
}

/// A relay of which this holds: it has a pair whose worker runs.
fn has_worker(running: &Running, relay: &Process) -> bool {
    let all = running.processes();
    let runs = all.iter().filter(|p| p.parent == relay.pid);
    let runs: Vec<u32> = runs.map(|p| p.pid).collect();
    all.iter()
        .any(|p| p.is_worker() && runs.contains(&p.parent))
}

/// Signals a relay that has a pair, as soon as there is one and this many pairs are in the journal.
fn signal_a_relay(site: &Site, running: &Running, directory: &str, ended: usize, signal: Signal) {
    let journal = site.room.at(directory).join("pairs.jsonl");
    let mut found = None;
    until("a relay has a pair that runs", PATIENCE, || {
        let text = std::fs::read_to_string(&journal).unwrap_or_default();
        let told = text.lines().filter(|line| line.starts_with("{\"pair\""));
        if told.count() < ended {
            return false;
        }
        let relays = running.processes().into_iter().filter(is_relay);
        let mut busy = relays.filter(|relay| has_worker(running, relay));
        found = busy.next();
        found.is_some()
    });
    kill(pid(found.unwrap().pid), signal).unwrap();
}

/// As `scancel` and a machine that shuts down do it.
#[test]
fn a_relay_that_is_told_to_end_leaves_its_pairs_to_the_others() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(5);
        let file = site.file("");
        let running = begun(&site, &file, "out", &["env A=1", "env A=2"]);
        signal_a_relay(&site, &running, "out", 0, Signal::SIGTERM);
        let said = running.wait_for_nothing_left(&BTreeSet::new());
        said.exits(1);
        let document = site.document("out");
        let failed: Vec<Value> = pairs(&document)
            .into_values()
            .filter(|p| p["state"] == "failed")
            .collect();
        assert!((1..=2).contains(&failed.len()), "{said}");
        for pair in failed {
            let cause = pair["cause"].as_str().unwrap();
            let ends = ["is gone: it was told to end", "broke it off"];
            assert!(ends.iter().any(|end| cause.ends_with(end)), "{cause}");
        }
        assert_eq!(document["counts"]["skipped"], 0, "{said}");
        assert_eq!(homes(&site), 0);
    });
}

#[test]
fn what_was_measured_stays_when_the_last_relay_dies() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(5);
        let file = site.file("");
        let running = begun(&site, &file, "out", &["env A=1"]);
        // In the middle of a round of two pairs.
        signal_a_relay(&site, &running, "out", 1, Signal::SIGKILL);
        let said = running.wait_for_nothing_left(&BTreeSet::new());
        said.exits(3)
            .prints(&["of 10 pairs measured"])
            .says(&["no relay is left"]);
        let measured = site.document("out")["counts"]["measured"].as_u64();
        assert!(measured >= Some(1), "{said}");
        assert!(walk(&site.room.at("out/samples")) >= 1, "{said}");
        // Here, after a session by a relay; and by a relay what an earlier session measured here.
        let resumed = site.run(&["run", &file, "-o", "out", "--resume"]);
        resumed.exits(0).prints(&["10 of 10 pairs measured"]);
        assert!(!resumed.stderr.contains("missing in samples"), "{resumed}");
    });
}

/// It reaches no machine and says so at once, so it is always the one with the fewest pairs.
#[test]
fn a_relay_that_reaches_nothing_gets_few_pairs_and_costs_no_machine() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(5);
        let file = site.file("");
        let bin = site.room.at("bad");
        std::fs::create_dir(&bin).unwrap();
        let no_way = bin.join("nsenter");
        write_program(&no_way, "#!/bin/sh\nexit 1\n");
        let bad = format!(
            "sh -c 'export PATH={}:$PATH; exec \"$@\"' bad",
            bin.display()
        );
        let said =
            begun(&site, &file, "out", &[&bad, "env A=1"]).wait_for_nothing_left(&BTreeSet::new());
        said.exits(1);
        let document = site.document("out");
        let counts = &document["counts"];
        let of = |state: &str| counts[state].as_u64().unwrap();
        tell(&format!("{counts}"));
        assert_eq!(of("skipped"), 0, "{said}");
        assert!((1..=3).contains(&of("failed")), "{said}");
        assert!(!said.stdout.contains("lost machines"), "{said}");
    });
}

/// One machine lets us in at once, another after a while.
#[test]
fn relays_wait_for_one_that_is_slow_to_greet() {
    let _waiting = waiting();
    unharmed(|| {
        let site = Site::new(4);
        let file = site.file("");
        let slow = "sh -c 'sleep 17; exec \"$@\"' slow";
        let said =
            begun(&site, &file, "out", &["env A=1", slow]).wait_for_nothing_left(&BTreeSet::new());
        said.exits(0).prints(&["6 of 6 pairs measured"]);
    });
}

/// SIGKILL at the root: relays end by themselves, with what they run.
#[test]
fn relays_whose_root_is_killed_leave_nothing() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(4);
        let file = site.file("");
        // As over a network: nobody ends what stands behind the pipe.
        let running = begun(&site, &file, "out", &["setsid -w env"]);
        until("workers run", PATIENCE, || {
            running.processes().iter().any(Process::is_worker)
        });
        running.signal(Signal::SIGKILL);
        until("all have ended", Duration::from_secs(30), || {
            running.processes().is_empty()
        });
    });
}

/// Directories of relays that are still there.
fn homes(site: &Site) -> usize {
    let entries = std::fs::read_dir(site.room.path()).unwrap().flatten();
    entries
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("hopyard-relay.")
        })
        .count()
}

fn walk(directory: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    entries
        .map(|entry| {
            if entry.path().is_dir() {
                walk(&entry.path())
            } else {
                1
            }
        })
        .sum()
}
