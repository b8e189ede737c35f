//! Runs made by hand, with answers known beforehand.

mod facts;
mod gates;
mod rates;
mod refused;
mod repeats;

use std::slice::from_ref;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{Ask, Refused, diff};
use crate::model::stored::Run;
use crate::model::{Change, DiffReport, DiffWarningCode, MeasuredIn, Outcome};
use crate::stats::{Verdict, standard_normal};
use crate::testing::{measured, push, run};

const PATHS: [&str; 4] = ["veth", "bridge", "macvlan", "ipvlan"];
const GATE: Ask = Ask {
    relative: false,
    fail_on: Some(0.03),
};

/// How much figures scatter: standard deviations on the log scale.
#[derive(Debug, Clone, Copy, Default)]
struct World {
    blocks: u32,
    /// Between the blocks of a run.
    sigma: f64,
    /// How much of a block's deviation remains in the next one.
    alike: f64,
    /// Between runs, each cell separately.
    between: f64,
    /// Between runs, all cells alike.
    machine: f64,
}

impl World {
    /// A run whose cells have these speeds.
    fn run(self, id: &str, speeds: &[f64], rng: &mut ChaCha8Rng) -> Run {
        let name = |at: usize| {
            PATHS
                .get(at)
                .map_or_else(|| format!("path{at}"), |p| (*p).to_owned())
        };
        let names: Vec<String> = (0..speeds.len()).map(name).collect();
        let mut made = run(&names.iter().map(String::as_str).collect::<Vec<_>>());
        made.header.id = id.to_owned();
        made.header.blocks_max = self.blocks;
        let machine = self.machine * standard_normal(rng);
        let own: Vec<f64> = speeds
            .iter()
            .map(|speed| speed.ln() + machine + self.between * standard_normal(rng))
            .collect();
        let fresh = (1.0 - self.alike * self.alike).sqrt();
        let mut state = vec![0.0; speeds.len()];
        for block in 0..self.blocks {
            for (cell, own) in own.iter().enumerate() {
                let step = if block == 0 { 1.0 } else { fresh };
                state[cell] = self.alike * state[cell] + step * self.sigma * standard_normal(rng);
                let noise = state[cell].exp();
                let mut m = measured((4e8 * own.exp() * noise) as u64);
                // The cost of a byte does not depend on the number of bytes, but has scatter of its own.
                let net = 3e8 * noise * (self.sigma * standard_normal(rng)).exp();
                m.cpu.busy_ns = net + m.cpu.foreign_ns + m.cpu.controller_ns + m.cpu.baseline_ns;
                push(&mut made, block, 0, cell, Outcome::Measured(Box::new(m)));
            }
        }
        made
    }

    /// Several runs of one thing.
    fn runs(self, name: &str, count: usize, speeds: &[f64], rng: &mut ChaCha8Rng) -> Vec<Run> {
        let ids = (1..=count).map(|nth| format!("{name}{nth}"));
        ids.map(|id| self.run(&id, speeds, rng)).collect()
    }
}

/// A run of 10 blocks on a machine where only blocks scatter.
fn made(id: &str, speeds: &[f64], sigma: f64, rng: &mut ChaCha8Rng) -> Run {
    let world = World {
        blocks: 10,
        sigma,
        ..World::default()
    };
    world.run(id, speeds, rng)
}

/// Five such runs of each side.
fn pair(a: &[f64], b: &[f64], sigma: f64, seed: u64) -> [Vec<Run>; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let world = World {
        blocks: 10,
        sigma,
        ..World::default()
    };
    [
        world.runs("a", 5, a, &mut rng),
        world.runs("b", 5, b, &mut rng),
    ]
}

/// One such run of each side.
fn singles(a: &[f64], b: &[f64], sigma: f64, seed: u64) -> [Run; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    [made("a", a, sigma, &mut rng), made("b", b, sigma, &mut rng)]
}

fn between(a: &[Run], b: &[Run], ask: &Ask) -> DiffReport {
    diff(a, b, &[], ask).unwrap()
}

fn of_two(a: &Run, b: &Run, ask: &Ask) -> Result<DiffReport, Refused> {
    diff(from_ref(a), from_ref(b), &[], ask)
}

fn goodput(report: &DiffReport, path: &str) -> (Option<Verdict>, Option<Change>, f64) {
    let cell = report.cells.iter().find(|c| c.cell.path == path).unwrap();
    let q = &cell.comparisons["goodput_bps"];
    (q.verdict, q.change, q.ratio.value)
}

fn alarms(report: &DiffReport) -> bool {
    let mut all = report.cells.iter().flat_map(|c| c.comparisons.values());
    all.any(|q| q.verdict == Some(Verdict::Different))
}

#[test]
fn three_verdicts() {
    let [a, b] = pair(&[1.0; 4], &[1.0, 0.9, 1.1, 1.0], 0.005, 1);
    let report = between(&a, &b, &Ask::default());
    assert_eq!(report.cells.len(), 4);
    assert_eq!(goodput(&report, "veth").0, Some(Verdict::Equivalent));
    let (verdict, change, ratio) = goodput(&report, "bridge");
    assert_eq!(
        (verdict, change),
        (Some(Verdict::Different), Some(Change::Worse))
    );
    assert!((ratio - 0.9).abs() < 0.01, "B over A: {ratio}");
    assert_eq!(goodput(&report, "macvlan").1, Some(Change::Better));
    let cost = &report.cells[1].comparisons["cpu_ns_per_byte"];
    assert_eq!(
        cost.change,
        Some(Change::Worse),
        "a tenth fewer bytes for the same CPU"
    );
    assert!(report.gate.is_none() && cost.trips_gate.is_none());
    let [a, b] = pair(&[1.0; 4], &[1.0, 1.02, 1.0, 1.0], 0.05, 1);
    let report = between(&a, &b, &Ask::default());
    let q = &report.cells[1].comparisons["goodput_bps"];
    assert_eq!((q.verdict, q.change), (Some(Verdict::Inconclusive), None));
    assert!(q.smallest_detectable.unwrap() > 0.03);
}

#[test]
fn relative_compares_ratios_to_the_base() {
    let [a, b] = pair(&[1.0, 0.9, 1.0, 1.0], &[0.8, 0.8, 0.8, 0.8], 0.004, 2);
    let relative = Ask {
        relative: true,
        fail_on: None,
    };
    let report = between(&a, &b, &relative);
    let bridge = &report.cells[0];
    assert_eq!(
        (bridge.cell.path.as_str(), bridge.base.as_deref()),
        ("bridge", Some("veth"))
    );
    let q = &bridge.comparisons["goodput_bps"];
    assert!((q.a.value - 0.9).abs() < 0.01 && (q.b.value - 1.0).abs() < 0.01);
    assert_eq!(goodput(&report, "macvlan").0, Some(Verdict::Equivalent));
    let base = &report.left_out[0];
    assert_eq!(
        (base.cell.path.as_str(), base.measured_in),
        ("veth", MeasuredIn::Both)
    );
    assert!(base.cause.contains("is one"), "{}", base.cause);
}

/// The gate asks whether the loss is more than allowed, not whether there is one.
#[test]
fn the_gate_lets_small_losses_through() {
    let failed = |factor, seed| {
        let [a, b] = pair(&[1.0; 4], &[1.0, factor, 1.0, 1.0], 0.004, seed);
        let report = between(&a, &b, &GATE);
        let gate = report.gate.clone().unwrap();
        let q = &report.cells[1].comparisons["goodput_bps"];
        (
            gate.failed,
            q.trips_gate.unwrap(),
            q.verdict == Some(Verdict::Different),
            gate.blind,
        )
    };
    assert_eq!(failed(1.0, 1), (false, false, false, 0));
    // A loss of 2.5 % that is shown, and allowed.
    assert_eq!(failed(0.975, 2), (false, false, true, 0));
    assert_eq!(failed(0.95, 3), (true, true, true, 0));
    assert_eq!(
        failed(1.1, 4),
        (false, false, true, 0),
        "better is not worse"
    );
    // More than the allowed loss was seen, but by chance it may be less: that is no pass.
    let [a, b] = pair(&[1.0; 4], &[1.0, 0.966, 1.0, 1.0], 0.012, 5);
    let gate = between(&a, &b, &GATE).gate.unwrap();
    assert!(!gate.failed && gate.undecided && gate.blind > 0, "{gate:?}");
    // At the bound itself, an alarm is as rare as a false one.
    let at_the_bound = (0..100).filter(|seed| failed(0.97, *seed).0).count();
    assert!(at_the_bound <= 7, "{at_the_bound} of 100");
}

#[test]
fn a_gate_that_cannot_see_says_so() {
    let [a, b] = pair(&[1.0; 4], &[1.0; 4], 0.2, 1);
    let report = between(&a, &b, &GATE);
    let gate = report.gate.as_ref().unwrap();
    // By chance, one of eight may be far enough on the better side.
    assert!((6..=8).contains(&gate.blind), "{gate:?}");
    assert_eq!((gate.undecided, gate.failed), (true, false));
    // Means of ten blocks scatter by 6.3 %, so some 120 runs of each are enough, and more if these happen to scatter
    // more.
    let needed = gate.runs_needed.unwrap();
    assert!((60..500).contains(&needed), "{needed}");
    assert_eq!(gate.blocks_needed, None);
    // As noisy, but far better: it is shown that there is no loss.
    let [a, b] = pair(&[1.0; 4], &[2.0; 4], 0.2, 1);
    let better = between(&a, &b, &GATE).gate.unwrap();
    assert!(
        !better.undecided && !better.failed && better.blind < 8,
        "{better:?}"
    );
    let warned = |code| report.warnings.iter().any(|w| w.code == code);
    assert!(warned(DiffWarningCode::GateBlind) && !warned(DiffWarningCode::GateMissing));
}

#[test]
fn what_is_in_one_run_only_is_listed() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let a = made("a", &[1.0, 1.0, 1.0], 0.01, &mut rng);
    let mut b = made("b", &[1.0, 1.0], 0.01, &mut rng);
    for sample in b.samples.iter_mut().filter(|s| s.cell == 1) {
        sample.outcome = Outcome::Failed {
            cause: "it broke".to_owned(),
        };
    }
    let report = of_two(&a, &b, &GATE).unwrap();
    let left: Vec<_> = report
        .left_out
        .iter()
        .map(|l| (l.cell.path.as_str(), l.measured_in, l.cause.as_str()))
        .collect();
    assert_eq!(
        left,
        [
            ("bridge", MeasuredIn::A, "B: it broke"),
            ("macvlan", MeasuredIn::A, "B: not in its plan"),
        ]
    );
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.code == DiffWarningCode::GateMissing)
    );
    // What B lost may be worse by any factor.
    let gate = report.gate.unwrap();
    assert!(gate.undecided && !gate.failed, "{gate:?}");
    let other = of_two(&b, &a, &Ask::default()).unwrap();
    assert!(
        other
            .left_out
            .iter()
            .all(|l| l.measured_in == MeasuredIn::B)
    );
}

/// A goodput of 0 has no ratio, and neither has the cost of what did not arrive: both are listed as left out.
#[test]
fn a_figure_that_has_no_ratio_is_listed() {
    let [a, mut b] = pair(&[1.0; 2], &[1.0; 2], 0.01, 1);
    for sample in b.iter_mut().flat_map(|run| &mut run.samples) {
        if let (0, Outcome::Measured(m)) = (sample.cell, &mut sample.outcome) {
            m.received.bytes = 0;
        }
    }
    let report = between(&a, &b, &GATE);
    let paths: Vec<&str> = report.cells.iter().map(|c| c.cell.path.as_str()).collect();
    assert_eq!(paths, ["bridge"]);
    for (left, (name, measured_in)) in report.left_out.iter().zip([
        ("goodput_bps: ", MeasuredIn::Both),
        // Of nothing that arrived there is no cost.
        ("cpu_ns_per_byte: ", MeasuredIn::A),
    ]) {
        assert_eq!(
            (left.cell.path.as_str(), left.measured_in),
            ("veth", measured_in)
        );
        assert!(left.cause.starts_with(name), "{}", left.cause);
    }
    assert_eq!(report.left_out.len(), 2);
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.code == DiffWarningCode::GateMissing)
    );
}
