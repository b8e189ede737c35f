//! V7: intervals of series with a known mean hold it, or a warning is raised.

use hopyard::stats::{self, Synthetic};

use crate::bench::Bench;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) struct Coverage;

const PROMISE: f64 = 0.93;
/// Blocks from which the promise holds for series that remember; with fewer, dependence cannot be seen
/// reliably, and the product promises nothing about it.
const LEAST_BLOCKS: usize = 15;
const BLOCKS: [usize; 5] = [8, 10, 15, 20, 40];
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
                let c = stats::simulate_coverage(kind, n, runs, bench.seed);
                rows.push(row(what, n, &c, true, ""));
            }
            let remembering = RHOS.map(|rho| {
                let kind = Synthetic::Autoregressive {
                    mean: 100.0,
                    sd: 10.0,
                    rho,
                };
                (rho, stats::simulate_coverage(kind, n, runs, bench.seed))
            });
            let Some((rho, worst)) = remembering
                .iter()
                .min_by(|(_, a), (_, b)| a.promised().total_cmp(&b.promised()))
            else {
                continue;
            };
            let what = "AR(1), the worst of ρ 0 to 0.9";
            let worst_rho = format!(" at ρ {rho}");
            rows.push(row(what, n, worst, n >= LEAST_BLOCKS, &worst_rho));
        }
        Ok(rows)
    }
}

fn row(what: &str, n: usize, c: &stats::Coverage, promised: bool, at: &str) -> Row {
    let share = |part: u64| 100.0 * part as f64 / c.runs.max(1) as f64;
    Row {
        id: "V7",
        what: format!("{what}, {n} blocks, {} runs", c.runs),
        promised: if promised {
            "covered or warned ≥ 93 %".to_owned()
        } else {
            format!("nothing below {LEAST_BLOCKS} blocks")
        },
        seen: format!(
            "{:.1} %{at} (covered {:.1} %, warned {:.1} %)",
            share(c.covered_or_warned),
            share(c.covered),
            share(c.warned)
        ),
        verdict: if promised {
            Verdict::of(c.promised() >= PROMISE)
        } else {
            Verdict::Stated
        },
    }
}
