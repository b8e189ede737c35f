//! Runs made by hand, with answers known beforehand.

mod bases;
mod gates;
mod steal;

use crate::model::stored::{End, Run};
use crate::model::{CellStatus, Outcome, PathProof, Rate, Sample, WarningCode};
use crate::stats::Verdict;
use crate::testing::{compared, compared_over, device, measured, push, run};
use crate::{assess, last_attempts};

#[test]
fn figures_come_out_in_their_units() {
    let report = assess(&compared(1.0));
    let veth = &report.cells[0];
    let goodput = &veth.estimates["goodput_bps"];
    assert!(
        (goodput.value / (4e8 * 1.003 * 8.0 / 0.2) - 1.0).abs() < 1e-6,
        "{goodput:?}"
    );
    // 315 − 5 − 5 − 5 ms of CPU for some 401.2 MB.
    assert!((veth.estimates["cpu_ns_per_byte"].value / (3e8 / 4.012e8) - 1.0).abs() < 1e-3);
    assert!((veth.estimates["busy_cores"].value - 1.5).abs() < 1e-9);
    assert!(
        !veth.estimates.contains_key("transactions_per_s"),
        "not measured is absent"
    );
    assert!(
        !veth.estimates.contains_key("retransmits_per_s"),
        "not measured is absent"
    );
    assert_eq!(report.run.blocks, 8);
    assert!((veth.cpu_split_ratio["system"] - 0.5).abs() < 1e-9);
}

#[test]
fn a_tenth_less_is_different_and_a_thousandth_is_equivalent() {
    let verdict = |factor| {
        let report = assess(&compared(factor));
        assert!(
            report.cells[0].verdicts.is_empty(),
            "the base is compared with nothing"
        );
        let verdict = &report.cells[1].verdicts["goodput_bps"];
        assert_eq!(verdict.base, "veth");
        (verdict.ratio.value, verdict.verdict)
    };
    let (ratio, found) = verdict(0.9);
    assert!((ratio - 0.9).abs() < 0.005);
    assert_eq!(found, Some(Verdict::Different));
    assert_eq!(verdict(1.0).1, Some(Verdict::Equivalent));
}

#[test]
fn few_blocks_give_figures_without_verdicts() {
    let mut run = compared(0.9);
    run.samples.retain(|s| s.block < 3);
    let report = assess(&run);
    assert!(report.run.quick_look);
    assert_eq!(report.cells[1].verdicts["goodput_bps"].verdict, None);
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.code == WarningCode::QuickLook)
    );
}

#[test]
fn a_failure_marks_its_cell_and_keeps_its_figures() {
    let mut run = compared(0.9);
    let cause = "the worker at `b` died".to_owned();
    run.samples[1].outcome = Outcome::Failed {
        cause: cause.clone(),
    };
    let report = assess(&run);
    let bridge = &report.cells[1];
    assert_eq!(
        (bridge.status, bridge.cause.as_ref()),
        (CellStatus::Failed, Some(&cause))
    );
    assert_eq!(bridge.failed_samples, 1);
    assert_eq!(bridge.estimates["goodput_bps"].n, 7);
    assert_eq!(
        bridge.verdicts["goodput_bps"].ratio.n, 7,
        "paired where both are"
    );
    assert_eq!(report.run.blocks, 8, "a failed sample was still a visit");
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.code == WarningCode::Failed)
    );
}

#[test]
fn a_repeated_block_counts_by_its_last_attempt() {
    let mut run = compared(1.0);
    push(&mut run, 7, 1, 0, Outcome::Measured(Box::new(measured(1))));
    push(&mut run, 7, 1, 1, Outcome::Measured(Box::new(measured(1))));
    let kept = last_attempts(&run.samples);
    assert_eq!(kept.len(), 16);
    assert!(kept.iter().filter(|s| s.block == 7).all(|s| s.attempt == 1));
}

#[test]
fn an_attempt_cut_short_does_not_count_where_a_whole_one_does() {
    let mut run = compared(1.0);
    push(&mut run, 7, 1, 1, Outcome::Measured(Box::new(measured(1))));
    let kept = last_attempts(&run.samples);
    assert_eq!(kept.len(), 16);
    assert!(kept.iter().all(|s| s.attempt == 0));
    let report = assess(&run);
    assert_eq!(report.run.blocks, 8);
    assert!(!report.run.quick_look);
    // A block without a complete attempt keeps its samples.
    run.samples.retain(|s| s.block < 7 || s.attempt == 1);
    assert_eq!(last_attempts(&run.samples).len(), 15);
    assert_eq!(assess(&run).run.blocks, 7);
}

/// Somebody copied a part of the file, or a disk lost some of it.
#[test]
fn samples_that_were_lost_are_told() {
    let told = |end: End, keep: fn(&Sample) -> bool| {
        let mut run = compared(1.0);
        run.end = Some(end);
        run.samples.retain(keep);
        let warnings = assess(&run).warnings.into_iter();
        let found = warnings.filter(|one| one.code == WarningCode::CutShort);
        found.map(|one| one.message).collect::<String>()
    };
    let none: fn(&Sample) -> bool = |_| true;
    assert_eq!(
        [End::Complete, End::TimeLimit].map(|end| told(end, none)),
        ["", ""]
    );
    let last: fn(&Sample) -> bool = |one| one.block < 6;
    assert!(told(End::Complete, last).contains("6 of 8 blocks are complete"));
    // One that ended by its time may have had no more.
    assert_eq!(told(End::TimeLimit, last), "");
    let part: fn(&Sample) -> bool = |one| one.block < 7 || one.cell == 0;
    assert!(told(End::Complete, part).contains("7 of 8 blocks"));
    assert_eq!(told(End::TimeLimit, part), "");
    let amidst: fn(&Sample) -> bool = |one| one.block != 3 || one.cell == 0;
    assert!(told(End::Complete, amidst).contains("7 of 8 blocks"));
    let two: fn(&Sample) -> bool = |one| one.block < 2 || one.block > 3;
    assert!(told(End::TimeLimit, two).contains("6 of 7 blocks"));
    assert!(told(End::Complete, |_| false).contains("0 of 8 blocks"));
    assert_eq!(told(End::TimeLimit, |_| false), "");
}

#[test]
fn cost_does_not_depend_on_how_long_the_meter_watched() {
    let exact = compared(1.0);
    let mut late = exact.clone();
    for sample in &mut late.samples {
        // The windows of turns are slightly longer or shorter than what the ends counted.
        let stretch = if sample.order % 2 == 0 { 1.044 } else { 0.947 };
        if let Outcome::Measured(m) = &mut sample.outcome {
            let cpu = &mut m.cpu;
            for ns in [
                &mut cpu.elapsed_ns,
                &mut cpu.busy_ns,
                &mut cpu.foreign_ns,
                &mut cpu.controller_ns,
                &mut cpu.baseline_ns,
            ] {
                *ns *= stretch;
            }
        }
    }
    let (exact, late) = (assess(&exact), assess(&late));
    for (exact, late) in exact.cells.iter().zip(&late.cells) {
        for name in ["cpu_ns_per_byte", "busy_cores"] {
            let (exact, late) = (&exact.estimates[name], &late.estimates[name]);
            for (one, other) in [
                (exact.value, late.value),
                (exact.low, late.low),
                (exact.high, late.high),
            ] {
                assert!(
                    (one / other - 1.0).abs() < 1e-9,
                    "{name}: {exact:?} {late:?}"
                );
            }
        }
    }
}

#[test]
fn doubts_become_sentences() {
    let mut run = compared(1.0);
    run.end = None;
    run.header.environment.frequency_governor = Some("powersave".into());
    run.header.environment.debug_features = vec!["CONFIG_KASAN".into()];
    run.header.environment.cpu_model = "QEMU Virtual CPU version 2.5+".into();
    run.header.cells[0].ceiling_per_s = Some(2.1e9);
    run.header.cells[1].cell.axes.pace_bps = Some(Rate(Some(900_000_000_000)));
    run.header.left_out = vec![("netkit".into(), "no".into())];
    for sample in &mut run.samples {
        if let Outcome::Measured(m) = &mut sample.outcome {
            m.cpu.foreign_ns = 0.2e8;
            m.cpu.steal_ns = 0.1e8;
            m.cpu.closure = 0.8;
            m.cpu.forks = 50;
            m.silent_flows = Some(1);
            m.missed_windows = 1;
            m.way = PathProof {
                proved: false,
                problems: vec!["a/eth0 sent 1 bytes".into()],
            };
        }
    }
    let report = assess(&run);
    let codes: Vec<WarningCode> = report.warnings.iter().map(|w| w.code).collect();
    use WarningCode as W;
    for code in [
        W::CutShort,
        W::LeftOut,
        W::Way,
        W::ForeignCpu,
        W::ForeignForks,
        W::Steal,
        W::Closure,
        W::GeneratorCeiling,
        W::Pace,
        W::FrequencyScaling,
        W::DebugKernel,
        W::Emulated,
        W::SilentFlows,
        W::MissedWindows,
    ] {
        assert!(codes.contains(&code), "{code:?} is missing in {codes:?}");
    }
    for warning in &report.warnings {
        assert!(
            warning.message.ends_with('.') && !warning.message.contains("  "),
            "no sentence: {}",
            warning.message
        );
    }
    assert!(
        report.cells[0].cpu_split_ratio.is_empty(),
        "no split where ticks do not add up"
    );
    assert!(!report.cells[0].way.proved);
}

#[test]
fn a_quiet_run_on_a_plain_machine_has_no_doubts() {
    let report = assess(&compared_over(15, 1.0));
    assert_eq!(report.warnings, [], "{:#?}", report.warnings);
    assert!(report.run.half_width_reached && report.run.complete);
}

/// However narrow the other cells are.
#[test]
fn a_cell_without_its_main_figure_has_not_reached_a_width() {
    let mut run = compared_over(15, 1.0);
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == 1) {
        let cause = "it broke".to_owned();
        sample.outcome = Outcome::Failed { cause };
    }
    assert!(!assess(&run).run.half_width_reached);
    run.header.cells[1].unsupported = Some("no module".to_owned());
    run.samples.retain(|sample| sample.cell == 0);
    assert!(assess(&run).run.half_width_reached);
}

#[test]
fn a_run_that_decides_is_held_to_the_difference_asked_for() {
    let width = |decide| {
        let mut run = compared_over(15, 1.0);
        run.header.half_width = 1e-9;
        run.header.decide = decide;
        let mut warnings = assess(&run).warnings;
        warnings.retain(|w| w.code == WarningCode::Width);
        warnings.pop().map(|warning| warning.message)
    };
    assert!(width(None).unwrap().contains("half-width"));
    assert_eq!(width(Some(0.03)), None);
    let message = width(Some(0.0001)).unwrap();
    assert!(
        message.starts_with("2 of 2 comparisons could not show a difference of 0.01 %"),
        "{message}"
    );
}

#[test]
fn what_cannot_be_seen_is_said() {
    let report = assess(&compared(1.0));
    let codes: Vec<WarningCode> = report.warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, [WarningCode::Dependent]);
    let message = &report.warnings[0].message;
    assert!(message.starts_with("8 blocks of so few cells"), "{message}");
}

/// 12 MB in 0.2 s with 1.5 CPUs busy, at 2 GHz.
#[test]
fn cost_in_other_words() {
    let mut run = run(&["veth"]);
    for block in 0..8 {
        push(
            &mut run,
            block,
            0,
            0,
            Outcome::Measured(Box::new(measured(12_000_000))),
        );
    }
    let report = assess(&run);
    let value = |name: &str| report.cells[0].estimates[name].value;
    let near = |name: &str, wanted: f64| {
        let ratio = value(name) / wanted;
        assert!((ratio - 1.0).abs() < 1e-9, "{name}: {}", value(name));
    };
    near("goodput_bps", 480e6);
    near("busy_cores", 1.5);
    near("cpu_ns_per_byte", 25.0);
    near("efficiency_bps_per_core", 320e6);
    near("efficiency_bps_per_ghz", 160e6);
    // 75 % of the machine's two CPUs.
    near("normalized_bps_per_cpu_percent", 6.4e6);
    near("skbs_per_s", 1000.0);
}

/// Every place in a document with `null` or -1. Axes may have `null` for no limit, and a cell that did not fail has no
/// cause.
fn unknown(value: &serde_json::Value, place: &str, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Null => found.push(place.to_owned()),
        serde_json::Value::Number(n) if n.as_f64() == Some(-1.0) => found.push(place.to_owned()),
        serde_json::Value::Array(all) => all.iter().for_each(|v| unknown(v, place, found)),
        serde_json::Value::Object(all) => all
            .iter()
            .filter(|(key, _)| !["axes", "cause"].contains(&key.as_str()))
            .for_each(|(key, v)| unknown(v, &format!("{place}/{key}"), found)),
        _ => {}
    }
}

#[test]
fn what_was_not_measured_is_absent() {
    let never = Run {
        end: None,
        ..run(&["veth", "bridge"])
    };
    let mut unsupported = never.clone();
    unsupported.header.cells[1].unsupported = Some("no module".to_owned());
    let mut quick = compared(0.9);
    quick.samples.retain(|s| s.block < 2);
    let mut seen = compared(1.0);
    for sample in seen.samples.iter_mut().filter(|s| s.cell == 0) {
        if let Outcome::Measured(m) = &mut sample.outcome {
            m.devices.push(device());
        }
    }
    for run in [&never, &unsupported, &quick, &seen] {
        let document = serde_json::to_value(assess(run)).unwrap();
        let mut found = Vec::new();
        unknown(&document, "", &mut found);
        assert_eq!(found, Vec::<String>::new());
        for (at, cell) in document["cells"].as_array().unwrap().iter().enumerate() {
            // No drops of no device are no figure.
            let has_devices = std::ptr::eq(run, &seen) && at == 0;
            assert_eq!(cell.get("device_drops").is_some(), has_devices);
            // TCP sends lost data again, so it has no lost datagrams.
            assert!(cell.get("lost_datagrams").is_none());
        }
    }
}
