//! Windows in which jitter did not settle: how long it takes is not known, and how long at least is.
//!
//! A window that did not settle left the band of its final value once more in its last quarter (docs/curves.md), so what is asked for is
//! longer than the three quarters before. The mean of times of which some are cut off like that is at most the mean of the times.

use super::evidence;
use super::figure::Figure;
use crate::assess;
use crate::model::Measurement;
use crate::store::Run;

/// The last one of so many parts of a window has the final value.
const PARTS: usize = 4;
/// Fewest intervals of each part.
const FEWEST: usize = 2;

/// Settling times of a cell's windows; for a window that did not settle, its lower bound. `None` where jitter settled in every window,
/// or was not watched from the start of the traffic in one.
pub(super) fn at_least(run: &Run, cell: usize) -> Option<Figure> {
    let mut values = Vec::new();
    let mut unsettled = 0;
    for (_, m) in evidence::counting(run, cell).ok()? {
        let settled = assess::settling_time_s(m);
        if settled.is_none() {
            unsettled += 1;
        }
        values.push(settled.or_else(|| outside_until_s(m))?);
    }
    (unsettled > 0).then_some(Figure::AtLeast { values, unsettled })
}

/// The time at which jitter that did not settle had not come into its band for good, s.
fn outside_until_s(m: &Measurement) -> Option<f64> {
    let series = m.arrivals.as_ref()?.series.as_ref()?;
    let all = series.intervals.len();
    let is_known = |jitter: Option<f64>| jitter.is_some_and(f64::is_finite);
    let was_watched = series.before_ns == 0
        && all >= PARTS * FEWEST
        && series
            .intervals
            .iter()
            .all(|interval| is_known(interval.interarrival_sd_ns));
    was_watched.then(|| (all - all / PARTS) as f64 * series.interval_ns as f64 / 1e9)
}
