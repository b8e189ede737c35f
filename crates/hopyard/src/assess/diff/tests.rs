//! Pairs of runs made by hand, with answers known beforehand.

mod rates;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{Ask, Refused, diff};
use crate::assess::tests::{measured, push, run};
use crate::model::{Change, DiffReport, DiffWarningCode, MeasuredIn, Outcome};
use crate::stats::{Synthetic, Verdict};
use crate::store::Run;

const PATHS: [&str; 4] = ["veth", "bridge", "macvlan", "ipvlan"];
const GATE: Ask = Ask {
    relative: false,
    fail_on: Some(0.03),
};

/// A run whose cells have these speeds, in a world where single samples scatter by `sigma`.
fn made(id: &str, speeds: &[f64], blocks: u32, sigma: f64, rng: &mut ChaCha8Rng) -> Run {
    let names: Vec<String> = (0..speeds.len())
        .map(|at| {
            PATHS
                .get(at)
                .map_or_else(|| format!("path{at}"), |p| (*p).to_owned())
        })
        .collect();
    let mut made = run(&names.iter().map(String::as_str).collect::<Vec<_>>());
    made.header.id = id.to_owned();
    made.header.blocks_max = blocks;
    let scatter = Synthetic::LogNormal { median: 1.0, sigma };
    for block in 0..blocks {
        for (cell, speed) in speeds.iter().enumerate() {
            let noise = scatter.draw(2, rng);
            let mut m = measured((4e8 * speed * noise[0]) as u64);
            // A byte costs what it did, however many there are, but for scatter of its own.
            let net = 3e8 * noise[0] * noise[1];
            m.cpu.busy_ns = net + m.cpu.foreign_ns + m.cpu.controller_ns + m.cpu.baseline_ns;
            push(&mut made, block, 0, cell, Outcome::Measured(Box::new(m)));
        }
    }
    made
}

fn pair(a: &[f64], b: &[f64], sigma: f64, seed: u64) -> [Run; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    [
        made("a", a, 10, sigma, &mut rng),
        made("b", b, 10, sigma, &mut rng),
    ]
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
    let report = diff(&a, &b, &Ask::default()).unwrap();
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
    let report = diff(&a, &b, &Ask::default()).unwrap();
    let q = &report.cells[1].comparisons["goodput_bps"];
    assert_eq!((q.verdict, q.change), (Some(Verdict::Inconclusive), None));
    assert!(q.smallest_detectable.unwrap() > 0.03);
}

/// A machine that was 4 % slower the second time: every cell looks worse, no ratio to the base does.
#[test]
fn drift_of_the_machine_shows_in_figures_and_not_in_ratios() {
    let (mut plain, mut relative) = (0, 0);
    for seed in 0..60 {
        let mut runs = pair(&[1.0; 4], &[0.96; 4], 0.01, seed);
        runs.iter_mut().for_each(|r| r.header.margin = 0.0);
        let [a, b] = runs;
        plain += u32::from(alarms(&diff(&a, &b, &Ask::default()).unwrap()));
        let ask = Ask {
            relative: true,
            fail_on: None,
        };
        relative += u32::from(alarms(&diff(&a, &b, &ask).unwrap()));
    }
    assert_eq!(plain, 60);
    assert!(relative <= 6, "{relative} of 60");
}

#[test]
fn relative_compares_ratios_to_the_base() {
    let [a, b] = pair(&[1.0, 0.9, 1.0, 1.0], &[0.8, 0.8, 0.8, 0.8], 0.004, 2);
    let report = diff(
        &a,
        &b,
        &Ask {
            relative: true,
            fail_on: None,
        },
    )
    .unwrap();
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

/// The gate asks whether the loss is more than is let through, not whether there is one.
#[test]
fn the_gate_lets_small_losses_through() {
    let failed = |factor, seed| {
        let [a, b] = pair(&[1.0; 4], &[1.0, factor, 1.0, 1.0], 0.004, seed);
        let report = diff(&a, &b, &GATE).unwrap();
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
    // A loss of 2.5 % that is shown to be one, and let through.
    assert_eq!(failed(0.975, 2), (false, false, true, 0));
    assert_eq!(failed(0.95, 3), (true, true, true, 0));
    assert_eq!(
        failed(1.1, 4),
        (false, false, true, 0),
        "better is not worse"
    );
    // At the very bound an alarm is as rare as a false one.
    let at_the_bound = (0..100).filter(|seed| failed(0.97, *seed).0).count();
    assert!(at_the_bound <= 7, "{at_the_bound} of 100");
}

#[test]
fn a_gate_that_cannot_see_says_so() {
    let [a, b] = pair(&[1.0; 4], &[1.0; 4], 0.06, 1);
    let report = diff(&a, &b, &GATE).unwrap();
    let gate = report.gate.as_ref().unwrap();
    // One of eight may by chance be far enough on the better side.
    assert!((6..=8).contains(&gate.blind), "{gate:?}");
    assert_eq!((gate.undecided, gate.failed), (true, false));
    // Some four to ten times the spread that a gate at 3 % needs, squared.
    let needed = gate.blocks_needed.unwrap();
    assert!((40..2000).contains(&needed), "{needed}");
    // As noisy, but far better: no loss is there, and that is shown.
    let [a, b] = pair(&[1.0; 4], &[2.0; 4], 0.06, 1);
    let better = diff(&a, &b, &GATE).unwrap().gate.unwrap();
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
    let a = made("a", &[1.0, 1.0, 1.0], 10, 0.01, &mut rng);
    let mut b = made("b", &[1.0, 1.0], 10, 0.01, &mut rng);
    for sample in b.samples.iter_mut().filter(|s| s.cell == 1) {
        sample.outcome = Outcome::Failed {
            cause: "it broke".to_owned(),
        };
    }
    let report = diff(&a, &b, &GATE).unwrap();
    let left: Vec<_> = report
        .left_out
        .iter()
        .map(|l| (l.cell.path.as_str(), l.measured_in, l.cause.as_str()))
        .collect();
    assert_eq!(
        left,
        [
            ("bridge", MeasuredIn::A, "run B: it broke"),
            ("macvlan", MeasuredIn::A, "run B: not in its plan"),
        ]
    );
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.code == DiffWarningCode::GateMissing)
    );
    let other = diff(&b, &a, &Ask::default()).unwrap();
    assert!(
        other
            .left_out
            .iter()
            .all(|l| l.measured_in == MeasuredIn::B)
    );
}

/// A goodput of 0 has no ratio, nor has the cost of what did not arrive: they are left out aloud.
#[test]
fn a_figure_that_has_no_ratio_is_listed() {
    let [a, mut b] = pair(&[1.0; 2], &[1.0; 2], 0.01, 1);
    let Outcome::Measured(m) = &mut b.samples[0].outcome else {
        panic!("made so");
    };
    m.received.bytes = 0;
    let report = diff(&a, &b, &GATE).unwrap();
    let paths: Vec<&str> = report.cells.iter().map(|c| c.cell.path.as_str()).collect();
    assert_eq!(paths, ["bridge"]);
    for (left, name) in report
        .left_out
        .iter()
        .zip(["goodput_bps: ", "cpu_ns_per_byte: "])
    {
        assert_eq!(
            (left.cell.path.as_str(), left.measured_in),
            ("veth", MeasuredIn::Both)
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

#[test]
fn only_what_differs_is_told() {
    let [a, mut b] = pair(&[1.0; 2], &[1.0; 2], 0.01, 1);
    let same = diff(&a, &b, &Ask::default()).unwrap().differences;
    assert!(same.is_empty(), "{same:?}");
    let env = &mut b.header.environment;
    env.kernel_release = "7".into();
    env.mitigations
        .insert("retbleed".into(), "Vulnerable".into());
    env.sysctls.clear();
    b.header.window_ns = 100_000_000;
    let report = diff(&a, &b, &Ask::default()).unwrap();
    let told: Vec<_> = report
        .differences
        .iter()
        .map(|d| (&*d.what, &*d.a, &*d.b))
        .collect();
    assert_eq!(
        told,
        [
            ("kernel", "6", "7"),
            ("net.ipv4.tcp_congestion_control", "cubic", ""),
            ("mitigation of retbleed", "", "Vulnerable"),
            ("window", "200ms", "100ms"),
        ]
    );
}

/// A run of one cell, with its load, peer and axes as a test wants them.
fn of_cell(id: &str, change: impl FnOnce(&mut crate::model::Cell)) -> Run {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut run = made(id, &[1.0], 10, 0.005, &mut rng);
    change(&mut run.header.cells[0].cell);
    run
}

#[test]
fn runs_without_a_common_cell_are_told_what_differs_and_what_to_do() {
    let said = |a: &Run, b: &Run| diff(a, b, &Ask::default()).unwrap_err().to_string();
    let one = of_cell("a", |_| {});
    let four = of_cell("b", |cell| cell.axes.flows = 4);
    assert_eq!(
        said(&one, &four),
        "the runs have no cell in common: the nearest are veth/local/tcp_stream of A and of B, which differ in flows \
         (1 in A, 4 in B); measure both runs with the same value (--set flows=1), or compare the values in one run \
         (--set flows=1,4 --base flows=1)"
    );
    let bridge = of_cell("b", |cell| cell.path = "bridge".to_owned());
    assert_eq!(
        said(&one, &bridge),
        "the runs have no cell in common: the nearest are veth/local/tcp_stream of A and bridge/local/tcp_stream of B; \
         measure both runs with the same --paths, or compare the paths in one run (--paths veth,bridge --base veth)"
    );
    let rules = of_cell("b", |cell| {
        cell.axes.rules = Some(20);
        cell.axes.mtu_bytes = 9000;
    });
    assert_eq!(
        said(&one, &rules),
        "the runs have no cell in common: the nearest are veth/local/tcp_stream of A and of B, which differ in mtu \
         (1500 in A, 9000 in B) and rules (none in A, 20 in B); measure both runs with the same values (--set)"
    );
    let mut nothing = of_cell("b", |_| {});
    nothing.header.cells.clear();
    nothing.samples.clear();
    assert_eq!(
        said(&one, &nothing),
        "the runs have no cell in common: run B has no cells; measure both with the same plan"
    );
}

#[test]
fn cells_that_are_left_out_are_told_apart() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut a = made("a", &[1.0, 1.0, 1.0], 10, 0.005, &mut rng);
    for (at, flows) in [(1, 2), (2, 4)] {
        let cell = &mut a.header.cells[at].cell;
        cell.path = "veth".to_owned();
        cell.load = crate::model::LoadKind::UdpRr;
        cell.axes.flows = flows;
    }
    let b = made("b", &[1.0], 10, 0.005, &mut rng);
    let report = diff(&a, &b, &Ask::default()).unwrap();
    let text = crate::report::diff::render(&report, crate::report::Form::Text);
    for flows in ["2 flows", "4 flows"] {
        assert!(text.contains(flows), "{flows} is missing: {text}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let [a, b] = pair(&[1.0; 2], &[1.0; 2], 0.01, 1);
    let refused = |a: &Run, b: &Run, ask| diff(a, b, &ask).unwrap_err();
    assert_eq!(
        refused(&a, &a.clone(), Ask::default()),
        Refused::SameRun("a".to_owned())
    );
    let mut other = b.clone();
    other
        .header
        .cells
        .iter_mut()
        .for_each(|c| c.cell.path = format!("{}-2", c.cell.path));
    let why = refused(&a, &other, Ask::default()).to_string();
    assert!(
        why.contains("veth/local/tcp_stream of A and veth-2/local/tcp_stream of B"),
        "{why}"
    );
    let mut empty = b.clone();
    empty.samples.clear();
    assert!(matches!(
        refused(&a, &empty, Ask::default()),
        Refused::NoFigures(_)
    ));
    let mut short = b.clone();
    short.samples.retain(|s| s.block < 4);
    let why = refused(&a, &short, GATE).to_string();
    assert!(
        why.contains("run `b` has 4 whole blocks of at least 8"),
        "{why}"
    );
    let report = diff(&a, &short, &Ask::default()).unwrap();
    assert!(report.quick_look && !alarms(&report));
    assert!(
        report.cells[0]
            .comparisons
            .values()
            .all(|q| q.verdict.is_none())
    );
    let mut single = a.clone();
    single.header.id = "c".into();
    single.header.cells.truncate(1);
    single.samples.retain(|s| s.cell == 0);
    let relative = Ask {
        relative: true,
        fail_on: None,
    };
    assert!(matches!(
        refused(&a, &single, relative),
        Refused::NoFigures(_)
    ));
}
