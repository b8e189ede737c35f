//! V14: every other datagram is delayed by a known time between the time it carries and the call that sends it. Delays
//! then alternate between 0 and D above the path's own: the quarters of PDV are D apart, IPDV is ±D, RFC 3550's jitter
//! is D.

use std::time::Duration;

use hopyard::model::{Arrivals, LoadKind, Peer, Rate};

use crate::bench::{Bench, undisturbed};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V14",
    title: "every other datagram of a paced flow is held back for a known time",
    only_when_named: false,
    run,
};

const HOLDS_US: [u32; 3] = [100, 200, 500];
const MESSAGE_BYTES: u32 = 500;

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    HOLDS_US.iter().map(|us| row(bench, *us)).collect()
}

fn row(bench: &Bench, hold_us: u32) -> Result<Row, Failure> {
    let mut sampler = bench.sampler(bench.pick(4_000, 1_500), 200)?;
    sampler.service_time = Duration::from_micros(hold_us.into());
    let cell = cells::cell("veth", Peer::Local, LoadKind::UdpPaced, |axes| {
        axes.message_size_bytes = Some(MESSAGE_BYTES);
        // One message per 2.5 delays.
        let per_s = 1_000_000 / u64::from(hold_us) * 10 / 25;
        axes.pace_bps = Some(Rate(Some(per_s * 8 * u64::from(MESSAGE_BYTES))));
    });
    let m = undisturbed(&sampler, &cell, 0.0, 0.0)?;
    let seen = Seen::of(m.arrivals.as_ref().ok_or(Failure::NoFigure("udp_paced"))?)
        .ok_or(Failure::NoFigure("the jitter of a paced flow"))?;
    let hold_us = f64::from(hold_us);
    // The path's own delay is longer after a pause, the more so the longer the pause.
    let tolerance_us = (0.02 * hold_us).max(2.0);
    let near = |us: f64| (us - hold_us).abs() <= tolerance_us;
    let within = near(seen.pdv_us[1] - seen.pdv_us[0])
        && near(seen.ipdv_us)
        && (seen.smoothed_us / hold_us - 1.0).abs() <= 0.05;
    Ok(Row {
        id: "V14",
        what: format!("udp_paced, 0 and {hold_us:.0} µs by turns"),
        promised: format!(
            "PDV p75 − p25 and |IPDV| p50 {hold_us:.0} ± {tolerance_us:.0} µs, RFC 3550 ± 5 %"
        ),
        seen: format!(
            "PDV {:.1} to {:.1}, |IPDV| {:.1}, RFC 3550 {:.1} µs",
            seen.pdv_us[0], seen.pdv_us[1], seen.ipdv_us, seen.smoothed_us
        ),
        verdict: Verdict::of(within),
    })
}

/// Jitter by three definitions, µs.
struct Seen {
    /// PDV at its quarters.
    pdv_us: [f64; 2],
    /// Median of the absolute IPDV.
    ipdv_us: f64,
    smoothed_us: f64,
}

impl Seen {
    fn of(arrivals: &Arrivals) -> Option<Self> {
        let at = |quantiles: &[(f64, u64)], q: f64| {
            let found = quantiles.iter().find(|(at, _)| (at - q).abs() < 1e-9)?;
            Some(found.1 as f64 / 1e3)
        };
        let pdv = &arrivals.pdv.as_ref()?.quantiles;
        Some(Self {
            pdv_us: [at(pdv, 0.25)?, at(pdv, 0.75)?],
            ipdv_us: at(&arrivals.ipdv.as_ref()?.quantiles, 0.5)?,
            smoothed_us: arrivals.flows.first()?.jitter_rfc3550_ns? / 1e3,
        })
    }
}
