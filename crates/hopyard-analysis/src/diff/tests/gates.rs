//! What keeps a gate from passing, and what does not.

use super::*;
use crate::model::{GuestUsed, LoadKind, SearchFor};
use crate::testing::searched;

/// Nobody asked for a ratio of the base to itself, or for a figure that B alone has: neither keeps a gate from passing.
#[test]
fn a_gate_passes_without_what_nobody_asked_for() {
    let [mut a, b] = pair(&[1.0; 3], &[1.0; 3], 0.002, 1);
    let relative = Ask {
        relative: true,
        ..GATE
    };
    let of = |report: &DiffReport| {
        let gate = report.gate.clone().unwrap();
        let missing = DiffWarningCode::GateMissing;
        let is_told = report.warnings.iter().any(|w| w.code == missing);
        (gate.undecided, gate.failed, gate.blind, is_told)
    };
    let report = between(&a, &b, &relative);
    assert_eq!(report.left_out.len(), 1, "{:?}", report.left_out);
    assert_eq!(of(&report), (false, false, 0, false));
    for sample in a.iter_mut().flat_map(|run| &mut run.samples) {
        if let (2, Outcome::Measured(m)) = (sample.cell, &mut sample.outcome) {
            m.cpu.is_partial = true;
        }
    }
    let report = between(&a, &b, &GATE);
    let left: Vec<_> = report.left_out.iter().map(|l| l.measured_in).collect();
    assert_eq!(left, [MeasuredIn::B], "{:?}", report.left_out);
    assert_eq!(of(&report), (false, false, 0, false));
    // The other way round B has lost it.
    let report = between(&b, &a, &GATE);
    let (undecided, failed, blind, is_told) = of(&report);
    assert!(undecided && !failed && blind == 1 && is_told, "{report:#?}");
}

/// A candidate that fails in some samples, or whose traffic goes round the path, has not passed by the figures of the rest.
#[test]
fn a_gate_does_not_trust_figures_of_what_failed() {
    let [a, b] = pair(&[1.0; 2], &[1.0; 2], 0.002, 1);
    let broken = |failed: bool, runs: &[Run]| {
        let mut runs = runs.to_vec();
        let sample = runs[0].samples.iter_mut().find(|sample| sample.cell == 1);
        let sample = sample.unwrap();
        match &mut sample.outcome {
            Outcome::Measured(m) if !failed => m.way.proved = false,
            outcome => {
                *outcome = Outcome::Failed {
                    cause: "it broke".to_owned(),
                }
            }
        }
        runs
    };
    for failed in [true, false] {
        let report = between(&a, &broken(failed, &b), &GATE);
        let gate = report.gate.as_ref().unwrap();
        assert!(gate.undecided && gate.blind == 1, "{failed}: {gate:?}");
        assert_eq!(report.cells.len(), 2, "it is compared");
        let words = "does not trust B's figures of bridge";
        let mut warnings = report.warnings.iter();
        assert!(warnings.any(|w| w.message.contains(words)), "{report:#?}");
        // What A had already is no news of B.
        let both = between(&broken(failed, &a), &broken(failed, &b), &GATE);
        assert!(!both.gate.unwrap().undecided);
    }
}

/// Both fail in each of their runs, B in more of its samples.
#[test]
fn a_gate_does_not_trust_the_rest_of_more_failures() {
    let [a, b] = pair(&[1.0; 2], &[1.0; 2], 0.002, 1);
    let broken = |runs: &[Run], count: usize| {
        changed(runs, runs.len(), |run| {
            let own = run.samples.iter_mut().filter(|sample| sample.cell == 1);
            own.take(count).for_each(|sample| {
                sample.outcome = Outcome::Failed {
                    cause: "it broke".to_owned(),
                };
            });
        })
    };
    let undecided = |of_a, of_b| {
        let gate = between(&broken(&a, of_a), &broken(&b, of_b), &GATE).gate;
        gate.unwrap().undecided
    };
    assert!(undecided(1, 3));
    assert!(!undecided(3, 1) && !undecided(2, 2));
}

/// B with its first runs changed.
fn changed(b: &[Run], runs: usize, change: impl Fn(&mut Run)) -> Vec<Run> {
    let mut b = b.to_vec();
    b[..runs].iter_mut().for_each(change);
    b
}

#[test]
fn a_gate_does_not_pass_over_runs_in_which_all_of_a_cell_failed() {
    let [a, b] = pair(&[1.0; 2], &[1.0; 2], 0.002, 1);
    let b = changed(&b, 2, |run| {
        let own = run.samples.iter_mut().filter(|sample| sample.cell == 1);
        own.for_each(|sample| {
            sample.outcome = Outcome::Failed {
                cause: "it broke".to_owned(),
            };
        });
    });
    let gate = between(&a, &b, &GATE).gate.unwrap();
    assert!(gate.undecided && gate.blind == 1, "{gate:?}");
}

#[test]
fn a_gate_does_not_pass_over_a_path_that_can_be_built_no_more() {
    let [a, b] = pair(&[1.0; 2], &[1.0; 2], 0.002, 1);
    let without = |run: &mut Run, why: Option<&str>| {
        let gone = run.header.cells.remove(1).cell.path;
        run.samples.retain(|sample| sample.cell == 0);
        let why = why.map(|why| (gone, why.to_owned()));
        run.header.left_out.extend(why);
    };
    for runs in [1, 5] {
        let lost = changed(&b, runs, |run| without(run, Some("no module openvswitch")));
        let report = between(&a, &lost, &GATE);
        let gate = report.gate.as_ref().unwrap();
        assert!(gate.undecided, "{runs}: {gate:?}");
        if runs == 5 {
            assert_eq!(report.left_out[0].cause, "B: no module openvswitch");
        }
        // What nobody asked for is no loss.
        let unasked = changed(&b, runs, |run| without(run, None));
        let gate = between(&a, &unasked, &GATE).gate.unwrap();
        assert!(!gate.undecided, "{runs}: {gate:?}");
    }
}

#[test]
fn a_gate_does_not_compare_emulated_runs_with_others() {
    // B is much slower, by emulation.
    let [a, b] = pair(&[1.0; 2], &[0.1; 2], 0.002, 1);
    let in_guest = |run: &mut Run| {
        run.header.environment.cpu_model = "QEMU TCG CPU version 2.5+".to_owned();
    };
    let all = diff(&a, &changed(&b, 1, in_guest), &[], &GATE).unwrap_err();
    assert!(
        all.to_string()
            .contains("emulated in 0 of 5 runs of A and in 1 of 5 of B"),
        "{all}"
    );
    let guest_of_one = |run: &mut Run| {
        let own = run.samples.iter_mut().filter(|sample| sample.cell == 1);
        for sample in own {
            if let Outcome::Measured(m) = &mut sample.outcome {
                m.guest = Some(GuestUsed {
                    kernel: "6".to_owned(),
                    cpus: 1,
                    emulated: true,
                });
            }
        }
    };
    let [a, b] = pair(&[1.0; 2], &[1.0, 0.1], 0.002, 1);
    let report = between(&a, &changed(&b, 2, guest_of_one), &GATE);
    let gate = report.gate.unwrap();
    assert!(gate.undecided && !gate.failed, "{gate:?}");
    assert_eq!((report.cells.len(), report.left_out.len()), (1, 1));
    let gate = between(
        &changed(&a, 5, guest_of_one),
        &changed(&b, 5, guest_of_one),
        &GATE,
    )
    .gate;
    assert!(gate.unwrap().failed, "both are emulated");
}

/// B knows its CPU cost in two runs of five: those need not be like the others.
#[test]
fn a_gate_does_not_trust_a_figure_that_most_of_the_runs_lack() {
    let [a, b] = pair(&[1.0; 2], &[1.0; 2], 0.002, 1);
    let without_cpu = |run: &mut Run| {
        let own = run.samples.iter_mut().filter(|sample| sample.cell == 1);
        for sample in own {
            if let Outcome::Measured(m) = &mut sample.outcome {
                m.cpu.is_partial = true;
            }
        }
    };
    let thin = |runs: &[Run]| changed(runs, 3, without_cpu);
    let report = between(&a, &thin(&b), &GATE);
    let gate = report.gate.as_ref().unwrap();
    assert!(gate.undecided && gate.blind >= 1, "{gate:?}");
    let is_doubted = |report: &DiffReport| {
        let words = "does not trust B's figures of bridge/local/tcp_stream (cpu_ns_per_byte)";
        let mut warnings = report.warnings.iter();
        warnings.any(|w| w.message.contains(words))
    };
    assert!(is_doubted(&report), "{:?}", report.warnings);
    // Where A lacks as many or more, B has lost nothing.
    for b in [&thin(&b), &b] {
        let report = between(&thin(&a), b, &GATE);
        assert!(!is_doubted(&report), "{:?}", report.warnings);
    }
}

/// Figures of traffic that took another way in all runs are no figures of the path.
#[test]
fn what_took_another_way_on_both_sides_is_not_compared() {
    let [a, b] = pair(&[1.0; 2], &[1.0; 2], 0.002, 1);
    let astray = |runs: &[Run]| {
        changed(runs, runs.len(), |run| {
            let own = run.samples.iter_mut().filter(|sample| sample.cell == 1);
            for sample in own {
                if let Outcome::Measured(m) = &mut sample.outcome {
                    m.way.proved = false;
                }
            }
        })
    };
    let report = between(&astray(&a), &astray(&b), &GATE);
    assert_eq!(report.cells.len(), 1, "{:?}", report.cells);
    let causes: Vec<_> = report.left_out.iter().map(|l| l.cause.as_str()).collect();
    assert_eq!(
        causes,
        ["A: its traffic did not take the path; B: its traffic did not take the path"]
    );
    // B alone has lost it.
    let gate = between(&a, &astray(&b), &GATE).gate.unwrap();
    assert!(gate.undecided && gate.blind == 1, "{gate:?}");
}

/// What both sides found is what the generator can send: B may be slower, and nobody sees it.
#[test]
fn a_gate_does_not_compare_searches_without_a_limit() {
    let [a, b] = pair(&[1.0; 2], &[1.0; 2], 0.002, 1);
    let gate = |limit: Option<f64>| {
        let search = |run: &mut Run| {
            for planned in &mut run.header.cells {
                planned.cell.load = LoadKind::UdpPaced;
                planned.cell.axes.search = Some(SearchFor::NDR);
            }
            for sample in &mut run.samples {
                if let Outcome::Measured(m) = &mut sample.outcome {
                    let rate = 1e5 + f64::from(sample.block);
                    m.search = Some(searched(rate, limit));
                }
            }
        };
        let report = between(&changed(&a, 5, search), &changed(&b, 5, search), &GATE);
        let name = "throughput_packets_per_s";
        let mut cells = report.cells.iter();
        let is_compared = cells.any(|cell| cell.comparisons.contains_key(name));
        let mut left_out = report.left_out.iter();
        let is_told = left_out.any(|one| one.cause.contains("found a limit"));
        assert!(is_compared != is_told, "{report:#?}");
        (is_compared, report.gate.unwrap().undecided)
    };
    assert_eq!(gate(Some(1.01e5)), (true, false));
    assert_eq!(gate(None), (false, true));
}
