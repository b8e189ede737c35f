//! Curves made by hand, with answers known beforehand.

use super::*;
use crate::curves::{self, Along};
use crate::model::{Containers, LoadKind, Outcome};
use crate::testing::curves::{FLOWS, Shown, published, senders};
use crate::testing::{measured, push, round_trips, run};
use crate::{assess, last_attempts};

/// The curve of native senders and that of containers.
fn both<'a, T>(all: &'a [Along<'_, T>]) -> (&'a T, &'a T) {
    let of = |kind| {
        &all.iter()
            .find(|c| c.cell.axes.containers == Some(kind))
            .unwrap()
            .figure
    };
    assert_eq!(all.len(), 2);
    (of(Containers::Native), of(Containers::Own))
}

#[test]
fn every_count_is_an_axis_with_plain_numbers() {
    let counts: Vec<&Axis> = AXES.iter().filter(|axis| axis.counts).collect();
    assert!(counts.len() >= 6, "{}", counts.len());
    for axis in counts {
        let mut axes = Axes::default();
        (axis.set)(&mut axes, "2").unwrap();
        assert_eq!(count(axis, &axes), Some(2.0), "{}", axis.name);
        (axis.clear)(&mut axes);
        assert_ne!(count(axis, &axes), Some(2.0), "{}", axis.name);
    }
    for name in TOLD {
        assert!(crate::quantity(name).is_ok(), "{name}");
    }
}

#[test]
fn a_run_is_cut_into_curves() {
    let report = assess(&senders(published));
    let [native, own] = &report.curves[..] else {
        panic!("{}", report.curves.len());
    };
    assert_eq!(native.values, FLOWS.map(f64::from));
    assert_eq!((&*native.axis, native.load), ("flows", LoadKind::UdpFlood));
    assert_eq!(native.axes.containers, Some(Containers::Native));
    assert_eq!(own.axes.containers, Some(Containers::Own));
    // A quantity that was not measured has no curve.
    assert!(!own.quantities.contains_key("run_length_p50_packets"));
    assert_eq!(own.cpus_full, None);
    let packets = &own.quantities["packets_per_s"];
    let exponent = packets.exponent.as_ref().unwrap();
    assert!(
        exponent.low <= 0.001 && exponent.high >= -0.001 && exponent.high - exponent.low < 0.02,
        "{exponent:?}"
    );
    assert!(!packets.knee.as_ref().unwrap().is_shown && !packets.step.as_ref().unwrap().is_leap);
    assert_eq!(packets.over_first.len(), FLOWS.len());
    // The document reads back the same.
    let text = serde_json::to_string(&report).unwrap();
    let again: crate::model::RunReport = serde_json::from_str(&text).unwrap();
    assert_eq!(again.curves.len(), 2);
    assert_eq!(again.curves[0].quantities.len(), native.quantities.len());
}

/// A single sample whose traffic took another path takes its cell off the curve.
#[test]
fn a_cell_without_its_path_proof_is_on_no_curve() {
    let mut run = senders(published);
    let last = run.header.cells.len() - 1;
    let astray = run.header.cells[last].cell.clone();
    let sample = run.samples.iter_mut().find(|sample| sample.cell == last);
    let Outcome::Measured(m) = &mut sample.unwrap().outcome else {
        panic!("not measured");
    };
    m.way.proved = false;
    let report = assess(&run);
    for curve in &report.curves {
        let is_own = curve.axes.containers == astray.axes.containers;
        let packets = &curve.quantities["packets_per_s"];
        let left_out = usize::from(is_own);
        assert_eq!(packets.values.len(), FLOWS.len() - left_out);
        let flows = f64::from(astray.axes.flows);
        assert_eq!(packets.values.contains(&flows), !is_own);
    }
}

/// Where half of the samples have enough observations for a percentile, those are the faster half.
#[test]
fn a_percentile_that_samples_lack_is_on_no_curve() {
    let transacted = |slow: fn(u32) -> u64| {
        let mut run = run(&["veth"]);
        let planned = run.header.cells.remove(0);
        for flows in [1, 2, 4, 8] {
            let mut one = planned.clone();
            one.cell.load = LoadKind::TcpRr;
            one.cell.axes = Axes::default().for_cell(LoadKind::TcpRr, one.cell.peer, &[]);
            one.cell.axes.flows = flows;
            run.header.cells.push(one);
        }
        for (block, cell) in (0..10).flat_map(|block| (0..4).map(move |cell| (block, cell))) {
            let count = if cell == 0 { slow(block) } else { 2000 };
            let mut m = measured(1);
            m.received.transactions = count;
            m.latency = Some(round_trips(count, u64::from(block % 3)));
            push(&mut run, block, 0, cell, Outcome::Measured(Box::new(m)));
        }
        let report = assess(&run);
        let p99 = report.curves[0].quantities.get("latency_p99_ns");
        p99.map(|curve| curve.values.clone())
    };
    assert_eq!(transacted(|_| 1000), Some(vec![1.0, 2.0, 4.0, 8.0]));
    let half = transacted(|block| 1000 - u64::from(block % 2));
    assert_eq!(half, Some(vec![2.0, 4.0, 8.0]));
}

#[test]
fn two_values_are_no_curve() {
    let mut run = senders(published);
    run.header
        .cells
        .retain(|planned| planned.cell.axes.flows <= 2);
    run.samples.clear();
    assert!(assess(&run).curves.is_empty());
}

#[test]
fn full_cpus_and_their_leap() {
    let run = senders(published);
    let full = curves::fullness(&run);
    let (native, own) = both(&full);
    assert_eq!(
        (native.last_not_full, native.first_full),
        (Some(16.0), Some(20.0))
    );
    assert_eq!((own.last_not_full, own.first_full), (None, Some(1.0)));
    let changes = curves::changes(&run, "client_cpu_busy_ratio");
    let (native, own) = both(&changes);
    assert!(
        native.is_leap && (native.from, native.to) == (16.0, 20.0),
        "{native:?}"
    );
    assert!((native.change.value - 0.55).abs() < 0.02);
    assert!(!own.is_leap);
}

#[test]
fn knees_and_slopes_around_a_count() {
    let run = senders(published);
    let knees = curves::knees(&run, "interarrival_sd_ns");
    let (native, own) = both(&knees);
    assert!(
        native.is_shown && (native.at.value - 12.0).abs() < 1.0,
        "{native:?}"
    );
    assert!(
        own.is_shown && (own.at.value - 4.0).abs() < 1.0 && own.at.high < native.at.low,
        "{own:?}"
    );
    let slopes = curves::slopes_around(&run, "interarrival_sd_ns", 12.0);
    let (native, _) = both(&slopes);
    assert!(
        (native.before.value - 1000.0).abs() < 100.0 && (native.after.value - 7000.0).abs() < 150.0,
        "{native:?}"
    );
    assert!(native.after_minus_twice_before.low > 4000.0);
}

#[test]
fn proportional_is_a_straight_line() {
    let run = senders(|_, n| Shown {
        gap_sd_ns: 4e6 * n,
        ..published(false, n)
    });
    let lines = curves::lines(&run, "interarrival_sd_ns");
    let (native, _) = both(&lines);
    assert!(native.r_squared.as_ref().unwrap().low > 0.999, "{native:?}");
    assert!((native.slope.value / 4e6 - 1.0).abs() < 0.01);
    assert!(native.intercept.low < 0.0 && native.intercept.high > 0.0);
}

#[test]
fn jitter_settles_and_says_when() {
    let run = senders(published);
    let report = assess(&run);
    let series = report.cells[0].series.as_ref().unwrap();
    assert_eq!((series.interval_s, series.traffic_before_s), (5.0, 0.0));
    assert!((series.packets_per_s[0] - 1000.0).abs() < 1e-9 && series.packets_per_s.len() == 20);
    let (means, intervals) = (
        &series.interarrival_sd_ns,
        &series.interarrival_sd_interval_ns,
    );
    assert_eq!((means.len(), intervals.len()), (20, 20));
    for (mean, interval) in means.iter().zip(intervals) {
        let (low, high) = interval.unwrap();
        assert!(
            (low..=high).contains(&mean.unwrap()),
            "{mean:?} {interval:?}"
        );
    }
    let settling = series.settling.as_ref().unwrap();
    assert_eq!((settling.settled_samples, settling.samples), (10, 10));
    // 1/16 is the first value within a tenth, and the fifth interval ends at 25 s.
    assert_eq!(settling.time_s.as_ref().unwrap().value, 25.0);
}

#[test]
fn what_was_not_watched_from_its_start_has_no_settling() {
    let mut run = senders(published);
    for sample in &mut run.samples {
        let Outcome::Measured(m) = &mut sample.outcome else {
            continue;
        };
        let series = m.arrivals.as_mut().unwrap().series.as_mut().unwrap();
        series.before_ns = 300_000_000;
    }
    let report = assess(&run);
    let series = report.cells[0].series.as_ref().unwrap();
    assert_eq!((series.traffic_before_s, &series.settling), (0.3, &None));
}

/// Two windows that opened half a second into their traffic, one of them with other intervals, leave the other eight.
#[test]
fn a_window_that_was_taken_again_hides_no_other() {
    let mut run = senders(published);
    let figures = |run: &crate::model::stored::Run| assess(run).cells[0].series.clone().unwrap();
    let before = figures(&run);
    for (block, intervals) in [(0, 20), (6, 19)] {
        let mut own = run.samples.iter_mut().filter(|sample| sample.cell == 0);
        let sample = own.find(|sample| sample.block == block).unwrap();
        let Outcome::Measured(m) = &mut sample.outcome else {
            panic!("not measured");
        };
        let series = m.arrivals.as_mut().unwrap().series.as_mut().unwrap();
        series.before_ns = 500_000_000;
        series.intervals.truncate(intervals);
        series.intervals[0].interarrival_sd_ns = Some(1e12);
    }
    let after = figures(&run);
    assert_eq!(after.traffic_before_s, 0.0);
    assert_eq!(after.interarrival_sd_ns.len(), 20);
    assert_eq!(after.settling.unwrap().samples, 8);
    assert_eq!(after.interarrival_sd_ns, before.interarrival_sd_ns);
}

#[test]
fn one_sample_that_does_not_settle_leaves_no_mean() {
    let mut run = senders(published);
    let Outcome::Measured(m) = &mut run.samples[0].outcome else {
        panic!("not measured");
    };
    let series = m.arrivals.as_mut().unwrap().series.as_mut().unwrap();
    series.intervals[19].interarrival_sd_ns = Some(1e12);
    let settling = assess(&run).cells[0]
        .series
        .clone()
        .unwrap()
        .settling
        .unwrap();
    assert_eq!(
        (settling.settled_samples, settling.samples, settling.time_s),
        (9, 10, None)
    );
}

#[test]
fn a_block_without_one_of_the_cells_is_left_out() {
    let mut run = senders(published);
    run.samples.retain(|s| !(s.block == 3 && s.cell == 5));
    let blocks = last_attempts(&run.samples);
    let measured = Measured::of(&run.header, &blocks);
    let swept = measured.swept();
    let blocks = |i: usize| measured.curve(&swept[i], "packets_per_s").unwrap().blocks();
    assert_eq!((blocks(0), blocks(1)), (9, 10));
}
