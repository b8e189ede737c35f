//! How far a worker's clock is from ours.

use std::time::Duration;

use hopyard_net::clock;

use super::{Error, Remote};
use crate::protocol::{Reply, Request};

/// A clock beside ours, by the answer that came soonest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// How far it is ahead of ours, ns; 0 on the same kernel.
    pub ahead_ns: i64,
    /// How long that answer took, ns: the offset is wrong by half of it at most.
    pub round_trip_ns: u64,
    /// Is it known to be our own clock? Then nothing of the offset is uncertain.
    pub is_ours: bool,
}

impl ClockOffset {
    /// The offset may be wrong by this, ns.
    #[must_use]
    pub fn unsure_ns(self) -> u64 {
        if self.is_ours {
            0
        } else {
            self.round_trip_ns / 2 + 1
        }
    }

    /// How far it is ahead of another clock, both read by ours, ns.
    #[must_use]
    pub(crate) fn ahead_of(self, other: Self) -> i64 {
        self.ahead_ns.saturating_sub(other.ahead_ns)
    }

    /// The same with what it may be wrong by, ns.
    #[must_use]
    pub fn beside(self, other: Self) -> (i64, u64) {
        let unsure_ns = self.unsure_ns().saturating_add(other.unsure_ns());
        (self.ahead_of(other), unsure_ns)
    }

    /// May it be the same clock as ours?
    #[must_use]
    pub fn may_be_none(self) -> bool {
        self.ahead_ns.unsigned_abs() <= self.round_trip_ns / 2 + 1
    }

    /// May it be the same clock as another, both read by ours?
    #[must_use]
    pub fn may_be(self, other: Self) -> bool {
        let unsure = u64::midpoint(self.round_trip_ns, other.round_trip_ns);
        self.ahead_ns.abs_diff(other.ahead_ns) <= unsure + 1
    }

    /// How far it has moved against ours until a later reading, at least: what the uncertainty of the two explains does not count.
    #[must_use]
    pub fn moved(self, later: Self) -> Duration {
        let apart = self.ahead_ns.abs_diff(later.ahead_ns);
        let unsure_ns = self.unsure_ns().saturating_add(later.unsure_ns());
        Duration::from_nanos(apart.saturating_sub(unsure_ns))
    }
}

impl Remote {
    /// Finds out how far its clock is from ours, and goes by that from now on.
    ///
    /// # Errors
    /// As [`Remote::ask`].
    pub fn compare_clocks(&mut self) -> Result<(), Error> {
        self.clock = self.clock_offset()?;
        Ok(())
    }

    /// How far its clock is from ours now: the answer that came soonest tells best.
    ///
    /// # Errors
    /// As [`Remote::ask`].
    pub fn clock_offset(&mut self) -> Result<ClockOffset, Error> {
        const TIMES: usize = 10;
        let mut best: Option<ClockOffset> = None;
        for _ in 0..TIMES {
            let asked_ns = clock::monotonic_ns();
            let reply = self.ask(&Request::Clock, "tell its clock")?;
            let round_trip_ns = clock::monotonic_ns() - asked_ns;
            let Reply::Clock { monotonic_ns } = reply else {
                return Err(self.out_of_turn(&reply));
            };
            let ahead_ns = monotonic_ns
                .wrapping_sub(asked_ns + round_trip_ns / 2)
                .cast_signed();
            if best.is_none_or(|best| round_trip_ns < best.round_trip_ns) {
                best = Some(ClockOffset {
                    ahead_ns,
                    round_trip_ns,
                    is_ours: false,
                });
            }
        }
        Ok(best.unwrap_or_default())
    }

    /// Takes its clock for ours: it runs on this kernel, and what is left is how long the answer took.
    pub fn has_our_clock(&mut self) {
        self.clock.ahead_ns = 0;
        self.clock.is_ours = true;
    }

    /// The offset that timetables are converted by.
    #[must_use]
    pub fn clock(&self) -> ClockOffset {
        self.clock
    }

    /// Goes by a known offset from now on.
    pub fn set_clock(&mut self, clock: ClockOffset) {
        self.clock = clock;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_within_half_a_round_trip_may_be_none() {
        let of = |ahead_ns, round_trip_ns| ClockOffset {
            ahead_ns,
            round_trip_ns,
            is_ours: false,
        };
        let ours = ClockOffset {
            is_ours: true,
            ..of(0, 10_000)
        };
        assert_eq!(of(5_000, 4_000).beside(ours), (5_000, 2_001));
        assert_eq!(of(5_000, 4_000).beside(of(-1_000, 200)), (6_000, 2_102));
        assert_eq!(of(i64::MIN, 0).ahead_of(of(1, 0)), i64::MIN);
        assert!(of(-4_000, 10_000).may_be_none());
        assert!(!of(6_000, 10_000).may_be_none());
        assert!(!of(-5_000_000_000, 10_000).may_be_none());
        let moved = of(1_500_000, 2_000).moved(of(1_000_000, 3_996));
        assert_eq!(moved, Duration::from_micros(497));
        let slow = of(1_000_000, 40_000_000).moved(of(20_000_000, 30_000_000));
        assert_eq!(slow, Duration::ZERO, "both may be 15 ms ahead");
    }
}
