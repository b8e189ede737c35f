//! `hopyard run --resume`: what was cut short goes on as if it had not been.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::cli::{Running, hopyard, run};
use crate::support::plan::{Room, plan};
use crate::support::{apart, beside, until};

/// Turns that others on the machine disturbed are taken again, which takes its time.
const LONG: Duration = Duration::from_secs(60);

/// Three blocks of two cells.
fn start(room: &Room, more: &[(&str, &str)]) -> Running {
    let mut changes = vec![
        ("paths", "[\"veth\", \"bridge\"]"),
        ("blocks", "\"3..3\""),
        ("window", "\"150ms\""),
    ];
    changes.extend(more);
    let file = room.file("mine.toml", plan(&changes));
    let out = room.name("run");
    Running::start(hopyard(&["run", &file, "--seed", "1", "--out", &out]))
}

fn lines(room: &Room) -> Vec<String> {
    let text = std::fs::read_to_string(room.at("run/samples.jsonl")).unwrap_or_default();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

fn samples(room: &Room) -> Vec<Value> {
    let lines = lines(room);
    lines
        .iter()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

/// Every block has an attempt with every cell, numbers and times go on, and the report is whole.
fn is_whole(room: &Room) {
    let samples = samples(room);
    for (n, sample) in samples.iter().enumerate() {
        assert_eq!(sample["order"], n);
    }
    let starts: Vec<u64> = samples
        .iter()
        .map(|s| s["started_ns"].as_u64().unwrap())
        .collect();
    assert!(starts.is_sorted(), "{starts:?}");
    for block in 0..3 {
        let of_block = samples.iter().filter(|s| s["block"] == block);
        let mut attempts = BTreeMap::<u64, usize>::new();
        for sample in of_block {
            *attempts
                .entry(sample["attempt"].as_u64().unwrap())
                .or_default() += 1;
        }
        // One that was repeated because the hypervisor took time may have been cut in that repetition.
        assert_eq!(
            attempts.values().max(),
            Some(&2),
            "block {block}: {attempts:?}"
        );
    }
    let report = run(&["report", &room.name("run"), "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(report["run"]["blocks"], 3);
    assert_eq!(report["run"]["complete"], true);
}

#[test]
fn an_interrupted_run_goes_on_in_the_block_that_was_cut_short() {
    let _beside = beside();
    let room = Room::new();
    // The end is far when three are seen.
    let running = start(&room, &[("window", "\"250ms\"")]);
    until("three samples are there", LONG, || lines(&room).len() >= 3);
    running.signal(Signal::SIGINT);
    let said = running.wait();
    let out = room.name("run");
    said.exits(130)
        .says(&[&format!("hopyard run --resume {out}")]);
    let before = lines(&room);
    assert!((3..6).contains(&before.len()), "{}", before.len());
    run(&["run", "--resume", &out])
        .exits(0)
        .prints(&["3 blocks"]);
    assert_eq!(lines(&room)[..before.len()], before[..]);
    is_whole(&room);
    run(&["run", "--resume", &out])
        .exits(2)
        .says(&["cannot resume", "it is complete"]);
    is_whole(&room);
}

#[test]
fn a_killed_run_goes_on_without_its_half_line() {
    apart(|| {
        let room = Room::new();
        let running = start(&room, &[]);
        until("a sample is there", LONG, || !lines(&room).is_empty());
        let out = room.name("run");
        run(&["run", "--resume", &out])
            .exits(2)
            .says(&["is being written: its run is under way"]);
        running.signal(Signal::SIGKILL);
        running.wait();
        let whole = lines(&room).concat();
        room.file("run/samples.jsonl", format!("{whole}{{\"block\":0,\"att"));
        run(&["run", "--resume", &out]).exits(0);
        is_whole(&room);
        run(&["clean"]).exits(0);
    });
}

#[test]
fn a_run_out_of_time_gets_more_of_it() {
    let _beside = beside();
    let room = Room::new();
    // One cell or two, as fast as the machine is: what was not reached counts as failed.
    start(&room, &[("time_limit", "\"700ms\"")]).wait();
    let out = room.name("run");
    let report = run(&["report", &out, "--format", "json"]).exits(0).json();
    assert_ne!(report["run"]["blocks"], 3);
    let more = ["--time-limit", "1m", "--need", "filter"];
    run(&[&["run", "--resume", &out], &more[..]].concat()).exits(0);
    is_whole(&room);
    // What is asked now is kept in place of what was asked before.
    let text = std::fs::read_to_string(room.at("run/run.json")).unwrap();
    let header: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(header["time_limit_ns"], 60_000_000_000_u64);
    assert_eq!(header["needs"], serde_json::json!(["filter"]));
}

/// Figures of another way than the path are told from others by the exit status, too.
#[test]
fn a_path_proof_that_failed_is_the_exit_status() {
    let _beside = beside();
    let room = Room::new();
    let running = start(&room, &[("window", "\"250ms\"")]);
    until("a sample is there", LONG, || !lines(&room).is_empty());
    running.signal(Signal::SIGINT);
    running.wait();
    let mut samples = samples(&room);
    let way = &mut samples[0]["outcome"]["measured"]["way"];
    assert_eq!(way["proved"], true);
    way["proved"] = false.into();
    way["problems"] = serde_json::json!(["a/round is not on the path"]);
    let text: String = samples.iter().map(|s| format!("{s}\n")).collect();
    room.file("run/samples.jsonl", text);
    let more = ["--resume", &room.name("run"), "--time-limit", "1m"];
    run(&[&["run"], &more[..]].concat())
        .exits(1)
        .prints(&["Path proof failed", "a/round is not on the path"]);
}

#[test]
fn what_cannot_go_on_says_why_and_stays_as_it_is() {
    let _beside = beside();
    let room = Room::new();
    run(&["run", "--resume", &room.name("nothing")])
        .exits(2)
        .says(&["is no run directory"]);
    // One cell or two, as fast as the machine is: what was not reached counts as failed.
    start(&room, &[("time_limit", "\"700ms\"")]).wait();
    let header = std::fs::read_to_string(room.at("run/run.json")).unwrap();
    let before = lines(&room);
    let out = room.name("run");
    let refused = |from: &str, to: &str, why: &str| {
        assert!(header.contains(from), "{from}: {header}");
        room.file("run/run.json", header.replacen(from, to, 1));
        run(&["run", "--resume", &out]).exits(2).says(&[why]);
        assert_eq!(lines(&room), before);
    };
    refused(
        "\"kernel_release\": \"",
        "\"kernel_release\": \"9.9.9-",
        "it was started on kernel `9.9.9-",
    );
    refused("\"cpus\": ", "\"cpus\": 9", "CPUs`, and this is");
    refused(
        "\"path\": \"bridge\"",
        "\"path\": \"wormhole\"",
        "there is no path `wormhole`",
    );
    room.file("run/run.json", &header);
    run(&["run", "--resume", &out, "--paths", "veth"])
        .exits(2)
        .says(&["cannot be used with"]);
}
