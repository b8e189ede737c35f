//! V15: over a wire shaped to a rate, a search for the non-drop rate finds that rate.
//!
//! The shaper's queue holds the excess until it is full: what a trial of time T sends beyond the rate is lost only if
//! it exceeds the queue Q. So the greatest load without loss is the rate times 1 + Q / (rate × T), with T from the
//! beginning of traffic to the end of the window.

use std::time::Duration;

use hopyard::model::{LoadKind, Peer, Rate, SearchFor};

use crate::bench::{Bench, measure};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V15",
    title: "non-drop rate over a wire shaped by a token bucket",
    only_when_named: false,
    run,
};

const PATHS: [&str; 2] = ["veth-route", "macvlan"];
const RATES_BPS: [u64; 2] = [100_000_000, 300_000_000];
const PAYLOAD: u32 = 1400;
/// Ethernet without FCS, IPv4, UDP: bytes that the token bucket counts besides the payload.
const HEADERS: u32 = 14 + 20 + 8;
const WARM_UP_MS: u64 = 200;
/// The width of the search's goal, and as much again for its uncertainty.
const TOLERANCE: f64 = 0.02;

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let cells = PATHS
        .iter()
        .flat_map(|path| RATES_BPS.map(|rate| (path, rate)));
    cells.map(|(path, rate)| row(bench, path, rate)).collect()
}

fn row(bench: &Bench, path: &str, rate_bps: u64) -> Result<Row, Failure> {
    let window_ms = bench.pick(2000, 1000);
    let sampler = bench.sampler(window_ms, WARM_UP_MS)?;
    let cell = cells::cell(path, Peer::Far, LoadKind::UdpPaced, |axes| {
        axes.message_size_bytes = Some(PAYLOAD);
        axes.rate_bps = Some(Rate(Some(rate_bps)));
        axes.search = Some(SearchFor::NDR);
    });
    // The search itself copes with disturbed trials.
    let m = measure(&sampler, &cell, 0.0)?;
    let search = m.search.ok_or(Failure::NoFigure("a search"))?;
    let result = search.result;
    let (lower, upper) = result
        .lower_per_s
        .zip(result.upper_per_s)
        .ok_or(Failure::NoFigure("a bound of the search"))?;
    let wire = rate_bps as f64 / 8.0 / f64::from(PAYLOAD + HEADERS);
    // Not as the product computes it: 15 ms of the rate, at least 256 KiB.
    let spare = (0.015 * rate_bps as f64).max(8.0 * 256.0 * 1024.0);
    let span = Duration::from_millis(WARM_UP_MS + window_ms).as_secs_f64();
    let most = wire * (1.0 + spare / (rate_bps as f64 * span));
    let within = lower >= wire * (1.0 - TOLERANCE) && lower <= most * (1.0 + TOLERANCE);
    Ok(Row {
        id: "V15",
        what: format!("{path}/far at {} Mbit/s", rate_bps / 1_000_000),
        promised: format!(
            "{wire:.0} datagrams/s, {:+.1} % for the queue, ± 2 %",
            100.0 * (most / wire - 1.0)
        ),
        seen: format!(
            "{lower:.0} to {upper:.0} ({:+.1} to {:+.1} %), {} trials",
            100.0 * (lower / wire - 1.0),
            100.0 * (upper / wire - 1.0),
            search.trials.len()
        ),
        verdict: Verdict::of(within && result.regular),
    })
}
