//! CPU time that is known only between two bounds: which figures disappear, and which stay.

use crate::model::stored::Run;
use crate::model::{Axes, CpuUse, EndsOn, MachineUse, Measurement, Outcome, Peer, WarningCode};
use crate::stats::Verdict;
use crate::testing::{compared, compared_over, measured, push, run};
use crate::{assess, curves, diff, observations, settled};

/// Busy time, steal and the workers' own time of four samples of a run with bursts of steal, ms.
const SEEN_MS: [(f64, f64, f64); 4] = [
    (16.0, 150.0, 60.9),
    (42.7, 120.0, 97.1),
    (-42.1, 210.0, 88.0),
    (-166.7, 320.0, 80.0),
];

fn measurement(run: &mut Run, at: usize) -> &mut Measurement {
    match &mut run.samples[at].outcome {
        Outcome::Measured(m) => m,
        Outcome::Failed { cause } => panic!("{cause}"),
    }
}

/// In some samples, the hypervisor takes 50 ms from CPUs that were woken.
fn steal(run: &mut Run, samples: impl IntoIterator<Item = usize>) {
    for at in samples {
        let cpu = &mut measurement(run, at).cpu;
        cpu.steal_ns = 0.5e8;
        cpu.busy_ns -= 0.5e8;
    }
}

fn warning(run: &Run) -> Option<String> {
    let warnings = assess(run).warnings.into_iter();
    let mut own = warnings.filter(|w| w.code == WarningCode::CpuUnknown);
    own.next().map(|warning| warning.message)
}

#[test]
fn readings_that_cannot_be_are_no_figures() {
    let mut run = compared(1.0);
    for (at, (busy, steal, workers)) in SEEN_MS.into_iter().enumerate() {
        let cpu = &mut measurement(&mut run, at).cpu;
        cpu.busy_ns = busy * 1e6;
        cpu.steal_ns = steal * 1e6;
        cpu.workers_ns = Some(workers * 1e6);
    }
    // Less than the load's own use, without any steal.
    measurement(&mut run, 4).cpu.workers_ns = Some(3.5e8);
    let report = assess(&run);
    for (cell, missing) in report.cells.iter().zip([3, 2]) {
        for (name, missing) in [
            ("goodput_bps", 0),
            ("cpu_ns_per_byte", missing),
            ("busy_cores", missing),
            ("efficiency_bps_per_core", missing),
            ("normalized_bps_per_cpu_percent", missing),
        ] {
            let n = cell.estimates[name].n;
            assert_eq!(n, 8 - missing, "{} {name}", cell.path);
        }
        assert!((cell.estimates["busy_cores"].value - 1.5).abs() < 1e-9);
    }
    let message = warning(&run).unwrap();
    assert!(
        message.starts_with("5 of 16 samples lack CPU figures"),
        "{message}"
    );
    assert!(
        message.contains("in 4 the hypervisor") && message.contains("in 1 the load"),
        "{message}"
    );
    assert_eq!(warning(&compared(1.0)), None);
}

#[test]
fn a_figure_of_one_end_that_is_missing_is_told() {
    let mut run = compared(1.0);
    for at in 0..16 {
        let m = measurement(&mut run, at);
        m.machines = [EndsOn::Client, EndsOn::Server]
            .map(|ends| MachineUse {
                ends,
                cpu: Some(CpuUse {
                    busy_ns: m.cpu.busy_ns / 2.0,
                    ..m.cpu
                }),
                unknown: None,
            })
            .into();
    }
    assert_eq!(warning(&run), None);
    // As much as others used on the client's machine, in a sample of each cell and one more of the second.
    for at in [0, 1, 3] {
        let cpu = measurement(&mut run, at).machines[0].cpu.as_mut().unwrap();
        cpu.foreign_ns = cpu.busy_ns;
    }
    let report = assess(&run);
    for (cell, missing) in report.cells.iter().zip([1, 2]) {
        for (name, missing) in [
            ("cpu_ns_per_byte", 0),
            ("client_cpu_ns_per_byte", missing),
            ("client_busy_cores", missing),
            ("server_cpu_ns_per_byte", 0),
        ] {
            let n = cell.estimates[name].n;
            assert_eq!(n, 8 - missing, "{} {name}", cell.path);
        }
    }
    let message = warning(&run).unwrap();
    assert!(
        message.starts_with("3 of 16 samples lack CPU figures")
            && message.contains("in 3 those of one end"),
        "{message}"
    );
}

#[test]
fn the_bounds_are_held_against_what_the_run_is_after() {
    let mut run = compared_over(8, 1.0);
    // 50 of about 350 ms.
    steal(&mut run, 0..16);
    let cost = |run: &Run| {
        assess(run).cells[0]
            .estimates
            .get("cpu_ns_per_byte")
            .map(|e| e.n)
    };
    assert_eq!(cost(&run), None);
    (run.header.half_width, run.header.margin) = (0.3, 0.2);
    assert_eq!(cost(&run), Some(8));
    // The middle: 275 of 300 ms.
    assert!((assess(&run).cells[0].estimates["busy_cores"].value - 1.375).abs() < 1e-9);
    run.header.margin = 0.1;
    assert_eq!(cost(&run), None);
    // A run without a width, which older versions allowed.
    (run.header.half_width, run.header.margin) = (0.0, 0.2);
    assert_eq!(cost(&run), Some(8));
}

/// Of a cost that is known in too few blocks, or in none, a gate cannot say that it is no worse.
#[test]
fn a_gate_has_not_passed_where_a_cost_is_unknown() {
    let mut run = compared_over(10, 1.0);
    run.header.fail_on = Some(0.2);
    let gate = |run: &Run| assess(run).gate.unwrap();
    let known = gate(&run);
    assert!(!known.undecided && known.blind == 0, "{known:?}");
    steal(&mut run, [0, 2, 5]);
    // Worse by half, in those blocks that are known.
    for at in (0..20).filter(|at| at % 2 == 1) {
        measurement(&mut run, at).cpu.busy_ns *= 1.5;
    }
    let few = gate(&run);
    assert!(few.undecided && !few.failed, "{few:?}");
    assert_eq!((few.comparisons, few.blind), (known.comparisons, 1));
    let report = assess(&run);
    assert_eq!(
        report.cells[1].verdicts["cpu_ns_per_byte"].trips_gate,
        Some(false)
    );
    steal(&mut run, (0..20).filter(|at| ![0, 2, 5].contains(at)));
    let none = gate(&run);
    assert!(none.undecided && !none.failed, "{none:?}");
    assert_eq!((none.comparisons, none.blind), (known.comparisons, 1));
}

#[test]
fn a_gate_has_not_passed_where_a_path_could_not_be_built() {
    let mut run = compared_over(10, 1.0);
    run.header.fail_on = Some(0.2);
    let known = assess(&run).gate.unwrap();
    run.header.cells[1].unsupported = Some("ovs-vswitchd did not start".to_owned());
    run.samples.retain(|sample| sample.cell == 0);
    let gate = assess(&run).gate.unwrap();
    assert!(gate.undecided && !gate.failed, "{gate:?}");
    assert_eq!(gate.blind, gate.comparisons);
    assert!(0 < gate.blind && gate.blind <= known.comparisons);
}

#[test]
fn pairs_without_cpu_time_are_no_pairs() {
    let mut run = compared_over(10, 0.9);
    let verdict = |run: &Run, name: &str| {
        let verdicts = &assess(run).cells[1].verdicts;
        verdicts.get(name).map(|v| (v.ratio.n, v.verdict))
    };
    let different = Some(Verdict::Different);
    assert_eq!(verdict(&run, "cpu_ns_per_byte"), Some((10, different)));
    // One cell loses two blocks, the other a third one.
    steal(&mut run, [0, 2]);
    assert_eq!(verdict(&run, "cpu_ns_per_byte"), Some((8, different)));
    steal(&mut run, [5]);
    // Seven blocks are too few for a verdict, however many blocks the run has.
    assert_eq!(verdict(&run, "cpu_ns_per_byte"), Some((7, None)));
    assert_eq!(verdict(&run, "goodput_bps"), Some((10, different)));
    steal(&mut run, (0..20).filter(|at| ![0, 2, 5].contains(at)));
    assert_eq!(verdict(&run, "cpu_ns_per_byte"), None);
    assert_eq!(verdict(&run, "goodput_bps"), Some((10, different)));
}

#[test]
fn a_cost_that_nobody_knows_is_not_settled() {
    let mut run = compared_over(15, 1.0);
    let is_settled = |run: &Run| settled(&run.header, &run.samples.iter().collect::<Vec<_>>());
    assert!(is_settled(&run));
    steal(&mut run, 0..29);
    assert!(!is_settled(&run));
}

#[test]
fn tables_curves_and_comparisons_go_without() {
    let mut run = run(&["veth"; 3]);
    for (cell, planned) in run.header.cells.iter_mut().enumerate() {
        let load = planned.cell.load;
        planned.cell.axes = Axes::default().for_cell(load, Peer::Local, &[]);
        planned.cell.axes.flows = 1 << cell;
    }
    for block in 0..10 {
        for cell in 0..3 {
            let bytes = 4e8 * (1.0 + 0.001 * f64::from(block)) / (1.0 + f64::from(cell));
            let outcome = Outcome::Measured(Box::new(measured(bytes as u64)));
            push(&mut run, block, 0, cell as usize, outcome);
        }
    }
    let quiet = run.clone();
    // Cell 1 of block 4, and cell 2 of block 6.
    steal(&mut run, [13, 20]);
    let table = observations(&run);
    let without: Vec<(u32, u32)> = table
        .iter()
        .filter(|row| !row.values.contains_key("cpu_ns_per_byte"))
        .map(|row| (row.block, row.cell.axes.flows))
        .collect();
    assert_eq!(without, [(4, 2), (6, 4)]);
    assert!(
        table
            .iter()
            .all(|row| row.values.contains_key("goodput_bps"))
    );
    // A block in which one cell has no cost is left out of the curve of costs.
    let [own, clean] = [&run, &quiet].map(|run| {
        let lines = curves::lines(run, "cpu_ns_per_byte");
        (lines.len(), lines[0].figure.clone())
    });
    assert_eq!((own.0, clean.0), (1, 1));
    let report = assess(&run);
    assert_eq!(
        report.curves[0].quantities["cpu_ns_per_byte"].estimates[0].n,
        8
    );
    assert_eq!(
        report.curves[0].quantities["goodput_bps"].estimates[0].n,
        10
    );
    // With two runs, each has its own warning.
    let mut before = quiet;
    before.header.id = "before".to_owned();
    let [before, run] = [[before], [run]];
    let compared = diff::diff(&before, &run, &[], &diff::Ask::default()).unwrap();
    let [a, b] = ["a", "b"].map(|_| &compared.cells[1].comparisons["cpu_ns_per_byte"]);
    assert_eq!((a.a.n, b.b.n), (10, 9));
}
