//! V1: a wire shaped to a rate carries the payload of that rate.

use hopyard::model::{LoadKind, Peer, Rate};
use hopyard::stats;
use rand::seq::SliceRandom;

use crate::bench::{Bench, measure};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V1",
    title: "goodput over a wire shaped by a token bucket, TCP, MTU 1500",
    only_when_named: false,
    run,
};

const PATHS: [&str; 3] = ["native", "veth-route", "macvlan"];
const RATES_BPS: [u64; 2] = [100_000_000, 1_000_000_000];
/// TCP payload of a full segment with timestamps (RFC 7323), and its Ethernet frame without FCS, which
/// is what the token bucket counts.
const PAYLOAD: f64 = 1448.0;
const FRAME: f64 = 1514.0;
const TOLERANCE: f64 = 0.005;

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let sampler = bench.sampler(bench.pick(1500, 1000), 500)?;
    let mut cells = Vec::new();
    for path in PATHS {
        for rate in RATES_BPS {
            let cell = cells::cell(path, Peer::Far, LoadKind::TcpStream, |axes| {
                axes.rate_bps = Some(Rate(Some(rate)));
            });
            cells.push((cell, rate, Vec::new()));
        }
    }
    let mut rng = bench.rng(1);
    for _ in 0..bench.pick(4, 2) {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.shuffle(&mut rng);
        for index in order {
            let (cell, _, goodputs) = &mut cells[index];
            goodputs.push(cells::goodput_bps(&measure(&sampler, cell, 0.0)?));
        }
    }
    cells
        .iter()
        .map(|(cell, rate, goodputs)| row(&cell.path, *rate, goodputs))
        .collect()
}

fn row(path: &str, rate_bps: u64, goodputs: &[f64]) -> Result<Row, Failure> {
    let mean = stats::mean(goodputs).ok_or(Failure::NoFigure("a shaped wire"))?;
    let promised = rate_bps as f64 * PAYLOAD / FRAME;
    let off = |goodput: f64| goodput / promised - 1.0;
    let (low, high) = goodputs
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), g| {
            (low.min(off(*g)), high.max(off(*g)))
        });
    Ok(Row {
        id: "V1",
        what: format!(
            "{path}/far at {} Mbit/s, {} samples",
            rate_bps / 1_000_000,
            goodputs.len()
        ),
        promised: format!("{:.3} Mbit/s ± 0.5 %", promised / 1e6),
        seen: format!(
            "{:.3} Mbit/s, {:+.2} % ({:+.2} to {:+.2} %)",
            mean / 1e6,
            100.0 * off(mean),
            100.0 * low,
            100.0 * high
        ),
        verdict: Verdict::of(low >= -TOLERANCE && high <= TOLERANCE),
    })
}
