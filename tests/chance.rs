//! The error rates of `support::chance`.

use std::process::Command;
use std::time::{Duration, Instant};

use hopyard_net::clock::process_cpu_ns;
use nix::sys::signal::{Signal, kill};

use crate::support::chance::{BROKEN, HOLDS, MOST, Seen, Verdict, Watch, decide};
use crate::support::cli::pid;
use crate::support::{alone, beside, until};

/// Probabilities of the three verdicts, where a sample is within its bounds, or outside, with these: exactly.
fn verdicts(within: f64, outside: f64) -> [f64; 3] {
    let lowest = usize::try_from(BROKEN).unwrap();
    let states = lowest + usize::try_from(HOLDS).unwrap() + 1;
    let mut at = vec![0.0; states];
    at[lowest] = 1.0;
    for _ in 0..MOST {
        let mut next = vec![0.0; states];
        next[0] += at[0];
        next[states - 1] += at[states - 1];
        for state in 1..states - 1 {
            next[state + 1] += within * at[state];
            next[state - 1] += outside * at[state];
            next[state] += (1.0 - within - outside) * at[state];
        }
        at = next;
    }
    let open = at[1..states - 1].iter().sum();
    [at[states - 1], at[0], open]
}

#[test]
fn a_regression_is_caught_and_a_sound_product_passes() {
    // Outside in four of five: passes with less than 0.1, also where half of all samples are not counted.
    for disturbed in [0.0, 0.5] {
        let [passes, ..] = verdicts(0.2 * (1.0 - disturbed), 0.8 * (1.0 - disturbed));
        assert!(passes < 0.07, "{passes}");
    }
    // Outside in one of ten without a sign of disturbance, and not counted in one of five.
    for disturbed in [0.0, 0.2] {
        let [passes, ..] = verdicts(0.9 * (1.0 - disturbed), 0.1 * (1.0 - disturbed));
        assert!(1.0 - passes < 1e-4, "{}", 1.0 - passes);
    }
    assert_eq!(verdicts(0.0, 1.0), [0.0, 1.0, 0.0]);
}

/// The walk itself, on samples by a generator of pseudo-random numbers (Knuth's MMIX).
#[test]
fn the_walk_has_the_computed_rates() {
    const WALKS: u32 = 20_000;
    let mut state = 1_u64;
    let mut sample = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        match state >> 60 {
            0..3 => Seen::Within,
            3..11 => Seen::Outside,
            _ => Seen::Disturbed,
        }
    };
    let passed = (0..WALKS)
        .filter(|_| decide(&mut sample) == Verdict::Hold)
        .count();
    let passed = f64::from(u32::try_from(passed).unwrap()) / f64::from(WALKS);
    let [wanted, ..] = verdicts(3.0 / 16.0, 8.0 / 16.0);
    // Five standard deviations.
    let off = 5.0 * (wanted * (1.0 - wanted) / f64::from(WALKS)).sqrt();
    assert!((passed - wanted).abs() < off, "{passed}, not {wanted}");
}

#[test]
fn always_outside_is_broken_and_always_disturbed_is_no_answer() {
    let mut taken = 0;
    let mut always = |seen| {
        taken = 0;
        let verdict = decide(|| {
            taken += 1;
            seen
        });
        (verdict, taken)
    };
    assert_eq!(always(Seen::Within), (Verdict::Hold, 2));
    assert_eq!(always(Seen::Outside), (Verdict::Broken, 5));
    assert_eq!(always(Seen::Disturbed), (Verdict::Undecided, MOST));
}

#[test]
fn a_process_of_others_that_takes_a_cpu_is_seen() {
    let _alone = alone();
    let watch = Watch::start();
    // Its parent ends at once, so that it is nobody's child of ours.
    let script = "sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!";
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let other: u32 = text.trim().parse().unwrap();
    until("it has a CPU", Duration::from_secs(30), || {
        process_cpu_ns(other.cast_signed()).unwrap() > 100_000_000
    });
    let disturbance = watch.end();
    kill(pid(other), Signal::SIGKILL).unwrap();
    assert!(disturbance.is_some_and(|what| what.contains("used by others")));
}

/// A thread before which not even a sentry runs keeps a CPU for a while.
#[test]
fn a_cpu_that_is_away_is_seen() {
    let _beside = beside();
    use nix::libc::{SCHED_FIFO, sched_param, sched_setscheduler};
    let watch = Watch::start();
    let hog = std::thread::spawn(|| {
        let parameters = sched_param { sched_priority: 50 };
        // SAFETY: the parameters outlive the call.
        let answer = unsafe { sched_setscheduler(0, SCHED_FIFO, &raw const parameters) };
        assert_eq!(answer, 0, "real-time priority is allowed to root");
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(60) {}
    });
    hog.join().unwrap();
    let disturbance = watch.end();
    assert!(disturbance.is_some_and(|what| what.contains("was away for")));
}
