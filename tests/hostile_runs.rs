//! Run directories in which somebody put what is no file of a run.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::beside;
use crate::support::cli::{PROGRAM, Running, Said, run};
use crate::support::plan::{Room, plan, stored};

/// Runs the program with 256 MiB of memory and two seconds of CPU time. Where it waits for somebody, it is not over in
/// time either.
fn confined(arguments: &[&str]) -> Said {
    let mut command = Command::new("sh");
    let limits = "ulimit -d 262144; ulimit -t 2; exec \"$0\" \"$@\"";
    command.args(["-c", limits, PROGRAM]).args(arguments);
    let said = Running::start(command).wait_for(Duration::from_secs(20));
    assert!(said.took < Duration::from_secs(10), "{said}");
    said
}

/// Puts something in the place of a file.
type Replace = fn(&Path);

/// What an attacker puts into a run directory, and what has to be said of it.
const HOSTILE: [(&str, Replace, &str); 4] = [
    (
        "a FIFO",
        |file| {
            std::fs::remove_file(file).unwrap();
            nix::unistd::mkfifo(file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        },
        "it is no regular file",
    ),
    (
        "a device without end",
        |file| {
            std::fs::remove_file(file).unwrap();
            std::os::unix::fs::symlink("/dev/zero", file).unwrap();
        },
        "it is no regular file|Too many levels of symbolic links",
    ),
    (
        "a gigabyte",
        |file| grow(file, 1 << 30),
        "it has 1073741824 bytes, more than the",
    ),
    (
        "a line without end",
        |file| grow(file, 400 << 20),
        "419430400 bytes, more than the|a line of more than 4194304 bytes",
    ),
];

/// Adds bytes that take no space.
fn grow(file: &Path, bytes: u64) {
    let file = std::fs::File::options().append(true).open(file).unwrap();
    file.set_len(bytes).unwrap();
}

#[test]
fn hostile_files_end_in_an_error_soon_and_in_little_memory() {
    let _beside = beside();
    let room = Room::new();
    let whole = stored(&room, "whole");
    for name in ["run.json", "samples.jsonl", "profiles.jsonl", "end.json"] {
        for (number, (what, replace, words)) in HOSTILE.iter().enumerate() {
            let run = stored(&room, &format!("{name}-{number}"));
            let file = Path::new(&run).join(name);
            replace(&file);
            for arguments in [
                &["report", &run][..],
                &["diff", &whole, &run],
                &["claims", "--from", &run],
                &["run", "--resume", &run],
            ] {
                let said = confined(arguments);
                assert_eq!(said.status.code(), Some(2), "{what}: {said}");
                said.says(&[&format!(" {}", file.display())]);
                let is_said = words.split('|').any(|words| said.stderr.contains(words));
                assert!(is_said, "{what}: {said}");
                assert!(said.stdout.is_empty(), "{what}: {said}");
            }
        }
    }
    for (number, (what, replace, words)) in HOSTILE.iter().enumerate() {
        let home = room.at(&format!("claims-{number}"));
        std::fs::create_dir(&home).unwrap();
        let file = home.join("claims.json");
        std::fs::write(&file, "").unwrap();
        replace(&file);
        for way in ["--from", "--resume"] {
            let said = confined(&["claims", way, home.to_str().unwrap()]);
            assert_eq!(said.status.code(), Some(2), "{what}: {said}");
            let is_said = words.split('|').any(|words| said.stderr.contains(words));
            assert!(is_said, "{what}: {said}");
        }
    }
}

/// Whoever may write a run directory chooses nothing outside of it.
#[test]
fn what_goes_on_with_a_run_follows_no_link() {
    let _beside = beside();
    let room = Room::new();
    let run_directory = stored(&room, "run");
    let target = room.at("target");
    for name in ["samples.jsonl", "profiles.jsonl"] {
        let file = Path::new(&run_directory).join(name);
        std::fs::rename(&file, &target).unwrap();
        std::os::unix::fs::symlink(&target, &file).unwrap();
        let before = std::fs::read(&target).unwrap();
        run(&["run", "--resume", &run_directory])
            .exits(2)
            .says(&[name, "Too many levels of symbolic links"]);
        assert_eq!(std::fs::read(&target).unwrap(), before);
        std::fs::rename(&target, &file).unwrap();
    }
    // A new run, where links wait for it.
    let out = room.at("new");
    std::fs::create_dir(&out).unwrap();
    std::os::unix::fs::symlink(&target, out.join("run.json")).unwrap();
    let file = room.file("mine.toml", plan(&[("window", "\"50ms\"")]));
    run(&["run", &file, "--out", out.to_str().unwrap()]).exits(0);
    assert!(out.join("run.json").is_file() && !out.join("run.json").is_symlink());
    assert!(!target.exists());
}
