//! Windows in which jitter did not settle: how long it takes is not known, and how long at least is.
//!
//! A window that did not settle left the band of its final value once more in its last quarter (docs/curves.md), so what is asked for is
//! longer than the three quarters before. The mean of times of which some are cut off like that is at most the mean of the times.

use super::evidence;
use super::figure::Figure;
use crate::assess;
use crate::store::Run;

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
        values.push(settled.or_else(|| assess::outside_until_s(m))?);
    }
    let windows = values.len();
    (unsettled > 0).then(|| Figure::AtLeast {
        of: Box::new(Figure::Level(values)),
        why: format!("jitter did not settle in {unsettled} of {windows} windows"),
    })
}
