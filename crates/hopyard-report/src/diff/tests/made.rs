//! A synthetic comparison whose parts differ in everything that a report distinguishes.

use crate::fixture::{estimate, run};
use crate::model::{
    Axes, Cell, CellDiff, Change, DiffReport, DiffWarning, DiffWarningCode, Difference, Gate,
    IntervalFrom, LeftOut, LoadKind, MeasuredIn, Peer, QuantityDiff, RunSummary, WarningCode,
};
use crate::stats::Verdict;

pub(super) fn cell(path: &str, load: LoadKind, size: Option<u32>) -> Cell {
    let mut axes = Axes::default().for_cell(load, Peer::Local, &[]);
    axes.message_size_bytes = size;
    Cell {
        path: path.to_owned(),
        peer: Peer::Local,
        load,
        axes,
    }
}

/// A quantity with `value` in A and this ratio; it differs if the ratio is beyond the half-width.
pub(super) fn quantity(value: f64, ratio: f64, half: f64, more: bool) -> QuantityDiff {
    let off = (ratio - 1.0).abs();
    let verdict = match off {
        off if off > half => Verdict::Different,
        off if off + half < 0.02 => Verdict::Equivalent,
        _ => Verdict::Inconclusive,
    };
    let change = if (ratio > 1.0) == more {
        Change::Better
    } else {
        Change::Worse
    };
    QuantityDiff {
        a: estimate(value, half),
        b: estimate(value * ratio, half),
        runs_a: 3,
        runs_b: 3,
        ratio: estimate(ratio, half),
        interval_from: IntervalFrom::Runs,
        run_scatter: Some(half / 2.0),
        verdict: Some(verdict),
        change: (verdict == Verdict::Different).then_some(change),
        smallest_detectable: Some(1.5 * half),
        trips_gate: Some(change == Change::Worse && off > 0.03 + half),
        gate_catches_ratio: Some(0.03 + 1.4 * half),
    }
}

pub(super) fn rr(path: &str, speed: f64, cost: f64, half: f64) -> CellDiff {
    CellDiff {
        cell: cell(path, LoadKind::TcpRr, None),
        base: None,
        comparisons: [
            (
                "transactions_per_s".to_owned(),
                quantity(13_120.0, speed, half, true),
            ),
            (
                "cpu_ns_per_transaction".to_owned(),
                quantity(62_900.0, cost, half, false),
            ),
            (
                "latency_p99_ns".to_owned(),
                quantity(131_800.0, cost, half, false),
            ),
        ]
        .into(),
    }
}

pub(super) fn stream(size: u32, speed: f64, half: f64) -> CellDiff {
    CellDiff {
        cell: cell("bridge", LoadKind::TcpStream, Some(size)),
        base: None,
        comparisons: [
            (
                "goodput_bps".to_owned(),
                quantity(21.4e9, speed, half, true),
            ),
            (
                "cpu_ns_per_byte".to_owned(),
                quantity(0.612, 1.0, half, false),
            ),
        ]
        .into(),
    }
}

/// Three runs on one day, an hour apart.
pub(super) fn runs(day: u32) -> Vec<RunSummary> {
    let nth = |hour: u32| {
        let mut own = run().run;
        own.id = format!("202603{day:02}T{hour}1500Z-paths");
        own.started = format!("2026-03-{day:02}T{hour}:15:00Z");
        own
    };
    (10..13).map(nth).collect()
}

pub(super) fn report() -> DiffReport {
    let difference = |what: &str, a: &str, b: &str| Difference {
        what: what.to_owned(),
        a: a.to_owned(),
        b: b.to_owned(),
    };
    DiffReport {
        schema: "hopyard/diff/2".to_owned(),
        a: runs(1),
        b: runs(2),
        repeats: Vec::new(),
        differences: vec![
            difference("kernel", "6.18.5", "6.19.0-rc1+"),
            difference(
                "mitigation of retbleed",
                "",
                "Mitigation: untrained return thunk; SMT enabled with STIBP protection",
            ),
        ],
        relative: false,
        confidence: 0.95,
        margin: 0.02,
        cells: vec![
            stream(64, 1.0, 0.012),
            stream(16384, 0.91, 0.021),
            rr("veth", 1.002, 1.11, 0.011),
            rr("bridge", 0.982, 0.95, 0.031),
        ],
        left_out: vec![LeftOut {
            cell: cell("netkit", LoadKind::TcpRr, None),
            measured_in: MeasuredIn::B,
            cause: "A: not in its plan".to_owned(),
        }],
        gate: Some(Gate {
            fail_on_ratio: 0.03,
            failed: true,
            comparisons: 10,
            tripped: 3,
            blind: 3,
            incomplete: 0,
            undecided: false,
            blocks_needed: None,
            runs_needed: None,
        }),
        warnings: vec![DiffWarning {
            code: DiffWarningCode::OnlyB(WarningCode::DebugKernel),
            message: "In B only: the kernel carries CONFIG_PROVE_LOCKING, which slows it down."
                .to_owned(),
        }],
    }
}
