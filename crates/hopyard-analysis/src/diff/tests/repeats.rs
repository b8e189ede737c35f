//! Comparisons with a known scatter between runs, and without.

use super::*;
use crate::model::IntervalFrom;

/// Runs of both sides, and groups that only show scatter.
type Named = (Vec<Run>, Vec<Run>, Vec<Vec<Run>>);

/// Two single runs: whatever they show, it is not known whether two more would show it.
#[test]
fn two_single_runs_have_no_verdict_and_a_gate_stays_undecided() {
    for b in [[1.0, 0.5, 1.0, 1.0], [1.0; 4], [2.0; 4]] {
        let [a, b] = singles(&[1.0; 4], &b, 0.005, 1);
        let report = of_two(&a, &b, &GATE).unwrap();
        let gate = report.gate.as_ref().unwrap();
        assert_eq!((gate.failed, gate.undecided), (false, true));
        assert_eq!((gate.comparisons, gate.blind), (8, 8));
        assert_eq!(gate.runs_needed, Some(3), "of so steady ones, at least");
        for q in report.cells.iter().flat_map(|c| c.comparisons.values()) {
            assert_eq!(
                (q.verdict, q.change, q.smallest_detectable),
                (None, None, None)
            );
            assert_eq!(
                (q.trips_gate, q.gate_catches_ratio, q.run_scatter),
                (None, None, None)
            );
            assert_eq!((q.runs_a, q.runs_b, q.ratio.n), (1, 1, 10));
            assert_eq!(q.interval_from, IntervalFrom::Blocks);
        }
        let codes: Vec<_> = report.warnings.iter().map(|w| w.code).collect();
        assert_eq!(
            codes,
            [DiffWarningCode::ScatterUnknown, DiffWarningCode::GateBlind]
        );
    }
    // Noisy blocks: even if runs differed in nothing else, three would be too few.
    let [a, b] = singles(&[1.0; 4], &[1.0; 4], 0.1, 1);
    let needed = of_two(&a, &b, &GATE).unwrap().gate.unwrap().runs_needed;
    assert!((20..200).contains(&needed.unwrap()), "{needed:?}");
}

fn is_unused(report: &DiffReport) -> bool {
    let mut warnings = report.warnings.iter();
    warnings.any(|w| w.code == DiffWarningCode::RepeatsUnused)
}

/// Three runs of each side need no others. If one cell has fewer, its verdict rests on others as well.
#[test]
fn repeats_that_nobody_needs_are_told() {
    let world = World {
        blocks: 4,
        ..World::default()
    };
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut runs = |name: &str, count| world.runs(name, count, &[1.0; 2], &mut rng);
    let (a, mut b, same) = (runs("a", 3), runs("b", 3), runs("s", 5));
    let unused = |b: &[Run]| is_unused(&diff(&a, b, from_ref(&same), &GATE).unwrap());
    assert!(unused(&b) && !unused(&b[..2]));
    b[2].samples.retain(|s| s.cell == 0);
    assert!(!unused(&b));
}

/// The scatter between runs comes from both sides, from one, or from runs of something else.
#[test]
fn the_scatter_comes_from_wherever_there_are_repeats() {
    let world = World {
        blocks: 4,
        sigma: 0.002,
        between: 0.01,
        ..World::default()
    };
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut runs = |name: &str, count, speed: f64| world.runs(name, count, &[speed; 2], &mut rng);
    let (a, b, same) = (runs("a", 5, 1.0), runs("b", 5, 0.8), runs("s", 6, 3.0));
    let one = |runs: &[Run]| runs[..1].to_vec();
    let groups: [Named; 4] = [
        (a.clone(), b.clone(), Vec::new()),
        (one(&a), b.clone(), Vec::new()),
        (a.clone(), one(&b), Vec::new()),
        (one(&a), one(&b), vec![same.clone()]),
    ];
    for (a, b, repeats) in groups {
        let report = diff(&a, &b, &repeats, &GATE).unwrap();
        let q = &report.cells[1].comparisons["goodput_bps"];
        assert_eq!((q.runs_a, q.runs_b), (a.len(), b.len()));
        assert_eq!(q.change, Some(Change::Worse), "{q:?}");
        assert_eq!(
            (q.trips_gate, q.interval_from),
            (Some(true), IntervalFrom::Runs)
        );
        assert!((0.003..0.03).contains(&q.run_scatter.unwrap()), "{q:?}");
        assert_eq!(report.repeats.len(), repeats.len());
        assert!(
            !report
                .warnings
                .iter()
                .any(|w| w.code == DiffWarningCode::ScatterUnknown)
        );
        assert!(!is_unused(&report));
    }
    // One run fewer is not enough.
    let few = |a: &[Run], b: &[Run], repeats: &[Vec<Run>]| {
        let report = diff(a, b, repeats, &GATE).unwrap();
        assert_eq!(report.cells[1].comparisons["goodput_bps"].verdict, None);
        assert!(report.gate.unwrap().undecided);
    };
    few(&a[..2], &b[..3], &[]);
    few(&a[..1], &b[..4], &[]);
    few(&a[..1], &b[..1], &[same[..4].to_vec()]);
}

/// A cell that some of the runs did not measure is judged by the others, if they are enough.
#[test]
fn a_cell_counts_in_the_runs_that_have_it() {
    let [mut a, b] = pair(&[1.0; 2], &[0.9; 2], 0.004, 3);
    for run in &mut a[..2] {
        run.samples.retain(|s| s.cell == 0);
    }
    let report = between(&a, &b, &GATE);
    let q = &report.cells[1].comparisons["goodput_bps"];
    assert_eq!((q.runs_a, q.runs_b, q.change), (3, 5, Some(Change::Worse)));
    let told = report
        .warnings
        .iter()
        .find(|w| w.code == DiffWarningCode::SomeRunsOnly);
    assert!(told.unwrap().message.contains("bridge/local/tcp_stream"));
    for run in &mut a[2..] {
        run.samples.retain(|s| s.cell == 0);
    }
    let report = between(&a, &b, &GATE);
    assert_eq!((report.cells.len(), report.left_out.len()), (1, 1));
}

#[test]
fn runs_that_are_no_repeats_are_told() {
    let [mut a, mut b] = pair(&[1.0; 2], &[1.0; 2], 0.01, 1);
    a[3].header.environment.kernel_release = "7".into();
    for (nth, run) in a.iter_mut().chain(&mut b).enumerate() {
        run.header.started = format!("2026-01-01T00:00:{nth:02}Z");
    }
    let mut same = pair(&[1.0; 2], &[1.0; 2], 0.01, 2)[0].clone();
    for run in &mut same {
        run.header.id.push_str("-same");
        run.header.window_ns = 50_000_000;
    }
    let report = diff(&a, &b, &[same], &Ask::default()).unwrap();
    let told = |code| {
        let all = report.warnings.iter().filter(move |w| w.code == code);
        all.map(|w| w.message.as_str()).collect::<Vec<_>>()
    };
    let alike = told(DiffWarningCode::RunsNotAlike);
    assert!(
        alike[0].contains("runs of A") && alike[0].contains("kernel"),
        "{alike:?}"
    );
    assert!(
        alike[1].contains("--repeats") && alike[1].contains("window"),
        "{alike:?}"
    );
    assert_eq!(alike.len(), 2);
    assert!(told(DiffWarningCode::NotInterleaved)[0].contains("All runs of A"));
    let kernel = &report.differences[0];
    assert_eq!(
        (&*kernel.what, &*kernel.a, &*kernel.b),
        ("kernel", "6 or 7", "6")
    );
}

/// A machine that is faster in one run and slower in the next: figures of cells cannot show what ratios can.
#[test]
fn what_moves_whole_runs_cancels_in_ratios() {
    let world = World {
        blocks: 4,
        sigma: 0.01,
        machine: 0.04,
        ..World::default()
    };
    let relative = Ask {
        relative: true,
        fail_on: None,
    };
    let slow = [1.0, 0.95, 1.0, 1.0];
    let (mut plain, mut ratios) = (0, 0);
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (a, b) = (
            world.runs("a", 5, &[1.0; 4], &mut rng),
            world.runs("b", 5, &slow, &mut rng),
        );
        plain += u32::from(
            goodput(&between(&a, &b, &Ask::default()), "bridge")
                .1
                .is_some(),
        );
        ratios +=
            u32::from(goodput(&between(&a, &b, &relative), "bridge").1 == Some(Change::Worse));
    }
    assert!(plain <= 12 && ratios >= 36, "{plain}, {ratios} of 40");
}

/// Only the scatter between runs counts: short runs, often enough, have verdicts.
#[test]
fn runs_of_few_blocks_count_as_runs() {
    let world = World {
        blocks: 2,
        sigma: 0.005,
        ..World::default()
    };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (a, b) = (
        world.runs("a", 5, &[1.0], &mut rng),
        world.runs("b", 5, &[0.9], &mut rng),
    );
    let report = between(&a, &b, &GATE);
    assert_eq!(goodput(&report, "veth").1, Some(Change::Worse));
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
}
