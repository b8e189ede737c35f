//! How rate and jitter go on over a window: constant memory, since there are at most so many intervals.

use super::flow::Seen;
use crate::protocol::Timetable;
use hopyard_model::{ArrivalInterval, ArrivalSeries, units::float};

/// Intervals of a long window.
const LONG_NS: u64 = 5_000_000_000;
/// A short window is cut into so many.
const PARTS: u64 = 10;

/// Equal intervals of a window.
#[derive(Debug)]
pub(super) struct Series {
    before_ns: u64,
    open_ns: u64,
    interval_ns: u64,
    parts: Vec<Part>,
}

/// Sums over the datagrams of one interval.
#[derive(Debug, Default, Clone, Copy)]
struct Part {
    packets: u64,
    gaps: u64,
    gap_sum_ns: f64,
    gap_squares: f64,
    smoothed_sum_ns: f64,
}

impl Series {
    /// An empty one: intervals of 5 s, of a tenth in windows under 50 s.
    pub(super) fn new(timetable: Timetable) -> Self {
        let span_ns = timetable.close_ns.saturating_sub(timetable.open_ns);
        let interval_ns = (span_ns / PARTS).clamp(1, LONG_NS);
        let parts = usize::try_from(span_ns / interval_ns).unwrap_or(0);
        Self {
            before_ns: timetable.open_ns.saturating_sub(timetable.start_ns),
            open_ns: timetable.open_ns,
            interval_ns,
            parts: vec![Part::default(); parts],
        }
    }

    /// Enters a datagram that came within the window, and not for a second time.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "gaps are far below 2^53 ns")]
    pub(super) fn enter(&mut self, arrived_ns: u64, seen: Seen) {
        let (Some(smoothed_ns), at) = (
            seen.smoothed_ns,
            (arrived_ns - self.open_ns) / self.interval_ns,
        ) else {
            return;
        };
        let Some(part) = self.parts.get_mut(at as usize) else {
            return;
        };
        part.packets += 1;
        part.smoothed_sum_ns += smoothed_ns;
        if let Some(gap_ns) = seen.gap_ns {
            part.gaps += 1;
            part.gap_sum_ns += gap_ns as f64;
            part.gap_squares += (gap_ns as f64).powi(2);
        }
    }

    /// Takes in what another socket saw over the same window.
    pub(super) fn absorb(&mut self, other: &Self) {
        for (sum, part) in self.parts.iter_mut().zip(&other.parts) {
            sum.packets += part.packets;
            sum.gaps += part.gaps;
            sum.gap_sum_ns += part.gap_sum_ns;
            sum.gap_squares += part.gap_squares;
            sum.smoothed_sum_ns += part.smoothed_sum_ns;
        }
    }

    /// What came of it.
    pub(super) fn tell(&self) -> ArrivalSeries {
        ArrivalSeries {
            interval_ns: self.interval_ns,
            before_ns: self.before_ns,
            intervals: self.parts.iter().map(Part::tell).collect(),
        }
    }
}

impl Part {
    fn tell(&self) -> ArrivalInterval {
        let gaps = float(self.gaps);
        let variance = || {
            let mean = self.gap_sum_ns / gaps;
            (self.gap_squares / gaps - mean * mean).max(0.0)
        };
        ArrivalInterval {
            packets: self.packets,
            interarrival_sd_ns: (self.gaps > 1).then(|| variance().sqrt()),
            jitter_rfc3550_ns: (self.packets > 1)
                .then(|| self.smoothed_sum_ns / float(self.packets)),
        }
    }
}
