//! What a receiver of numbered datagrams writes down of each of them; constant memory, however many come.

mod flow;
mod jitter;
mod runs;
mod sequence;
mod series;
mod summary;

use hdrhistogram::Histogram;

use self::flow::Flow;
use self::runs::Runs;
use self::series::Series;
use super::numbered::Header;
use super::protocol::Timetable;
use super::summary::Timings;

/// A sender that is later than this at the window's end did not send in time. One that keeps up is late by less: it
/// wakes µs late, or ms where another had its CPU for a tick.
const LATEST_NS: u64 = 5_000_000;
/// Longest run told apart.
const LONGEST_RUN: u64 = 10_000_000;

/// The datagrams of one receiving socket.
pub(crate) struct Journal {
    open_ns: u64,
    close_ns: u64,
    /// How far the senders' clock is behind.
    senders_behind_ns: i64,
    flows: Vec<Flow>,
    runs: Runs,
    /// Datagrams due in the window that were sent in time.
    due: u64,
    spread: Spread,
    series: Series,
}

/// Distributions over all flows.
struct Spread {
    /// From when a datagram was to be sent to when it was read.
    latency: Timings,
    lateness: Timings,
    /// Absolute.
    ipdv: Timings,
    interarrival: Timings,
    run_lengths: Histogram<u64>,
}

/// When the kernel and when the program had a datagram, `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came {
    pub(crate) arrived_ns: u64,
    pub(crate) read_ns: u64,
}

impl Journal {
    /// An empty one for so many flows.
    ///
    /// # Errors
    /// No histogram can be made.
    pub(crate) fn new(flows: u32, timetable: Timetable) -> Result<Self, String> {
        Ok(Self {
            open_ns: timetable.open_ns,
            close_ns: timetable.close_ns,
            senders_behind_ns: timetable.other_behind_ns,
            flows: (0..flows)
                .map(|_| Flow::new(flows))
                .collect::<Result<_, _>>()?,
            runs: Runs::default(),
            due: 0,
            series: Series::new(timetable),
            spread: Spread {
                latency: Timings::new()?,
                lateness: Timings::new()?,
                ipdv: Timings::new()?,
                interarrival: Timings::new()?,
                run_lengths: Histogram::new_with_bounds(1, LONGEST_RUN, 3)
                    .map_err(|e| format!("cannot make a histogram: {e}"))?,
            },
        })
    }

    /// Enters a datagram. What came counts by its arrival; how long it took by when it was to be sent, so that one
    /// that is late does not fall out of the window.
    ///
    /// Returns whether it is the first copy of a datagram of these flows.
    #[inline]
    pub(crate) fn enter(&mut self, header: &Header, bytes: usize, came: Came) -> bool {
        let window = self.open_ns..self.close_ns;
        let header = &header.later_by(self.senders_behind_ns);
        let Some(flow) = self.flows.get_mut(header.flow as usize) else {
            return false;
        };
        let counts = window.contains(&came.arrived_ns);
        let seen = flow.enter(header, bytes, came.arrived_ns, counts);
        if seen.first && window.contains(&header.due_ns) {
            self.enter_due(header, came);
        }
        let run = self.runs.enter(header.flow);
        if !counts {
            return seen.first;
        }
        self.series.enter(came.arrived_ns, seen);
        if let Some(ipdv_ns) = seen.ipdv_ns {
            self.spread.ipdv.record(ipdv_ns.unsigned_abs());
        }
        if let Some(gap_ns) = seen.gap_ns {
            self.spread.interarrival.record(gap_ns);
        }
        if let Some(run) = run {
            self.spread.run_lengths.saturating_record(run);
        }
        seen.first
    }

    /// The first copy of a datagram that was due in the window.
    #[inline]
    fn enter_due(&mut self, header: &Header, came: Came) {
        let lateness_ns = header.sent_ns.saturating_sub(header.due_ns);
        let latency_ns = came.read_ns.saturating_sub(header.due_ns);
        self.spread.lateness.record(lateness_ns);
        self.spread.latency.record(latency_ns);
        let is_in_time = header.sent_ns < self.close_ns + LATEST_NS;
        self.due += u64::from(is_in_time);
    }
}

#[cfg(test)]
mod tests;
