//! What the arrivals of numbered datagrams say, all flows of a sample together.

use super::float;
use crate::model::{Arrivals, FlowArrivals, Latency, Measurement};
use crate::stats;

/// A figure of the arrivals, where there are any.
pub(super) fn of(m: &Measurement, figure: impl Fn(&Arrivals) -> Option<f64>) -> Option<f64> {
    figure(m.arrivals.as_ref()?)
}

/// A quantile of a distribution of times that has enough observations for it.
pub(super) fn times(times: Option<&Latency>, q: f64) -> Option<f64> {
    let times = times?;
    quantile(times.count, &times.quantiles, q)
}

fn quantile(count: u64, quantiles: &[(f64, u64)], q: f64) -> Option<f64> {
    let found = quantiles.iter().find(|(at, _)| (at - q).abs() < 1e-9)?;
    stats::enough_for_quantile(count, q).then(|| float(found.1))
}

/// RFC 3550's jitter: the mean over flows.
pub(super) fn smoothed(arrivals: &Arrivals) -> Option<f64> {
    let flows: Vec<f64> = arrivals
        .flows
        .iter()
        .filter_map(|flow| flow.jitter_rfc3550_ns)
        .collect();
    stats::mean(&flows)
}

/// The median run length.
pub(super) fn median_run(arrivals: &Arrivals) -> Option<f64> {
    let runs = arrivals.runs.as_ref()?;
    quantile(runs.count, &runs.quantiles, 0.5)
}

/// Share of datagrams that are Type-P-Reordered (RFC 4737, 4.1).
pub(super) fn reordered(arrivals: &Arrivals) -> Option<f64> {
    share(arrivals, |flow| flow.reordered)
}

/// Further copies over datagrams.
pub(super) fn duplicated(arrivals: &Arrivals) -> Option<f64> {
    share(arrivals, |flow| flow.duplicates)
}

fn share(arrivals: &Arrivals, part: fn(&FlowArrivals) -> u64) -> Option<f64> {
    let parts: u64 = arrivals.flows.iter().map(part).sum();
    let packets = arrivals.packets();
    (packets > 0).then(|| float(parts) / float(packets))
}

/// Share of what came to the receiving sockets that they had no room for.
pub(super) fn dropped(arrivals: &Arrivals) -> Option<f64> {
    let came = arrivals.packets() + arrivals.socket_drops;
    (came > 0).then(|| float(arrivals.socket_drops) / float(came))
}

/// Share of the window that the receiver's busiest thread had a CPU.
pub(super) fn busiest(arrivals: &Arrivals, window_ns: u64) -> Option<f64> {
    let most = arrivals.receiver_cpu_ns.iter().max()?;
    (window_ns > 0).then(|| float(*most) / float(window_ns))
}
