//! V7: intervals of series with a known mean contain it, or there is a warning.

use hopyard::assess::{Bursts, TurnsSetup, simulate_turns};
use hopyard::stats::{self, Synthetic};

use crate::bench::Bench;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V7",
    title: "simulated series of known mean: interval holds it, or a warning is raised",
    only_when_named: false,
    run,
};

const PROMISE: f64 = 0.93;
const BLOCKS: [usize; 5] = [8, 10, 15, 20, 40];
/// Series of a run: a single one, and many as in a run of several cells.
const TOGETHER: [usize; 2] = [1, 8];
const RHOS: [f64; 7] = [0.0, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9];

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let runs = bench.pick(5000, 1000);
    let mut rows = Vec::new();
    for n in BLOCKS {
        for (what, kind) in [
            (
                "normal",
                Synthetic::Normal {
                    mean: 100.0,
                    sd: 10.0,
                },
            ),
            (
                "lognormal, σ 0.5",
                Synthetic::LogNormal {
                    median: 100.0,
                    sigma: 0.5,
                },
            ),
        ] {
            let c = stats::simulate_coverage(kind, n, 1, runs, bench.seed);
            // What is independent needs no warning, so a warning is no excuse.
            rows.push(row(what, n, &c, Promise::Covered, ""));
        }
        for series in TOGETHER {
            let remembering = RHOS.map(|rho| {
                let kind = Synthetic::Autoregressive {
                    mean: 100.0,
                    sd: 10.0,
                    rho,
                };
                let runs = runs / series;
                (
                    rho,
                    stats::simulate_coverage(kind, n, series, runs, bench.seed),
                )
            });
            let worst = |(_, c): &&(f64, stats::Coverage)| (c.promised() * 1e6) as u64;
            if let Some((rho, c)) = remembering.iter().min_by_key(worst) {
                let what = format!("AR(1), {series} together, the worst of ρ 0 to 0.9");
                // A single series of so few blocks is always warned of.
                let promise = match (series, n) {
                    (1, ..15) => Promise::Nothing,
                    _ => Promise::CoveredOrWarned,
                };
                rows.push(row(&what, n, c, promise, &format!(" at ρ {rho}")));
            }
        }
    }
    rows.extend(generations(bench));
    Ok(rows)
}

/// Two cells by turns: how much generations differ (with 3 % from turn to turn), and what disturbs them.
const BETWEEN: [f64; 3] = [0.0, 0.01, 0.05];
const TURN_RHOS: [f64; 3] = [0.0, 0.5, 0.9];
/// Rounds of a generation, and turns of the base in each: two cells, and a default plan of a dozen.
const SHAPES: [(u32, u32); 2] = [(8, 1), (4, 3)];
const QUIET: Bursts = Bursts {
    share: 0.0,
    hit: 0.5,
    length: 1.0,
    noticed: 0.0,
    slowdown: 0.0,
    shared: 0.0,
};
const DISTURBED: Bursts = Bursts {
    share: 0.5,
    length: 6.0,
    slowdown: 0.1,
    shared: 0.05,
    ..QUIET
};
const DISTURBANCES: [(&str, Bursts); 5] = [
    ("undisturbed", QUIET),
    ("bursts in half of the rounds, all noticed", DISTURBED),
    (
        "bursts in half of the rounds, hits under 5 % not noticed",
        Bursts {
            noticed: 0.5,
            ..DISTURBED
        },
    ),
    (
        "bursts in half of the rounds, none noticed",
        Bursts {
            noticed: f64::INFINITY,
            ..DISTURBED
        },
    ),
    (
        "bursts in nine of ten rounds, nine of ten turns hit, all noticed",
        Bursts {
            share: 0.9,
            hit: 0.9,
            ..DISTURBED
        },
    ),
];

/// The worst of all spreads and correlations, for each disturbance and number of generations.
fn generations(bench: &Bench) -> Vec<Row> {
    let runs = bench.pick(5000, 500);
    let mut rows = Vec::new();
    for (disturbance, bursts) in DISTURBANCES {
        for generations in [8, 20] {
            for (rounds, base_turns) in SHAPES {
                let setup = TurnsSetup {
                    generations,
                    rounds,
                    base_turns,
                    log_ratio: -0.05,
                    between: 0.0,
                    within: 0.03,
                    rho: 0.0,
                    bursts,
                };
                let machines = BETWEEN.iter().flat_map(|&between| {
                    TURN_RHOS.map(|rho| TurnsSetup {
                        between,
                        rho,
                        ..setup
                    })
                });
                let tried = machines.map(|setup| (setup, simulate_turns(setup, runs, bench.seed)));
                if let Some((worst, c)) = tried.min_by_key(|(_, c)| c.covered) {
                    rows.push(turns_row(disturbance, worst, c));
                }
            }
        }
    }
    rows
}

/// Only coverage counts: a single pair of few generations always has a warning.
fn turns_row(disturbance: &str, worst: TurnsSetup, c: stats::Coverage) -> Row {
    let covered = c.covered as f64 / c.runs.max(1) as f64;
    let TurnsSetup {
        generations,
        rounds,
        base_turns,
        ..
    } = worst;
    Row {
        id: "V7",
        what: format!(
            "turns, {disturbance}: {generations} generations of {rounds} rounds with {base_turns} turns of the base, {} runs \
             each, the worst of nine machines",
            c.runs
        ),
        promised: "covered ≥ 93 %".to_owned(),
        seen: format!(
            "{:.1} % with {:.0} % between generations, ρ {} between turns",
            100.0 * covered,
            100.0 * worst.between,
            worst.rho
        ),
        verdict: Verdict::of(covered >= PROMISE),
    }
}

/// What is promised of a row.
#[derive(Debug, Clone, Copy)]
enum Promise {
    Covered,
    CoveredOrWarned,
    Nothing,
}

fn row(what: &str, n: usize, c: &stats::Coverage, promise: Promise, at: &str) -> Row {
    let share = |part: u64| 100.0 * part as f64 / c.runs.max(1) as f64;
    Row {
        id: "V7",
        what: format!("{what}, {n} blocks, {} series", c.runs),
        promised: match promise {
            Promise::Covered => "covered ≥ 93 %".to_owned(),
            Promise::CoveredOrWarned => "covered or warned ≥ 93 %".to_owned(),
            Promise::Nothing => String::new(),
        },
        seen: format!(
            "{:.1} %{at} (covered {:.1} %, warned {:.1} %)",
            share(c.covered_or_warned),
            share(c.covered),
            share(c.warned)
        ),
        verdict: match promise {
            Promise::Covered => Verdict::of(share(c.covered) >= 100.0 * PROMISE),
            Promise::CoveredOrWarned => Verdict::of(c.promised() >= PROMISE),
            Promise::Nothing => Verdict::Stated,
        },
    }
}
