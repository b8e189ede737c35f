//! What all request/response flows have: buffers, times of round trips, and work that takes a known time.

use std::ops::Range;

use hopyard_model::Counted;
use hopyard_net::clock;

use crate::protocol::Timetable;
use crate::spec::LoadSpec;
use crate::summary::Timings;
use crate::tally::Tally;

/// Round trips that began inside the window. To count only those that ended inside too would leave out the long ones.
pub(crate) struct Times {
    pub(crate) timings: Timings,
    pub(crate) open_ns: u64,
    pub(crate) close_ns: u64,
    /// When those begin that are timed.
    timed: Range<u64>,
}

impl Times {
    /// None yet, of a timetable's window: without those at its edges.
    pub(crate) fn of(timetable: &Timetable) -> Result<Self, String> {
        Ok(Self {
            timed: timetable.timed(),
            ..Self::new(timetable.open_ns, timetable.close_ns)?
        })
    }

    /// None yet, of a window: with those at its edges.
    pub(crate) fn new(open_ns: u64, close_ns: u64) -> Result<Self, String> {
        Ok(Self {
            timings: Timings::new()?,
            open_ns,
            close_ns,
            timed: open_ns..close_ns,
        })
    }

    /// Whether a request that began at this instant is one of the window.
    #[inline]
    pub(crate) fn has(&self, began_ns: u64) -> bool {
        (self.open_ns..self.close_ns).contains(&began_ns)
    }

    #[inline]
    pub(crate) fn record(&mut self, began_ns: u64, ended_ns: u64) {
        if self.timed.contains(&began_ns) {
            self.timings.record(ended_ns.saturating_sub(began_ns));
        }
    }

    /// Counts requests of a connection whose responses have not come when traffic ends, with the time that they have taken so far:
    /// without them, the longest stalls would be left out.
    pub(super) fn cut_off(&mut self, began_ns: impl IntoIterator<Item = u64>) {
        let now_ns = clock::monotonic_ns();
        for began_ns in began_ns {
            self.record(began_ns, now_ns);
        }
    }
}

/// The transactions that a flow has completed.
pub(super) struct Account<'a> {
    tally: &'a Tally,
    counted: Counted,
}

impl<'a> Account<'a> {
    /// Goes on from what the flow completed before.
    pub(super) fn new(tally: &'a Tally) -> Self {
        Self {
            tally,
            counted: tally.read().received,
        }
    }

    /// One more, in which so many bytes came.
    #[inline]
    pub(super) fn completed(&mut self, bytes: usize) {
        self.counted.transactions += 1;
        self.counted.messages += 1;
        self.counted.bytes += bytes as u64;
        self.tally.set_received(self.counted);
    }
}

/// One end's buffers and whether messages keep their bounds.
pub(crate) struct Responder {
    pub(crate) request: Vec<u8>,
    pub(crate) response: Vec<u8>,
    /// Datagrams: a message is one call, may be lost, and carries a number in its first bytes, the low one first.
    pub(crate) datagrams: bool,
    /// Requests in flight.
    pub(crate) outstanding: u32,
    /// Self-timed work before each response, ns.
    pub(crate) service_time_ns: u64,
    /// Self-timed work before each request, outside the round trip, ns.
    pub(crate) pause_ns: u64,
}

impl Responder {
    /// The buffers of a load.
    pub(crate) fn of(spec: &LoadSpec) -> Self {
        Self {
            request: vec![0x5a; spec.request_size as usize],
            response: vec![0x5a; spec.response_size as usize],
            datagrams: !spec.kind.is_tcp(),
            outstanding: spec.outstanding,
            service_time_ns: spec.service_time_ns,
            pause_ns: spec.pause_ns,
        }
    }

    /// How many bytes of a datagram are its number: as many as both have, up to eight.
    pub(super) fn number_bytes(&self) -> usize {
        self.request.len().min(self.response.len()).min(8)
    }
}

/// Where a flow's numbers start in a turn. Earlier turns started elsewhere, so their late answers are not taken for new ones.
pub(super) fn first_number() -> u64 {
    clock::monotonic_ns()
}

/// When the next request begins: where a response was just taken at that instant, which saves a look at the clock.
#[inline]
pub(super) fn begin(pause_ns: u64, now_ns: &mut Option<u64>) -> u64 {
    if pause_ns > 0 {
        work_for(pause_ns);
        *now_ns = None;
    }
    now_ns.take().unwrap_or_else(clock::monotonic_ns)
}

/// Burns CPU for a span measured by its own clock.
pub(super) fn work_for(span_ns: u64) {
    let until = clock::monotonic_ns() + span_ns;
    while clock::monotonic_ns() < until {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round trip that begins near an edge is not timed, but its request is one of the window. One that begins between the edges is
    /// timed, also if it ends after the window.
    #[test]
    fn round_trips_are_timed_between_the_edges() {
        let timetable = Timetable {
            start_ns: 0,
            open_ns: 1_000_000,
            close_ns: 11_000_000,
            stop_ns: 13_000_000,
            slices: 1,
            other_behind_ns: 0,
            edge_ns: 200_000,
        };
        let mut times = Times::of(&timetable).unwrap();
        for began_ns in [999_999, 1_000_000, 1_199_999, 10_800_000, 10_999_999] {
            times.record(began_ns, began_ns + 40_000);
        }
        assert_eq!(times.timings.histogram().len(), 0);
        assert!(times.has(1_000_000) && times.has(10_999_999));
        times.record(1_200_000, 1_215_000);
        times.record(10_799_999, 12_000_000);
        assert_eq!(times.timings.histogram().len(), 2);
    }
}
