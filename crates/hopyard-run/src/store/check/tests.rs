//! Runs that can be parsed but are impossible.

use super::*;
use crate::assess::testing::{measured, push, run};
use crate::model::{
    BusyCpus, Latency, Measurement, QueueFrames, Settings, SettingsReport, SwitchedBetween,
};
use crate::store::Run;

/// A valid run with two cells and two samples.
fn made() -> Run {
    let mut made = run(&["veth", "bridge"]);
    for cell in 0..2 {
        push(
            &mut made,
            0,
            0,
            cell,
            Outcome::Measured(Box::new(measured(400_000_000))),
        );
    }
    made
}

fn said(made: &Run) -> Result<(), String> {
    header(&made.header)?;
    let mut known = Known::of(&made.header);
    made.samples
        .iter()
        .try_for_each(|sample| known.sample(sample))
}

/// The error about a run after a change.
fn wrong(change: impl FnOnce(&mut Run)) -> String {
    let mut made = made();
    change(&mut made);
    said(&made).unwrap_err()
}

#[test]
fn a_run_that_can_be_is_let_through() {
    assert_eq!(said(&made()), Ok(()));
    let mut again = made();
    again.samples[1].attempt = 1;
    again.samples[1].cell = 0;
    assert_eq!(said(&again), Ok(()), "a block that was measured once more");
}

#[test]
fn headers_that_cannot_be() {
    type Change = fn(&mut Header);
    let changes: [(&str, Change); 16] = [
        (
            "blocks_min 9 and blocks_max 8 are no range within 1 to 1000",
            |h| h.blocks_min = 9,
        ),
        ("no range", |h| h.blocks_min = 0),
        ("no range", |h| h.blocks_max = u32::MAX),
        ("window_ns is 0: it goes from 50ms to 600s", |h| {
            h.window_ns = 0;
        }),
        (
            "warm_up_ns is 18446744073709551615: it goes from 0ns to 600s",
            |h| h.warm_up_ns = u64::MAX,
        ),
        (
            "profile_window_ns is 6000000000: it goes from 500ms to 5s",
            |h| h.profile_window_ns = Some(6_000_000_000),
        ),
        ("confidence is 1: it goes from 0.5 to 0.9999", |h| {
            h.confidence = 1.0;
        }),
        ("half_width is -0.1: it goes from 0 to 1", |h| {
            h.half_width = -0.1;
        }),
        ("margin is 2: it goes", |h| h.margin = 2.0),
        ("base: there is no axis `colour`", |h| {
            h.base = Some("colour=red".to_owned());
        }),
        ("cell veth/local/tcp_stream is there twice", |h| {
            h.cells[1] = h.cells[0].clone();
        }),
        (
            "cell bridge/local/tcp_stream: flows: `0` is out of bounds",
            |h| h.cells[1].cell.axes.flows = 0,
        ),
        (
            "cell veth/local/tcp_stream: ceiling_per_s is -1: it goes from 0",
            |h| h.cells[0].ceiling_per_s = Some(-1.0),
        ),
        ("switch_s is -1: it goes from 0 to 86400", |h| {
            h.settings = Some(SettingsReport {
                commands: Settings {
                    a: "true".to_owned(),
                    b: "true".to_owned(),
                    restore: None,
                },
                switched_between: SwitchedBetween::Generations,
                switch_s: -1.0,
            });
        }),
        ("a machine of 0 CPUs", |h| h.environment.cpus = 0),
        ("cpu_hz is 0: it goes from", |h| {
            h.environment.cpu_hz = Some(0.0);
        }),
    ];
    for (words, change) in changes {
        let why = wrong(|made| change(&mut made.header));
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn samples_that_have_no_place() {
    assert_eq!(
        wrong(|made| made.samples[1].cell = 2),
        "cell 2 in a run of 2"
    );
    assert_eq!(
        wrong(|made| made.samples[0].block = 8),
        "block 8 in a run of at most 8"
    );
    assert_eq!(
        wrong(|made| made.samples[1].cell = 0),
        "cell 0 for the second time in block 0"
    );
    assert_eq!(
        wrong(|made| made.samples[1].attempt = u32::MAX),
        "attempt 4294967295 at block 0"
    );
    assert_eq!(
        wrong(|made| made.header.cells[1].unsupported = Some("no module".to_owned())),
        "cell 1, which this run could not measure"
    );
    assert_eq!(
        wrong(|made| made.samples[1].started_ns = u64::MAX),
        "started_ns: 18446744073709551615 is more than any run takes"
    );
}

#[test]
fn windows_that_measured_what_cannot_be() {
    type Change = fn(&mut Measurement);
    let changes: [(&str, Change); 8] = [
        ("window_ns: 0, and nothing is measured in no time", |m| {
            m.window_ns = 0;
        }),
        ("cpu: 0 CPUs", |m| m.cpu.cpus = 0),
        ("cpu: a window of -1 ns", |m| m.cpu.elapsed_ns = -1.0),
        (
            "cpu: 18446744073709551615 is more than any window holds",
            |m| m.cpu.busy_ns = 1e300,
        ),
        ("latency: 18446744073709551615 is more", |m| {
            m.latency = Some(Latency {
                count: u64::MAX,
                min_ns: 1,
                mean_ns: 1.0,
                max_ns: 1,
                quantiles: Vec::new(),
                histogram: Vec::new(),
            });
        }),
        ("busy_ratio: 18446744073709551615 is more", |m| {
            m.allowed_cpus = Some(BusyCpus {
                cpus: 1,
                busy_ratio: 1e300,
            });
        }),
        ("guest_steal_ratio: 18446744073709551615 is more", |m| {
            m.guest_steal_ratio = Some(-1e300);
        }),
        ("queue_frames: 18446744073709551615 is more", |m| {
            m.queue_frames = vec![QueueFrames {
                bytes: 1,
                frames: vec![0, u64::MAX],
            }];
        }),
    ];
    for (words, change) in changes {
        let why = wrong(|made| {
            let Outcome::Measured(m) = &mut made.samples[0].outcome else {
                panic!("made so");
            };
            change(m);
        });
        assert!(why.starts_with(words), "{why}");
    }
}
