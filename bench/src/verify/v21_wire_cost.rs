//! V21: a wire that pauses costs the sender no CPU time for its rate.
//!
//! A sender that keeps a little below the wire's rate by itself sends in the same bursts, and rests as long, whatever the wire is. So what
//! a packet costs over a wire that pauses, over what it costs over a wire without a shaper, is what the shaper costs. A shaper that holds
//! back each frame is beside it. Each is compared with the sender alone by turns. Then a sender that leaves the rate to the wire: it is woken otherwise than one that sleeps, so the
//! two are stated, and nothing is promised. Devices without offloads, as in 2007: each frame is by itself.

use hopyard::measure::Sampler;
use hopyard::model::{Cell, LoadKind, Outcome, Peer, Placement, Rate, Switch};
use hopyard::stats::{self, Estimate};
use hopyard::store::Run;
use rand_chacha::ChaCha8Rng;

use crate::bench::Bench;
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};
use crate::pair::{Pair, WARM_UP_MS, WINDOW_MS};

pub(crate) struct WireCost;

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

impl Experiment for WireCost {
    fn id(&self) -> &'static str {
        "V21"
    }

    fn title(&self) -> &'static str {
        "what a packet costs over a wire that pauses, beside one without a shaper"
    }

    fn only_when_named(&self) -> bool {
        true
    }

    fn run(&self, bench: &Bench) -> Result<Vec<Row>, Failure> {
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
    let [base, other] = [Limit::Sender, limit].map(|limit| cell(rate_bps, limit));
    let run = Pair::new(sampler, &base, &other, TOLERANCE).take(generations, rng)?;
    let costs = |cell| -> Vec<f64> { costs(&run, cell).collect() };
    let ratio = stats::paired_ratio(&costs(1), &costs(0), CONFIDENCE)
        .ok_or(Failure::NoFigure("a wire with a rate"))?;
    let sender = stats::mean(&costs(0)).unwrap_or(f64::NAN);
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
            "udp_stream, {} Mbit/s, {what}, over the same without a shaper, {generations} generations",
            rate_bps / 1_000_000
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

/// What a packet costs in each generation, ns; no number where it could not be measured, which [`stats::paired_ratio`] leaves out.
fn costs(run: &Run, cell: usize) -> impl Iterator<Item = f64> {
    let samples = run.samples.iter();
    let of_cell = samples.filter(move |sample| sample.cell == cell);
    of_cell.map(|sample| match &sample.outcome {
        Outcome::Measured(m) => cells::demand_ns(LoadKind::UdpStream, m),
        Outcome::Failed { .. } => f64::NAN,
    })
}

fn within(ratio: &Estimate) -> bool {
    ratio.low >= 1.0 - TOLERANCE && ratio.high <= 1.0 + TOLERANCE
}
