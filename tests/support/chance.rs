//! Verdicts on bounds that a sound product is not within every time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::procs::{self, Process, ticks};
use super::{slower, tell};

/// So many samples more within the bounds than outside, and the bounds hold.
pub(crate) const HOLDS: i32 = 2;
/// So many samples more outside than within, and they do not.
pub(crate) const BROKEN: i32 = 5;
/// More samples are not taken: the machine is too disturbed for an answer.
pub(crate) const MOST: u32 = 25;

/// What one sample says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Within,
    Outside,
    /// Outside, while the machine kept its CPUs from the product: says nothing.
    Disturbed,
}

/// What all of them say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Hold,
    Broken,
    Undecided,
}

/// Takes samples until one side leads by enough.
///
/// A random walk between two barriers. A product that is outside in four of five samples passes with a probability of
/// 0.0625 at most; one that is outside in one of ten fails with 1.7e-5 (`chance.rs` computes both).
pub(crate) fn decide(mut sample: impl FnMut() -> Seen) -> Verdict {
    let mut lead = 0;
    for _ in 0..MOST {
        match sample() {
            Seen::Within => lead += 1,
            Seen::Outside => lead -= 1,
            Seen::Disturbed => {}
        }
        match lead {
            HOLDS => return Verdict::Hold,
            lead if lead == -BROKEN => return Verdict::Broken,
            _ => {}
        }
    }
    Verdict::Undecided
}

/// Holds the product to bounds that a disturbance can break and cannot make hold, by [`decide`]. What no disturbance can
/// break is asserted in the sample itself. Fails with what the last sample outside says.
pub(crate) fn mostly(mut sample: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let mut last = String::new();
    let verdict = decide(|| {
        let watch = Watch::start();
        let outcome = sample();
        let disturbance = watch.end();
        let Err(why) = outcome else {
            return Seen::Within;
        };
        last = why;
        let Some(disturbance) = disturbance else {
            tell(&format!("outside: {last}"));
            return Seen::Outside;
        };
        tell(&format!("not counted, {disturbance}: {last}"));
        Seen::Disturbed
    });
    match verdict {
        Verdict::Hold => Ok(()),
        Verdict::Broken => Err(last),
        Verdict::Undecided => Err(format!("no answer after {MOST} samples; the last: {last}")),
    }
}

/// Takes a sample again, four times at most, where it is outside its bounds and the machine was disturbed. A sample that is
/// outside on a machine at rest fails at once.
pub(crate) fn unless_disturbed<T>(
    mut sample: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    for _ in 0..4 {
        let watch = Watch::start();
        let outcome = sample();
        let disturbance = watch.end();
        match (outcome, disturbance) {
            (Err(why), Some(disturbance)) => tell(&format!("once more, {disturbance}: {why}")),
            (outcome, _) => return outcome,
        }
    }
    sample()
}

/// Sees whether the CPUs were there, other than by what the product measures: a thread on each of them that wants to run
/// every few milliseconds, before every ordinary thread; the kernel's account of stolen time; and the CPU time of processes
/// that are not the test's.
pub(crate) struct Watch {
    began: Instant,
    stolen: Duration,
    foreign: BTreeMap<u32, Duration>,
    over: Arc<AtomicBool>,
    sentries: Vec<JoinHandle<Duration>>,
}

/// How often a sentry wants to run.
const TURN: Duration = Duration::from_millis(5);
/// A sentry that waits longer had no CPU. One with real-time priority waits for less than a millisecond on a machine at rest.
const GAP: Duration = Duration::from_millis(20);
/// Of one CPU, of the sample's time.
const STOLEN_RATIO: f64 = 0.05;
const FOREIGN_RATIO: f64 = 0.1;

impl Watch {
    pub(crate) fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let cpus = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap());
        let sentries = cpus.map(|cpu| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || longest_gap(cpu, &over))
        });
        Self {
            sentries: sentries.collect(),
            foreign: foreign(),
            began: Instant::now(),
            stolen: stolen(),
            over,
        }
    }

    /// What disturbed the machine since the start.
    pub(crate) fn end(self) -> Option<String> {
        self.over.store(true, Relaxed);
        let gaps = self
            .sentries
            .into_iter()
            .map(|thread| thread.join().unwrap());
        let gap = gaps.max().unwrap_or_default();
        let stolen = stolen().saturating_sub(self.stolen);
        let elapsed = self.began.elapsed();
        let before = |pid: &u32| self.foreign.get(pid).copied().unwrap_or_default();
        let used = foreign().into_iter();
        let foreign: Duration = used
            .map(|(pid, used)| used.saturating_sub(before(&pid)))
            .sum();
        // A guest does not see that its host took its emulated CPU away.
        let is_disturbed = slower() > 1
            || gap > GAP
            || stolen > elapsed.mul_f64(STOLEN_RATIO)
            || foreign > elapsed.mul_f64(FOREIGN_RATIO);
        is_disturbed.then(|| {
            format!("a CPU was away for {gap:.0?}, {stolen:?} stolen, {foreign:?} used by others")
        })
    }
}

/// The longest that a thread on this CPU had to wait for it.
fn longest_gap(cpu: usize, over: &AtomicBool) -> Duration {
    let mut one = CpuSet::new();
    one.set(cpu).unwrap();
    sched_setaffinity(Pid::from_raw(0), &one).unwrap();
    let parameters = nix::libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters outlive the call. Where it is refused, an ordinary thread sees gaps as well.
    unsafe { nix::libc::sched_setscheduler(0, nix::libc::SCHED_FIFO, &raw const parameters) };
    let mut longest = Duration::ZERO;
    while !over.load(Relaxed) {
        let asleep = Instant::now();
        std::thread::sleep(TURN);
        longest = longest.max(asleep.elapsed().saturating_sub(TURN));
    }
    longest
}

/// What the hypervisor took from all CPUs since boot (`proc_stat(5)`).
fn stolen() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    ticks(text.split_ascii_whitespace().nth(8).unwrap())
}

/// CPU time of each process that is neither the test's nor the kernel's nor a daemon of a lab (`proc_pid_stat(5)`). What ended
/// since is not among them.
fn foreign() -> BTreeMap<u32, Duration> {
    let me = std::process::id();
    let mut ours: BTreeSet<u32> = procs::below(me).iter().map(|process| process.pid).collect();
    ours.insert(me);
    let is_daemon =
        |process: &Process| process.arguments.iter().any(|a| a.contains("/run/hopyard"));
    let mut others = procs::all();
    others.retain(|process| {
        !ours.contains(&process.pid) && !process.arguments.is_empty() && !is_daemon(process)
    });
    let used = |process: &Process| Some((process.pid, procs::cpu_time(process.pid)?));
    others.iter().filter_map(used).collect()
}
