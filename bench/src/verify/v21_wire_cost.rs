//! V21: a wire that pauses costs the sender next to no CPU time for its rate.
//!
//! A sender that keeps a little below the wire's rate by itself sends in the same bursts, and rests as long, whatever the wire is. So what
//! a packet costs over a wire that pauses, over what it costs over a wire without a shaper, is what the shaper costs. A shaper that holds
//! back each frame is measured too, and a sender that leaves the rate to the wire. It is woken otherwise than one that sleeps, so both are
//! stated, and nothing is promised. Each takes turns with a sender over a wire without a shaper. Devices without offloads, as in 2007: each frame is by itself.

use hopyard::measure::Sampler;
use hopyard::model::{Cell, LoadKind, Peer, Placement, Rate, Switch};
use hopyard::stats::{self, Estimate};
use hopyard::store::Run;
use rand_chacha::ChaCha8Rng;

use crate::bench::Bench;
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};
use crate::pair::{Pair, Settings, WARM_UP_MS, WINDOW_MS};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V21",
    title: "what a packet costs over a wire that pauses, beside one without a shaper",
    only_when_named: true,
    run,
};

const MESSAGE: u32 = 1400;
const TOLERANCE: f64 = 0.02;
const CONFIDENCE: f64 = 0.95;
const PAUSE: &str = "2ms";
const RATES_BPS: [u64; 3] = [100_000_000, 300_000_000, 1_000_000_000];
/// What a paced sender asks of the wire.
const ASKED: (u64, u64) = (95, 100);

/// Who keeps a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// The sender alone: the wire has no shaper.
    Sender,
    /// The sender, and a wire that pauses, which has nothing to do.
    Both,
    /// The sender, and a wire that times each frame.
    BothByFrame,
    /// The wire alone, by pauses.
    Wire,
}

/// Those that are compared with the sender alone, and how many generations that takes.
const LIMITS: [(Limit, u32); 3] = [(Limit::Both, 40), (Limit::BothByFrame, 8), (Limit::Wire, 8)];

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let sampler = bench.sampler(WINDOW_MS, WARM_UP_MS)?;
    let mut rng = bench.rng(21);
    let mut rows = Vec::new();
    for rate_bps in RATES_BPS {
        for (limit, generations) in LIMITS {
            let generations = bench.pick(generations, 8);
            rows.push(row(&sampler, rate_bps, limit, generations, &mut rng)?);
        }
    }
    Ok(rows)
}

/// Payload that a paced sender has on the wire, bit/s.
fn paced_bps(rate_bps: u64) -> u64 {
    let payload = rate_bps * u64::from(MESSAGE) / (u64::from(MESSAGE) + 42);
    payload * ASKED.0 / ASKED.1
}

fn cell(rate_bps: u64, limit: Limit) -> Cell {
    let pause = PAUSE.parse().ok();
    cells::cell("native", Peer::Far, LoadKind::UdpStream, |axes| {
        axes.message_size_bytes = Some(MESSAGE);
        axes.offload = Some(Switch::Off);
        axes.placement = Placement::Split;
        if limit != Limit::Wire {
            axes.pace_bps = Some(Rate(Some(paced_bps(rate_bps))));
            axes.pace_pause_ns = pause;
        }
        if limit != Limit::Sender {
            axes.rate_bps = Some(Rate(Some(rate_bps)));
        }
        if matches!(limit, Limit::Both | Limit::Wire) {
            axes.wire_pause_ns = pause;
        }
    })
}

/// What a packet costs by a limit, over what it costs if the sender alone keeps the rate.
fn row(
    sampler: &Sampler,
    rate_bps: u64,
    limit: Limit,
    generations: u32,
    rng: &mut ChaCha8Rng,
) -> Result<Row, Failure> {
    let settings = Settings {
        margin: TOLERANCE,
        ..Settings::of(
            [Limit::Sender, limit].map(|limit| cell(rate_bps, limit)),
            generations,
        )
    };
    let run = Pair::new(sampler, &settings).take(generations, rng)?;
    let (with, without) = costs(&run);
    let ratio = stats::paired_ratio(&with, &without, CONFIDENCE)
        .ok_or(Failure::NoFigure("a wire with a rate"))?;
    let sender = stats::mean(&without).unwrap_or(f64::NAN);
    let (what, promised, verdict) = match limit {
        Limit::Sender | Limit::Both => (
            "paced, over a wire that pauses",
            format!("1.00 ± {TOLERANCE}, with all of its interval"),
            Verdict::of(within(&ratio)),
        ),
        Limit::BothByFrame => (
            "paced, over a wire that times each frame",
            "none: a timer for each frame".to_owned(),
            Verdict::Stated,
        ),
        Limit::Wire => (
            "held back by a wire that pauses",
            "none: woken otherwise than by its own sleep".to_owned(),
            Verdict::Stated,
        ),
    };
    Ok(Row {
        id: "V21",
        what: format!(
            "udp_stream, {} Mbit/s, {what}, over the same without a shaper, {} of {generations} generations",
            rate_bps / 1_000_000,
            with.len()
        ),
        promised,
        seen: format!(
            "{:.3} ({:.3} to {:.3}) of {:.2} µs a packet",
            ratio.value,
            ratio.low,
            ratio.high,
            sender / 1e3
        ),
        verdict,
    })
}

/// What a packet costs over the wire and without a shaper, ns, in each generation in which both were measured.
fn costs(run: &Run) -> (Vec<f64>, Vec<f64>) {
    let of_cell = |cell| {
        let samples = run.samples.iter().filter(move |s| s.cell == cell);
        samples.map(|sample| {
            let m = sample.measurement()?;
            Some(cells::demand_ns(LoadKind::UdpStream, m))
        })
    };
    of_cell(1)
        .zip(of_cell(0))
        .filter_map(|(with, without)| with.zip(without))
        .filter(|(with, without)| *with > 0.0 && *without > 0.0)
        .unzip()
}

fn within(ratio: &Estimate) -> bool {
    ratio.low >= 1.0 - TOLERANCE && ratio.high <= 1.0 + TOLERANCE
}
