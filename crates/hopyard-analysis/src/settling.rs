//! Rate and jitter over the windows of a cell, and when jitter settled.

use crate::model::{ArrivalInterval, ArrivalSeries, Measurement, SeriesReport, Settling};
use crate::stats::{self, Samples};
use crate::units::{float, seconds};

/// The report of a cell; `None` if no sample has a series.
///
/// Only those with the most common intervals count: a window that was taken again began later in its traffic.
pub(super) fn report(measured: &[&Measurement], confidence: f64) -> Option<SeriesReport> {
    let mut all: Vec<&ArrivalSeries> = measured.iter().filter_map(|m| series(m)).collect();
    let shape = |s: &ArrivalSeries| (s.interval_ns, s.before_ns, s.intervals.len());
    let alike = |one: &&ArrivalSeries| all.iter().filter(|s| shape(s) == shape(one)).count();
    let first = all.iter().copied().max_by_key(alike)?;
    all.retain(|s| shape(s) == shape(first));
    if first.intervals.is_empty() {
        return None;
    }
    let interval_s = seconds(first.interval_ns);
    let places = 0..first.intervals.len();
    let values = |at: usize, of: fn(&ArrivalInterval) -> Option<f64>| {
        let values = all.iter().filter_map(|s| of(&s.intervals[at]));
        values.collect::<Vec<f64>>()
    };
    let over = |of: fn(&ArrivalInterval) -> Option<f64>| {
        places.clone().map(move |at| stats::mean(&values(at, of)))
    };
    let jitter = |at: usize| Samples::new(&values(at, |i| i.interarrival_sd_ns)).ok();
    let interval = |at: usize| {
        let estimate = stats::mean_interval(&jitter(at)?, confidence)?;
        Some((estimate.low, estimate.high))
    };
    let mut intervals: Vec<Option<(f64, f64)>> = places.clone().map(interval).collect();
    if intervals.iter().all(Option::is_none) {
        intervals.clear();
    }
    let packets = |i: &ArrivalInterval| Some(float(i.packets));
    Some(SeriesReport {
        interval_s,
        traffic_before_s: seconds(first.before_ns),
        packets_per_s: over(packets)
            .flatten()
            .map(|packets| packets / interval_s)
            .collect(),
        interarrival_sd_ns: over(|i| i.interarrival_sd_ns).collect(),
        interarrival_sd_interval_ns: intervals,
        jitter_rfc3550_ns: over(|i| i.jitter_rfc3550_ns).collect(),
        settling: settling(measured, confidence),
    })
}

fn settling(measured: &[&Measurement], confidence: f64) -> Option<Settling> {
    let watched: Vec<&&Measurement> = measured.iter().filter(|m| jitter(m).is_some()).collect();
    let times: Vec<f64> = watched.iter().filter_map(|m| time_s(m)).collect();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    (!watched.is_empty()).then(|| Settling {
        settled_samples: count(times.len()),
        samples: count(watched.len()),
        time_s: (times.len() == watched.len())
            .then(|| stats::mean_interval(&Samples::new(&times).ok()?, confidence))
            .flatten(),
    })
}

/// When the jitter of a sample had settled, s from the start of its traffic; `None` if it did not, or the window did
/// not open with the traffic.
pub fn time_s(m: &Measurement) -> Option<f64> {
    let settled = stats::settles(&jitter(m)?, Settling::BAND)?;
    time_of(settled + 1, m)
}

/// Until when jitter that did not settle was at least outside of its final band, s; `None` as for [`time_s`].
pub fn outside_until_s(m: &Measurement) -> Option<f64> {
    time_of(stats::before_end(&jitter(m)?)?, m)
}

/// So many intervals from the start of the traffic, s.
fn time_of(intervals: usize, m: &Measurement) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a window has few intervals")]
    let intervals = intervals as f64;
    Some(intervals * seconds(series(m)?.interval_ns))
}

/// Jitter of a sample from the start of its traffic; `None` if the window did not open with it, or an interval has no
/// value.
fn jitter(m: &Measurement) -> Option<Vec<f64>> {
    let series = series(m).filter(|s| s.before_ns == 0)?;
    series
        .intervals
        .iter()
        .map(|i| i.interarrival_sd_ns)
        .collect()
}

fn series(m: &Measurement) -> Option<&ArrivalSeries> {
    m.arrivals.as_ref()?.series.as_ref()
}
