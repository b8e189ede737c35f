//! Labs whose building or removal is cut short, or meets another.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hopyard::lab::keep;
use nix::sys::signal::Signal;

use super::Ends;
use crate::support::cli::{PROGRAM, Running, hopyard, run};
use crate::support::host::unharmed;
use crate::support::traces::Traces;
use crate::support::{apart, until};

/// A builder of a lab, once it has begun and worked on it for this time.
fn builder_at_work(name: &str, time: Duration) -> Running {
    let up = ["lab", "up", "tap-mq", "--name", name];
    let up = Running::start(hopyard(&up));
    until("it begins", Duration::from_secs(5), || {
        Path::new(keep::HOME).join(name).exists()
    });
    std::thread::sleep(time);
    up
}

#[test]
fn a_lab_that_is_interrupted_while_it_is_built_leaves_nothing() {
    apart(|| {
        let before = Traces::now();
        unharmed(|| {
            let mut interrupted = 0;
            for (delay, signal) in (0..40)
                .step_by(4)
                .zip([Signal::SIGTERM, Signal::SIGINT].into_iter().cycle())
            {
                let _ends = Ends("test-stop");
                let up = builder_at_work("test-stop", Duration::from_millis(delay));
                up.signal(signal);
                let said = up.wait();
                if said.status.code() == Some(0) {
                    // It was whole by then.
                    run(&["lab", "down", "test-stop"]).exits(0);
                    continue;
                }
                said.exits(130).says(&["interrupted"]);
                interrupted += 1;
                assert!(!Path::new(keep::HOME).exists(), "{said}");
                run(&["clean"]).exits(0).prints(&["nothing to clean"]);
            }
            assert!(interrupted > 0);
        });
        before.unchanged().unwrap();
    });
}

#[test]
fn down_takes_all_of_a_lab_whose_builder_was_killed() {
    apart(|| {
        let before = Traces::now();
        unharmed(|| {
            let mut unfinished = 0;
            for delay in (0..60).step_by(6) {
                let _ends = Ends("test-cut");
                let up = builder_at_work("test-cut", Duration::from_millis(delay));
                up.signal(Signal::SIGKILL);
                up.wait();
                let whole = run(&["lab", "list"]).exits(0).stdout.contains("test-cut");
                run(&["lab", "down", "test-cut"]).exits(0);
                unfinished += u32::from(!whole);
                run(&["clean"]).exits(0).prints(&["nothing to clean"]);
            }
            assert!(unfinished > 0);
        });
        before.unchanged().unwrap();
    });
}

#[test]
fn down_leaves_a_lab_that_got_the_name_meanwhile() {
    apart(|| {
        let before = Traces::now();
        unharmed(|| {
            let _ends = Ends("test-again");
            let lab = Path::new(keep::HOME).join("test-again");
            let up = ["lab", "up", "veth", "--name", "test-again"];
            run(&up).exits(0);
            let first = std::fs::metadata(&lab).unwrap().ino();
            // It has looked at the lab, and is held up before it takes the name away.
            let mut slow = Command::new("strace");
            slow.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
            slow.arg("inject=?rename,?renameat,renameat2:delay_enter=3000000");
            slow.env_remove("LD_LIBRARY_PATH");
            slow.args(["--", PROGRAM, "lab", "down", "test-again"]);
            let slow = Running::start(slow);
            std::thread::sleep(Duration::from_secs(1));
            run(&["lab", "down", "test-again"]).exits(0);
            run(&up).exits(0);
            assert_ne!(first, std::fs::metadata(&lab).unwrap().ino());
            slow.wait()
                .exits(2)
                .says(&["another of that name was built meanwhile, which stays"]);
            run(&["lab", "exec", "test-again", "a", "--", "true"]).exits(0);
            run(&["lab", "down", "test-again"]).exits(0);
        });
        before.unchanged().unwrap();
    });
}

#[test]
fn what_a_killed_builder_leaves_is_cleaned() {
    apart(|| {
        let before = Traces::now();
        unharmed(|| {
            let mut unfinished = 0;
            for delay in (0..40).step_by(2) {
                let _ends = Ends("test-half");
                let up = Running::start(hopyard(&[
                    "lab",
                    "up",
                    "bridge",
                    "--name",
                    "test-half",
                    "--peer",
                    "far",
                ]));
                until("it begins", Duration::from_secs(5), || {
                    Path::new("/run/hopyard/test-half").exists()
                });
                std::thread::sleep(Duration::from_millis(delay));
                up.signal(Signal::SIGKILL);
                up.wait();
                let there = Path::new("/run/hopyard/test-half").exists();
                let listed = run(&["lab", "list"]).exits(0).stdout.contains("test-half");
                let cleaned = run(&["clean"]);
                cleaned.exits(0);
                assert_eq!(
                    there && !listed,
                    cleaned.stdout.contains("unfinished lab `test-half`"),
                    "{cleaned}"
                );
                unfinished += u32::from(there && !listed);
                run(&["clean"]).exits(0).prints(&["nothing to clean"]);
                if !listed {
                    assert!(!Path::new("/run/hopyard/test-half").exists());
                }
            }
            crate::support::tell(&format!(
                "{unfinished} unfinished labs were left and cleaned"
            ));
            // The first kills come as soon as the lab's directory is there.
            assert!(unfinished > 0);
        });
        before.unchanged().unwrap();
    });
}
