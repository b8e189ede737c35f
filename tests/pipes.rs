//! Readers that have seen enough, and files that take nothing more.

use std::fs::File;
use std::process::Command;

use crate::support::cli::{PROGRAM, Running, hopyard};
use crate::support::host::unharmed;
use crate::support::plan::{Room, plan};
use crate::support::{alone, beside};

/// Runs with a pipe that is read for one line and closed, as by `| head -1`.
fn head(arguments: &[&str], stderr_too: bool) -> (Option<i32>, String, String) {
    let room = Room::new();
    let mut command = Command::new("sh");
    let redirect = if stderr_too { "2>&1" } else { "" };
    // The status of the program, not that of head.
    let script = format!("(\"$0\" \"$@\" {redirect}; echo $? > status) | head -n 1");
    command
        .args(["-c", &script, PROGRAM])
        .args(arguments)
        .current_dir(room.path());
    let said = Running::start(command).wait();
    let status = std::fs::read_to_string(room.at("status")).unwrap_or_default();
    (status.trim().parse().ok(), said.stdout, said.stderr)
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let _beside = beside();
    unharmed(|| {
        for arguments in [
            &["list", "axes"][..],
            &["list", "paths"],
            &["schema"],
            &["--help"],
            &["completions", "zsh"],
            &["doctor"],
            &[
                "run", "--paths", "veth", "--loads", "tcp_rr", "--blocks", "1", "--window", "50ms",
            ],
            &[
                "run", "--paths", "veth", "--loads", "tcp_rr", "--blocks", "1", "--window", "50ms",
                "--json",
            ],
        ] {
            let (status, stdout, stderr) = head(arguments, false);
            assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
            assert_eq!(status, Some(0), "{arguments:?}: {stderr}");
            assert_eq!(stdout.lines().count(), 1, "{arguments:?}: {stdout}");
        }
    });
}

#[test]
fn nobody_reading_stdout_at_all_is_no_failure() {
    // `clean` is to say nothing, of labs of others either.
    let _alone = alone();
    for arguments in [&["list", "axes"][..], &["schema"], &["--help"], &["clean"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = hopyard(arguments).stdout(writer).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        assert!(stderr.is_empty(), "{arguments:?}: {stderr}");
    }
}

#[test]
fn diagnostics_that_nobody_reads_do_not_end_a_run() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let out = room.name("run");
        let arguments = [
            "run", "--paths", "veth", "--loads", "tcp_rr", "--blocks", "2", "--window", "50ms",
            "--json", "--out", &out,
        ];
        let output = hopyard(&arguments).stderr(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(room.at("run/end.json").exists());
        // Both in one pipe, closed after the first line.
        let (status, ..) = head(&arguments[..arguments.len() - 2], true);
        assert_eq!(status, Some(0));
        // An error that nobody hears still has its status.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = hopyard(&["run", "--paths", "wormhole"])
            .stderr(writer)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(2));
    });
}

#[test]
fn results_that_cannot_be_written_are_an_internal_failure() {
    let _beside = beside();
    for arguments in [
        &["list", "axes"][..],
        &["schema"],
        &["list", "paths", "--json"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = hopyard(arguments).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {stderr}");
        assert!(
            stderr.contains("cannot write to stdout: No space left"),
            "{stderr}"
        );
    }
}

#[test]
fn results_of_a_piped_run_carry_no_progress() {
    let _beside = beside();
    let room = Room::new();
    let file = room.file("mine.toml", plan(&[("blocks", "\"2..2\"")]));
    for format in [&["--json"][..], &[]] {
        let out = room.name(&format!("run{}", format.len()));
        let mut command = hopyard(&["run", &file, "--out", &out]);
        command.args(format);
        let said = Running::start(command).wait();
        said.exits(0);
        for text in [&said.stdout, &said.stderr] {
            assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{said}");
            assert!(!text.contains("to go"), "{said}");
        }
        assert!(!said.stdout.contains("hopyard: "), "{said}");
    }
}

#[test]
fn samples_are_complete_lines_while_a_run_goes_on() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let running = Running::start(hopyard(&[
        "run",
        "--paths",
        "veth",
        "--loads",
        "tcp_rr,udp_rr",
        "--blocks",
        "3",
        "--window",
        "600ms",
        "--turns",
        "off",
        "--out",
        &out,
    ]));
    let mut seen = std::collections::BTreeSet::new();
    let (mut looks, mut halves) = (0, 0);
    let file = room.at("run/samples.jsonl");
    crate::support::until(
        "all samples are there",
        std::time::Duration::from_secs(60),
        || {
            let Ok(text) = std::fs::read_to_string(&file) else {
                return false;
            };
            let (whole, half) = text.rsplit_once('\n').unwrap_or(("", &text));
            for line in whole.lines() {
                assert!(
                    serde_json::from_str::<serde_json::Value>(line).is_ok(),
                    "{line}"
                );
            }
            looks += 1;
            halves += usize::from(!half.is_empty());
            seen.insert(whole.lines().count());
            whole.lines().count() >= 6
        },
    );
    // A file grows by pages: whoever reads while a line is written may find its beginning. A writer that
    // keeps some of a line back would nearly always be found so.
    assert!(
        halves * 4 < looks,
        "half a line in {halves} of {looks} looks"
    );
    running.wait().exits(0);
    // Who looks may be kept from it for a sample or two, each of which takes more than half a second.
    let one_by_one = (1..=6).filter(|n| seen.contains(n)).count();
    assert!(one_by_one >= 4, "lines seen: {seen:?}");
}
