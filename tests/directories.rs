//! Run directories that are full, taken, damaged or none.

use std::process::Command;

use serde_json::Value;

use crate::support::beside;
use crate::support::cli::{PROGRAM, Running, Said, hopyard, run};
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
            ("blocks", "\"8..8\""),
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
        let (_room, said) = on_a_small_disk(4);
        said.exits(2).says(&[
            "cannot write small/run/run.json",
            "free some space or choose another directory with --out",
            "No space left on device",
        ]);
        assert!(said.stdout.is_empty(), "{said}");
    });
}

#[test]
fn a_disk_that_fills_up_keeps_and_shows_what_was_measured() {
    let _beside = beside();
    unharmed(|| {
        let (room, said) = on_a_small_disk(64);
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

/// A finished run of two blocks, in `run`.
fn finished() -> Room {
    let room = Room::new();
    let file = room.file(
        "mine.toml",
        plan(&[("blocks", "\"2..2\""), ("window", "\"50ms\"")]),
    );
    run(&["run", &file, "--out", &room.name("run")]).exits(0);
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

/// Reports on a run of which a file was changed.
fn report_with(file: &str, change: impl FnOnce(String) -> String) -> Said {
    let room = finished();
    let path = room.at("run").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, change(text)).unwrap();
    run(&["report", &room.name("run"), "--format", "json"])
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

#[test]
fn a_last_line_that_was_cut_is_passed_over() {
    let _beside = beside();
    let said = report_with("samples.jsonl", |text| text[..text.len() - 200].to_owned());
    assert_eq!(said.exits(0).json()["run"]["blocks"], 1);
    let said = report_with("samples.jsonl", |_| String::new());
    let report = said.exits(0).json();
    assert_eq!(report["run"]["blocks"], 0);
    assert_eq!(report["cells"][0]["status"], "failed");
    assert!(
        report["cells"][0]["estimates"]
            .as_object()
            .unwrap()
            .is_empty(),
        "never a zero"
    );
}

#[test]
fn a_damaged_file_is_named_with_the_line() {
    let _beside = beside();
    let said = report_with("samples.jsonl", |text| {
        format!("{text}this is not a sample\n{text}")
    });
    said.exits(2)
        .says(&["samples.jsonl line 3 is damaged", "expected"]);
    let said = report_with("samples.jsonl", |text| {
        text.replacen("\"block\":0", "\"block\":-1", 1)
    });
    said.exits(2)
        .says(&["samples.jsonl line 1 is damaged", "-1"]);
    let said = report_with("run.json", |text| text[..text.len() / 2].to_owned());
    said.exits(2).says(&["run.json line ", "is damaged", "EOF"]);
    report_with("run.json", |_| String::new())
        .exits(2)
        .says(&["run.json line 1 is damaged"]);
    report_with("end.json", |_| "\"forever\"".to_owned())
        .exits(2)
        .says(&["end.json line 1 is damaged", "forever"]);
    let said = report_with("run.json", |text| {
        text.replace("hopyard/store/1", "hopyard/store/9")
    });
    said.exits(2).says(&[
        "is of schema `hopyard/store/9`",
        "use the version that wrote it",
    ]);
}

#[test]
fn a_count_that_no_window_holds_is_damage() {
    let _beside = beside();
    for field in ["bytes", "rx_packets", "retransmits", "forks"] {
        let said = report_with("samples.jsonl", |text| {
            let (before, after) = text.split_once(&format!("\"{field}\":")).unwrap();
            let (_, after) = after.split_at(after.find([',', '}']).unwrap());
            format!("{before}\"{field}\":{}{after}", u64::MAX - 1)
        });
        said.exits(2).says(&[
            "samples.jsonl line 1 is damaged",
            "18446744073709551614 is more than any window holds",
        ]);
    }
}

/// Every number of a stored run, one after another, replaced by an extreme one: an answer or an error,
/// and no panic.
#[test]
fn numbers_that_make_no_sense_are_no_panic() {
    let _beside = beside();
    let room = finished();
    let mut panics = Vec::new();
    for name in ["run.json", "samples.jsonl"] {
        let file = room.at("run").join(name);
        let text = std::fs::read_to_string(&file).unwrap();
        // The whole of run.json, the first line of the samples.
        let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let first = documents.next().unwrap().unwrap();
        let rest = &text[documents.byte_offset()..];
        let mut pointers = Vec::new();
        numbers(&first, String::new(), &mut pointers);
        assert!(pointers.len() > 10, "{}", pointers.len());
        for extreme in [0, u64::from(u32::MAX), 1 << 53, u64::MAX] {
            for pointer in &pointers {
                let mut changed = first.clone();
                *changed.pointer_mut(pointer).unwrap() = extreme.into();
                std::fs::write(&file, format!("{changed}{rest}")).unwrap();
                let output = hopyard(&["report", &room.name("run")]).output().unwrap();
                let stderr = String::from_utf8_lossy(&output.stderr);
                let calm = matches!(output.status.code(), Some(0 | 2));
                if !calm || stderr.contains("panicked") {
                    let why = stderr
                        .lines()
                        .find(|l| l.contains("panicked"))
                        .unwrap_or("");
                    panics.push(format!("{name}{pointer} = {extreme}: {why}"));
                }
            }
        }
        std::fs::write(&file, &text).unwrap();
    }
    assert!(panics.is_empty(), "{}", panics.join("\n"));
}

/// Pointers to the numbers of a document; of a list, only the first.
fn numbers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at),
        Value::Array(items) => items
            .iter()
            .take(1)
            .enumerate()
            .for_each(|(n, v)| numbers(v, format!("{at}/{n}"), found)),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(k, v)| numbers(v, format!("{at}/{k}"), found)),
        _ => {}
    }
}
