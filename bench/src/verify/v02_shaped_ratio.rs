//! V2: two wires whose rates differ by 3 % are measured to differ by 3 %.

use hopyard::model::{Cell, LoadKind, Peer, Rate};
use hopyard::stats;
use rand::seq::SliceRandom;

use crate::bench::{Bench, measure};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V2",
    title: "goodput over wires shaped to 1000 and 1030 Mbit/s, TCP, in random blocks",
    only_when_named: false,
    run,
};

const PATHS: [&str; 3] = ["native", "veth-route", "macvlan"];
/// The slower one first.
const RATES_BPS: [u64; 2] = [1_000_000_000, 1_030_000_000];
const RATIO: f64 = 1.03;
/// Largest width of the interval, as a share of the promised ratio.
const WIDTH: f64 = 0.01;
const CONFIDENCE: f64 = 0.95;

/// Both wires of one path, and the goodput over each in every block.
struct Pair {
    path: &'static str,
    cells: [Cell; 2],
    goodputs: [Vec<f64>; 2],
}

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let sampler = bench.sampler(bench.pick(700, 400), 500)?;
    let mut pairs = PATHS.map(pair);
    let mut order: Vec<(usize, usize)> = (0..pairs.len())
        .flat_map(|pair| [(pair, 0), (pair, 1)])
        .collect();
    let mut rng = bench.rng(2);
    for _ in 0..bench.pick(10, 4) {
        order.shuffle(&mut rng);
        for (at, wire) in &order {
            let pair = &mut pairs[*at];
            let m = measure(&sampler, &pair.cells[*wire], 0.0)?;
            pair.goodputs[*wire].push(cells::goodput_bps(&m));
        }
    }
    pairs.iter().map(row).collect()
}

fn pair(path: &'static str) -> Pair {
    let shaped = |rate_bps| {
        cells::cell(path, Peer::Far, LoadKind::TcpStream, |axes| {
            axes.rate_bps = Some(Rate(Some(rate_bps)));
        })
    };
    Pair {
        path,
        cells: RATES_BPS.map(shaped),
        goodputs: Default::default(),
    }
}

fn row(pair: &Pair) -> Result<Row, Failure> {
    let [slower, faster] = &pair.goodputs;
    let ratio = stats::paired_ratio(faster, slower, CONFIDENCE)
        .ok_or(Failure::NoFigure("a pair of shaped wires"))?;
    let width = (ratio.high - ratio.low) / RATIO;
    Ok(Row {
        id: "V2",
        what: format!(
            "{}/far at 1030 against 1000 Mbit/s, {} blocks",
            pair.path, ratio.n
        ),
        promised: "95 % interval contains 1.03 and is at most 1 % wide".to_owned(),
        seen: format!(
            "{:.5} ({:.5} to {:.5}), {:.3} % wide",
            ratio.value,
            ratio.low,
            ratio.high,
            100.0 * width
        ),
        verdict: Verdict::of((ratio.low..=ratio.high).contains(&RATIO) && width <= WIDTH),
    })
}
