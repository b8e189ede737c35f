//! Fleets that end early, and go on.

use nix::sys::signal::Signal;

use super::*;
use crate::support::cli::PATIENCE;
use crate::support::procs::Process;

/// Number of whole lines of the journal that tell of a pair.
fn kept(site: &Site) -> usize {
    let text = std::fs::read_to_string(site.room.at("out/pairs.jsonl")).unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with("{\"pair\""))
        .count()
}

#[test]
fn killed_half_way_it_leaves_nothing_running_and_goes_on_with_what_is_missing() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(4);
        let file = site.file("");
        let begin = [&["run", &file, "-o", "out"], &SHORT[..]].concat();
        let resume = ["run", &file, "-o", "out", "--resume"];
        for (signal, status) in [(Signal::SIGKILL, None), (Signal::SIGTERM, Some(130))] {
            let before = kept(&site);
            let running = match before {
                0 => site.start(&begin),
                _ => site.start(&resume),
            };
            until("a pair is kept, others run", PATIENCE, || {
                kept(&site) > before
            });
            until("workers of the next ones run", PATIENCE, || {
                running.processes().iter().any(Process::is_worker)
            });
            // Nobody else may write meanwhile.
            if status.is_none() {
                let other = site.run(&resume);
                other
                    .exits(2)
                    .says(&["is written by another hopyard fleet"]);
            }
            running.signal(signal);
            let said = running.wait_for_no_process(&BTreeSet::new());
            assert_eq!(said.status.code(), status, "{said}");
        }
        // As a kill in the middle of a line leaves it.
        let journal = site.room.at("out/pairs.jsonl");
        let text = std::fs::read_to_string(&journal).unwrap();
        std::fs::write(&journal, format!("{text}{{\"pair\":{{\"cli")).unwrap();
        let shown = site.run(&["show", "out", "--json"]);
        let before = shown.exits(1).json();
        let measured = before["counts"]["measured"].as_u64().unwrap();
        assert!((1..6).contains(&measured), "{before:#}");
        tell(&format!("{measured} pairs before the last session"));
        let said = site.run(&resume);
        said.exits(0).prints(&["6 of 6 pairs measured"]);
        let (before, after) = (pairs(&before), pairs(&site.document("out")));
        for (name, pair) in before
            .iter()
            .filter(|(_, pair)| pair["state"] == "measured")
        {
            assert_eq!(*pair, after[name], "{name}");
            let home = site.room.at("out/pairs").join(name.replace('→', "--"));
            let attempts = pair["attempt"].as_u64().unwrap();
            assert_eq!(std::fs::read_dir(home).unwrap().count() as u64, attempts);
        }
        // Nothing is left to do, and nothing is done.
        site.run(&resume)
            .exits(0)
            .prints(&["6 of 6 pairs measured"]);
        assert_eq!(pairs(&site.document("out")), after);
    });
}

#[test]
fn the_time_limit_begins_no_more_pairs_and_says_so() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(3);
        let file = site.file("");
        let words = ["run", &file, "-o", "out", "--time-limit", "500ms"];
        let said = site.run(&[&words[..], &SHORT].concat());
        said.exits(1)
            .prints(&["1 of 3 pairs measured", "the time was over before: "]);
    });
}

/// Pairs that run when the time is over may go on to their end, unless the user interrupts them.
#[test]
fn an_interrupt_ends_pairs_that_the_time_limit_let_go_on() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(2);
        let file = site.file("");
        let words = [
            "run",
            &file,
            "-o",
            "out",
            "--time-limit",
            "500ms",
            "--window",
            "20s",
            "--blocks",
            "4",
        ];
        let running = site.start(&words);
        until("workers run", PATIENCE, || {
            running.processes().iter().any(Process::is_worker)
        });
        std::thread::sleep(Duration::from_secs(1));
        running.signal(Signal::SIGINT);
        let said = running.wait_for_nothing_left(&BTreeSet::new());
        said.exits(130).prints(&["0 of 1 pair measured"]);
        assert!(said.took < Duration::from_secs(20), "{said}");
    });
}

#[test]
fn other_machines_and_damaged_directories_are_refused() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(2);
        let file = site.file("");
        site.run(&[&["run", &file, "-o", "out"], &SHORT[..]].concat())
            .exits(0);
        let fewer = site.room.file(
            "other",
            format!("n1 {}\nm2 {}\n", site.prefix(1), site.prefix(2)),
        );
        site.run(&["run", &fewer, "-o", "out", "--resume"])
            .exits(2)
            .says(&[
                "number 2 was `n2` and is `m2` now",
                "same names in the same order",
            ]);
        let journal = site.room.at("out/pairs.jsonl");
        let text = std::fs::read_to_string(&journal).unwrap();
        let second = text.lines().nth(1).unwrap();
        for (line, why) in [
            (
                second.replace("\"server\":1", "\"server\":7"),
                "the plan has no such pair",
            ),
            (
                second.replace("\"attempt\":1", "\"attempt\":0"),
                "attempts count from 1",
            ),
            (
                second.replace("\"measured\"", "\"failed\""),
                "a pair that failed has a cause",
            ),
            (
                second.replace("\"confidence\"", "\"sure\""),
                "missing field `confidence`",
            ),
            (
                second.replace("\"low\":", "\"low\":1e300,\"x\":"),
                "not within its interval",
            ),
            (second.replace("[[0,", "[[9,"), "a figure is of no column"),
            (
                "{\"lost\":{\"machine\":2,\"cause\":\"x\"}}".to_owned(),
                "no such machine",
            ),
            ("\u{1b}[31m".to_owned(), "expected value"),
        ] {
            std::fs::write(&journal, text.replace(second, &line)).unwrap();
            let said = site.run(&["show", "out"]);
            said.exits(2).says(&["out/pairs.jsonl:2: ", why]);
            assert!(!said.stderr.contains('\u{1b}'));
        }
    });
}
