//! V7: intervals of series with a known mean hold it, or a warning is raised.

use hopyard::stats::{self, Synthetic};

use crate::bench::Bench;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) struct Coverage;

const PROMISE: f64 = 0.93;
const BLOCKS: [usize; 5] = [8, 10, 15, 20, 40];
/// Series of a run: a lone one, and many as in a run of several cells.
const TOGETHER: [usize; 2] = [1, 8];
const RHOS: [f64; 7] = [0.0, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9];

impl Experiment for Coverage {
    fn id(&self) -> &'static str {
        "V7"
    }

    fn title(&self) -> &'static str {
        "simulated series of known mean: interval holds it, or a warning is raised"
    }

    fn run(&self, bench: &Bench) -> Result<Vec<Row>, Failure> {
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
                rows.push(row(what, n, &c, ""));
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
                    rows.push(row(&what, n, c, &format!(" at ρ {rho}")));
                }
            }
        }
        Ok(rows)
    }
}

fn row(what: &str, n: usize, c: &stats::Coverage, at: &str) -> Row {
    let share = |part: u64| 100.0 * part as f64 / c.runs.max(1) as f64;
    Row {
        id: "V7",
        what: format!("{what}, {n} blocks, {} series", c.runs),
        promised: "covered or warned ≥ 93 %".to_owned(),
        seen: format!(
            "{:.1} %{at} (covered {:.1} %, warned {:.1} %)",
            share(c.covered_or_warned),
            share(c.covered),
            share(c.warned)
        ),
        verdict: Verdict::of(c.promised() >= PROMISE),
    }
}
