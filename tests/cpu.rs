//! CPU time on a machine that others fill.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hopyard::meter::{CpuMeter, OwnProcesses};

use crate::support::{beside, tell};

/// Processes that take all the CPU time they get.
struct Hogs(Vec<Child>);

impl Hogs {
    fn start(count: usize) -> Self {
        let hog = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]);
            shell.stdin(Stdio::null()).spawn().unwrap()
        };
        Self((0..count).map(|_| hog()).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// A controller that waits for its turn reads the clocks of all processes over a longer time than the window. Others once had used more
/// than there was, up to twice as much.
#[test]
fn processes_use_no_more_than_there_is() {
    let _beside = beside();
    let _hogs = Hogs::start(8);
    // A thread of its own, since it comes after the hogs.
    let mut shares = std::thread::spawn(shares_of_others).join().unwrap();
    shares.sort_by(f64::total_cmp);
    tell(&format!("others' share of busy time: {shares:.2?}"));
    // Single windows hold bursts that the clocks' longer span has not, and the other way round.
    let median = shares[shares.len() / 2];
    assert!(median > 0.5, "the hogs are not seen: {shares:.2?}");
    assert!(median < 1.06, "more than there is: {shares:.2?}");
}

/// Of some windows: the CPU time of others over the busy time.
fn shares_of_others() -> Vec<f64> {
    let me = nix::unistd::gettid().to_string();
    let renice = Command::new("renice")
        .args(["-n", "5", "-p", &me])
        .output()
        .unwrap();
    assert!(renice.status.success(), "{renice:?}");
    let meter = CpuMeter::new().unwrap();
    let share = |_| {
        let opened = meter.open(OwnProcesses::default()).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let used = meter.close(OwnProcesses::default()).unwrap().since(&opened);
        used.foreign_ns / (used.busy_ns + used.steal_ns)
    };
    (0..9).map(share).collect()
}
