//! V21: a wire that pauses costs the sender no CPU time for its rate.
//!
//! A sender that keeps a little below the wire's rate by itself sends in the same bursts, and rests as long, whatever the wire is. So what
//! a packet costs over a wire that pauses, over what it costs over a wire without a shaper, is what the shaper costs. A shaper that holds
//! back each frame is beside it. Then a sender that leaves the rate to the wire: it is woken otherwise than one that sleeps, so the
//! two are stated, and nothing is promised. Devices without offloads, as in 2007: each frame is by itself.

use hopyard::measure::Sampler;
use hopyard::model::{Cell, LoadKind, Peer, Placement, Rate, Switch};
use hopyard::stats::{self, Estimate};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::bench::{Bench, quiet_cores, undisturbed};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

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

const LIMITS: [Limit; 4] = [Limit::Sender, Limit::Both, Limit::BothByFrame, Limit::Wire];

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
        let sampler = bench.sampler(bench.pick(800, 400), 200)?;
        let mut rng = bench.rng(21);
        let mut rows = Vec::new();
        for rate_bps in RATES_BPS {
            let mut blocks = Vec::new();
            for _ in 0..bench.pick(20, 4) {
                blocks.push(block(&sampler, rate_bps, &mut rng)?);
            }
            for limit in &LIMITS[1..] {
                rows.push(row(rate_bps, *limit, &blocks)?);
            }
        }
        Ok(rows)
    }
}

/// What a packet costs by each limit, ns, in labs of their own and in random order.
fn block(sampler: &Sampler, rate_bps: u64, rng: &mut ChaCha8Rng) -> Result<[f64; 4], Failure> {
    let quiet = quiet_cores(sampler)?;
    let mut order = [0, 1, 2, 3];
    order.shuffle(rng);
    let mut costs = [f64::NAN; 4];
    for at in order {
        let cell = cell(rate_bps, LIMITS[at]);
        let measured = undisturbed(sampler, &cell, quiet, 0.0)?;
        costs[at] = cells::demand_ns(LoadKind::UdpStream, &measured);
    }
    Ok(costs)
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

fn row(rate_bps: u64, limit: Limit, blocks: &[[f64; 4]]) -> Result<Row, Failure> {
    let of = |limit: Limit| {
        let at = LIMITS.iter().position(|one| *one == limit).unwrap_or(0);
        blocks.iter().map(|block| block[at]).collect::<Vec<f64>>()
    };
    let ratio = stats::paired_ratio(&of(limit), &of(Limit::Sender), CONFIDENCE)
        .ok_or(Failure::NoFigure("a wire with a rate"))?;
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
    let sender = stats::mean(&of(Limit::Sender)).unwrap_or(f64::NAN);
    Ok(Row {
        id: "V21",
        what: format!(
            "udp_stream, {} Mbit/s, {what}, over the same without a shaper, {} blocks",
            rate_bps / 1_000_000,
            blocks.len()
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

fn within(ratio: &Estimate) -> bool {
    ratio.low >= 1.0 - TOLERANCE && ratio.high <= 1.0 + TOLERANCE
}
