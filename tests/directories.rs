//! Run directories that are full, taken or none.

use std::process::Command;

use serde_json::Value;

use crate::support::beside;
use crate::support::cli::{PROGRAM, Running, Said, run};
use crate::support::host::unharmed;
use crate::support::plan::{Room, plan};

/// A run in a mount namespace of its own, with a file system of so many KiB on `small`.
fn on_a_small_disk(kib: u32) -> (Room, Said) {
    let room = Room::new();
    let small = room.at("small");
    std::fs::create_dir(&small).unwrap();
    let file = room.file(
        "mine.toml",
        plan(&[
            ("paths", "[\"veth\", \"bridge\"]"),
            ("loads", "[\"tcp_rr\", \"udp_rr\"]"),
            ("window", "\"50ms\""),
            ("blocks", "\"64..64\""),
        ]),
    );
    let script = format!(
        "mount -t tmpfs -o size={kib}k none small && \"$0\" run mine.toml --json --out small/run; \
         status=$?; cp -r small/run copy; exit $status"
    );
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", &script, PROGRAM])
        .current_dir(room.path());
    assert!(file.ends_with("mine.toml"));
    let said = Running::start(command).wait();
    (room, said)
}

#[test]
fn a_full_disk_says_what_to_do() {
    let _beside = beside();
    unharmed(|| {
        let (room, said) = on_a_small_disk(4);
        said.exits(2).says(&[
            "cannot write small/run/run.json",
            "free some space or choose another directory with --out",
            "No space left on device",
        ]);
        assert!(said.stdout.is_empty(), "{said}");
        assert!(!room.at("copy").exists(), "the directory of the run stays");
    });
}

#[test]
fn a_disk_that_fills_up_keeps_and_shows_what_was_measured() {
    let _beside = beside();
    unharmed(|| {
        let (room, said) = on_a_small_disk(256);
        said.exits(2).says(&[
            "cannot write small/run/samples.jsonl",
            "free some space or choose another directory with --out",
            "No space left on device",
        ]);
        let report = said.json();
        assert_eq!(report["run"]["complete"], false);
        assert!(report["run"]["blocks"].as_u64().unwrap() > 0, "{said}");
        // The last line is cut; what is before it counts.
        let again = run(&["report", &room.name("copy"), "--format", "json"])
            .exits(0)
            .json();
        assert_eq!(again["cells"], report["cells"]);
    });
}

#[test]
fn a_directory_that_cannot_be_written_says_so() {
    let _beside = beside();
    let room = Room::new();
    let file = room.file("mine.toml", plan(&[]));
    for out in ["/proc/nothing/run", "/dev/null/run", &file] {
        let said = run(&["run", &file, "--out", out]);
        said.exits(2).says(&[
            &format!("cannot write {out}"),
            "another directory with --out",
        ]);
    }
    run(&["run", &file, "--out", ""]).exits(2).says(&["--out"]);
}

#[test]
fn a_directory_is_refused_before_anything_is_built() {
    let _beside = beside();
    let room = finished();
    // No lab of this plan can be built, which shows only when one is tried.
    let hopeless = |out: &str| {
        let mut wanted = vec!["run", "--paths", "vxlan", "--set", "mtu=1280"];
        wanted.extend(["--loads", "tcp_stream", "--out", out]);
        run(&wanted)
    };
    hopeless(&room.name("run"))
        .exits(2)
        .says(&["holds a run already", "choose another --out"]);
    let out = room.name("mine.toml/run");
    hopeless(&out)
        .exits(2)
        .says(&[&format!("cannot write {out}"), "Not a directory"]);
    // What is tried leaves nothing, whatever comes after it.
    hopeless(&room.name("other/run")).exits(2).says(&["MTU"]);
    let mut there: Vec<_> = std::fs::read_dir(room.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    there.sort();
    assert_eq!(there, ["mine.toml", "run"]);
}

/// A finished run of two blocks, in `run`: two samples, for what was measured twice because the hypervisor took time
/// is left out.
fn finished() -> Room {
    let room = Room::new();
    let file = room.file(
        "mine.toml",
        plan(&[("blocks", "\"2..2\""), ("window", "\"50ms\"")]),
    );
    run(&["run", &file, "--out", &room.name("run")]).exits(0);
    let samples = std::fs::read_to_string(room.at("run/samples.jsonl")).unwrap();
    let first = samples.split_inclusive('\n').filter(|sample| {
        let sample: Value = serde_json::from_str(sample).unwrap();
        sample["attempt"] == 0
    });
    room.file("run/samples.jsonl", first.collect::<String>());
    room
}

#[test]
fn a_run_is_never_written_over() {
    let _beside = beside();
    let room = finished();
    let before = std::fs::read(room.at("run/samples.jsonl")).unwrap();
    let said = run(&["run", &room.name("mine.toml"), "--out", &room.name("run")]);
    said.exits(2)
        .says(&["holds a run already", "choose another --out"]);
    assert_eq!(std::fs::read(room.at("run/samples.jsonl")).unwrap(), before);
    // Samples without their header are not taken for a fresh directory either.
    std::fs::remove_file(room.at("run/run.json")).unwrap();
    run(&["run", &room.name("mine.toml"), "--out", &room.name("run")])
        .exits(2)
        .says(&["samples.jsonl", "--out"]);
    // A directory with other things in it will do.
    std::fs::create_dir(room.at("mine")).unwrap();
    std::fs::write(room.at("mine/notes.txt"), "mine").unwrap();
    run(&["run", &room.name("mine.toml"), "--out", &room.name("mine")]).exits(0);
    assert_eq!(std::fs::read(room.at("mine/notes.txt")).unwrap(), b"mine");
}

#[test]
fn what_is_no_run_is_told_from_one() {
    let _beside = beside();
    let room = Room::new();
    std::fs::create_dir(room.at("empty")).unwrap();
    for name in ["empty", "missing"] {
        run(&["report", &room.name(name)]).exits(2).says(&[
            name,
            "is no run directory",
            "run.json",
        ]);
    }
    let file = room.file("file", "text");
    run(&["report", &file])
        .exits(2)
        .says(&["is no run directory"]);
}

#[test]
fn a_run_cut_short_is_shown_as_such() {
    let _beside = beside();
    let room = finished();
    let samples = std::fs::read_to_string(room.at("run/samples.jsonl")).unwrap();
    let first = samples.lines().next().unwrap();
    std::fs::write(room.at("run/samples.jsonl"), format!("{first}\n")).unwrap();
    std::fs::remove_file(room.at("run/end.json")).unwrap();
    for format in ["text", "markdown", "json", "csv", "netperf"] {
        run(&["report", &room.name("run"), "--format", format]).exits(0);
    }
    let report = run(&["report", &room.name("run"), "--format", "json"]).json();
    assert_eq!(report["run"]["complete"], false);
    assert_eq!(report["run"]["blocks"], 1);
    assert!(report["warnings"].to_string().contains("cut_short"));
}
