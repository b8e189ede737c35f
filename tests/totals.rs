//! What `scripts/unit` prints last, of what its cargo printed and its tests skipped.

use std::process::Command;

use crate::support::beside;
use crate::support::plan::Room;
use crate::support::skip::{skip, skip_part};

/// Runs `scripts/unit` with a script in place of cargo, and of test programs (`lab-1`, `other-1`, `hopyard_stats-1` and `cni-1` beside it);
/// gives its exit status and what it printed.
fn unit(cargo: &str) -> (Option<i32>, String) {
    // The programs it starts would be taken for left behind by tests that compare the whole machine.
    let _beside = beside();
    let room = Room::new();
    let [stand_in, ..] = ["cargo", "lab-1", "other-1", "hopyard_stats-1", "cni-1"]
        .map(|name| room.program(name, format!("#!/bin/sh\n{cargo}\n")));
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/unit");
    let output = Command::new(unit)
        .env("CARGO", &stand_in)
        .env("STEAL_PATIENCE_S", "0")
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), printed)
}

const FIRST: &str = "echo '     Running tests/first.rs (target/debug/deps/first-1)'; \
    echo 'test a::one ... ok'; echo 'test a::two ... ok'; echo 'test b ... ignored, too long'; \
    echo 'test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s'";
const SECOND: &str = "echo '     Running tests/second.rs (target/debug/deps/second-1)'";

#[test]
fn the_last_line_has_the_totals() {
    let (status, printed) = unit(&format!(
        "{FIRST}; {SECOND}; echo 'test c ... ok'; \
         echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s'"
    ));
    assert_eq!(status, Some(0), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("3 passed, 0 failed, 1 skipped")
    );
    assert!(
        printed.contains("ignored: b ... ignored, too long"),
        "{printed}"
    );
}

#[test]
fn a_skipped_test_counts_as_skipped_with_its_reason() {
    let (status, printed) = unit(&format!(
        "{FIRST}; for i in 1 2; do echo 'skipped: first::a::two: no netkit: old kernel' >> $HOPYARD_SKIPPED; done; \
         echo 'skipped in part: first::a::one: no bridge-nf: not loaded' >> $HOPYARD_SKIPPED"
    ));
    assert_eq!(status, Some(0), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("1 passed, 0 failed, 2 skipped")
    );
    let told = "  skipped: first::a::two: no netkit: old kernel\n";
    assert_eq!(printed.matches(told).count(), 1, "{printed}");
    assert!(
        printed.contains("skipped in part: first::a::one"),
        "{printed}"
    );
}

#[test]
fn tests_of_the_same_name_in_two_programs_count_each() {
    let (status, printed) = unit(&format!(
        "{FIRST}; {SECOND}; echo 'test a::two ... ok'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured'; \
         for i in first second; do echo \"skipped: $i::a::two: no netkit: old kernel\" >> $HOPYARD_SKIPPED; done"
    ));
    assert_eq!(status, Some(0), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("1 passed, 0 failed, 3 skipped")
    );
    // Skipped in one program, failed in the other.
    let (status, printed) = unit(&format!(
        "{FIRST}; {SECOND}; echo 'test a::two ... FAILED'; echo 'test result: FAILED. 0 passed; 1 failed'; \
         echo 'skipped: first::a::two: no netkit: old kernel' >> $HOPYARD_SKIPPED; exit 101"
    ));
    assert_eq!(status, Some(101), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("1 passed, 1 failed, 2 skipped")
    );
}

#[test]
fn a_failure_is_told_before_the_totals_and_is_no_skip() {
    let (status, printed) = unit(&format!(
        "{FIRST}; {SECOND}; echo 'test c ... FAILED'; echo '---- c stdout ----'; \
         echo \"thread 'c' (7) panicked at x.rs:1:\"; echo 'it broke'; \
         echo 'skipped: second::c: no netkit: x' >> $HOPYARD_SKIPPED; \
         echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s'; \
         exit 101"
    ));
    assert_eq!(status, Some(101), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("2 passed, 1 failed, 1 skipped")
    );
    assert!(printed.contains("  it broke"), "{printed}");
    let end = "\nfailed: second::c: it broke\n\n2 passed,";
    assert!(printed.contains(end), "{printed}");
}

#[test]
fn a_test_program_that_dies_and_a_build_that_fails_are_failures() {
    let (status, printed) = unit(&format!("{FIRST}; {SECOND}; exit 101"));
    assert_eq!(status, Some(101), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("2 passed, 1 failed, 1 skipped")
    );
    let (status, printed) = unit("exit 101");
    assert_eq!(status, Some(101), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("0 passed, 1 failed, 0 skipped")
    );
}

/// Answers as cargo does one of whose programs had so many failures of tests, which end so when they run again.
fn noisy(program: &str, failures: usize, again: &str) -> String {
    let failed: String = (0..failures)
        .map(|i| format!("echo 'test a::{i} ... FAILED'; "))
        .collect();
    let exit = if again.ends_with("ok") {
        "exit 0"
    } else {
        "exit 101"
    };
    let again = again.replace('N', "$name");
    format!(
        "case \"$*\" in *--exact*) shift $(($# - 1)); for name in \"$@\"; do echo \"test {again}\"; done; {exit};; esac; \
         {FIRST}; program=\"$(dirname \"$0\")/{program}-1\"; printf '%s\\t%s\\n' \"$PWD\" \"$program\" >> $HOPYARD_PROGRAMS; \
         echo \"     Running tests/main.rs ($program)\"; {failed} \
         echo 'test result: FAILED. 0 passed; {failures} failed; 0 ignored'; exit 101"
    )
}

#[test]
fn what_a_burst_of_others_work_failed_runs_again_and_is_told() {
    for program in ["lab", "other"] {
        let (status, printed) = unit(&noisy(program, 2, "N ... ok"));
        assert_eq!(status, Some(0), "{printed}");
        assert_eq!(
            printed.lines().last(),
            Some("4 passed, 0 failed, 1 skipped")
        );
        // One by one, what a test tells stands before its `ok`.
        let (status, printed) = unit(&noisy(program, 2, "N ... lab: it took 16 s\\nok"));
        assert_eq!(status, Some(0), "{printed}");
        for test in ["a::0", "a::1"] {
            let told = format!("passed again alone: {program}::{test}\n");
            assert!(printed.contains(&told), "{printed}");
            assert!(!printed.contains("failed twice"), "{printed}");
        }
    }
}

#[test]
fn what_fails_once_more_has_a_third_try() {
    let first = "[ -e $(dirname $0)/tried-$name ] && told=ok || told=FAILED; \
                 touch $(dirname $0)/tried-$name; echo \"test $name ... $told\"; [ $told = ok ] || exit 101";
    let cargo = noisy("lab", 2, "N ... ok").replacen("echo \"test $name ... ok\"", first, 1);
    let (status, printed) = unit(&cargo);
    assert_eq!(status, Some(0), "{printed}");
    for told in [
        "failed once and run again",
        "failed twice and run again",
        "passed again alone: lab::a::1\n",
    ] {
        assert!(printed.contains(told), "{told}: {printed}");
    }
}

#[test]
fn what_fails_thrice_or_with_many_others_has_failed() {
    let (status, printed) = unit(&noisy("lab", 2, "N ... FAILED"));
    assert_eq!(status, Some(101), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("2 passed, 2 failed, 1 skipped")
    );
    let (status, printed) = unit(&noisy("lab", 21, "N ... ok"));
    assert_eq!(status, Some(101), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("2 passed, 21 failed, 1 skipped")
    );
    // One whose program is not known stays failed.
    let other = format!(
        "{SECOND}; echo 'test x ... FAILED'; echo 'test result: FAILED. 0 passed; 1 failed'"
    );
    let (status, printed) =
        unit(&noisy("lab", 1, "N ... ok").replacen(FIRST, &format!("{FIRST}; {other}"), 1));
    assert_eq!(status, Some(101), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("3 passed, 1 failed, 1 skipped")
    );
}

/// A failed test may quote results of another test program, such as one inside a guest.
#[test]
fn results_that_a_failed_test_quotes_are_not_counted() {
    let quoted = "echo 'failures:'; echo '---- a::0 stdout ----'; echo 'test c ... FAILED'; echo 'test d ... ignored'; \
                  echo 'test result: FAILED. 7 passed; 1 failed; 2 ignored'; echo 'failures:'; echo '    a::0'; ";
    let result = "echo 'test result: FAILED";
    let quoting = |cargo: &str| cargo.replacen(result, &format!("{quoted}{result}"), 1);
    let (status, printed) = unit(&quoting(&noisy("lab", 1, "N ... ok")));
    assert_eq!(status, Some(0), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("3 passed, 0 failed, 1 skipped")
    );
    // The same where it runs again.
    let again = "N ... FAILED\\nfailures:\\ntest N ... ok\\n";
    let (status, printed) = unit(&quoting(&noisy("lab", 1, again)));
    assert_eq!(status, Some(101), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("2 passed, 1 failed, 1 skipped")
    );
}

/// Answers as cargo does that runs a program which only computes. The program does what is given.
fn computing(program: &str) -> String {
    running("hopyard_stats-1", program)
}

/// The same of one with this name.
fn running(name: &str, program: &str) -> String {
    let is_it = format!("*{name}");
    let name = format!("$(dirname \"$0\")/{name}");
    format!(
        "case $0 in {is_it}) {program};; esac; {FIRST}; \
         echo \"     Running unittests src/lib.rs ({name})\"; scripts/test-program \"{name}\" || exit 101"
    )
}

#[test]
fn a_program_that_computes_beside_others_counts_as_they_do() {
    let (status, printed) = unit(&computing(
        "sleep 0.2; echo 'test s ... ok'; echo 'test result: ok. 1 passed; 0 failed'; exit 0",
    ));
    assert_eq!(status, Some(0), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("3 passed, 0 failed, 1 skipped")
    );
    assert!(
        printed.contains("Running beside others (./hopyard_stats-1)\ntest s ... ok\n"),
        "{printed}"
    );
    let failing =
        "echo 'test s ... FAILED'; echo 'test result: FAILED. 0 passed; 1 failed'; exit 101";
    let (status, printed) = unit(&computing(failing));
    assert_eq!(status, Some(101), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("2 passed, 1 failed, 1 skipped")
    );
    // It computes the same each time, so it does not run again.
    let (status, printed) = unit(&computing(&format!(
        "case \"$*\" in *--exact*) echo 'test s ... ok'; exit 0;; esac; {failing}"
    )));
    assert_eq!(status, Some(101), "{printed}");
    assert!(!printed.contains("Running again"), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("2 passed, 1 failed, 1 skipped")
    );
    let (status, printed) = unit(&computing("echo 'running 1 test'; kill -9 $$"));
    assert_eq!(status, Some(101), "{printed}");
    assert!(
        printed.contains("1 of 2 test programs ended without a result"),
        "{printed}"
    );
    assert_eq!(
        printed.lines().last(),
        Some("2 passed, 1 failed, 1 skipped")
    );
    let passes_again =
        format!("case \"$*\" in *--exact*) echo 'test s ... ok'; exit 0;; esac; {failing}");
    let (status, printed) = unit(&running("cni-1", &passes_again));
    assert_eq!(status, Some(0), "{printed}");
    assert!(
        printed.contains("passed again alone: cni::s\n"),
        "{printed}"
    );
    // A test that passes again does not make up for a program that died.
    let (status, printed) = unit(&running(
        "cni-1",
        "case \"$*\" in *--exact*) echo 'test s ... ok'; exit 0;; esac; \
         echo 'test s ... FAILED'; kill -9 $$",
    ));
    assert_eq!(status, Some(101), "{printed}");
    assert_eq!(
        printed.lines().last(),
        Some("3 passed, 1 failed, 1 skipped")
    );
}

/// A test of this binary that needs Open vSwitch, where no program of it is found.
#[test]
fn a_test_that_skips_records_it() {
    let _beside = beside();
    let room = Room::new();
    let file = room.file("skipped", String::new());
    std::os::unix::fs::symlink("/bin/sh", room.at("sh")).unwrap();
    let test = "ovs::long_frames_pass_whole";
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact"])
        .env("PATH", room.path())
        .env("HOPYARD_SKIPPED", &file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let recorded = std::fs::read_to_string(&file).unwrap();
    let start = format!("skipped: lab::{test}: no Open vSwitch: ");
    assert!(recorded.starts_with(&start), "{recorded}");
    assert_eq!(recorded.lines().count(), 1, "{recorded}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(&recorded), "{stderr}");
}

#[test]
fn skipping_what_is_there_is_a_failure() {
    for skip in [skip, skip_part] {
        let outcome = std::panic::catch_unwind(|| skip("netkit", true, "it was not found"));
        assert!(outcome.is_err());
    }
}
