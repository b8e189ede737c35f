//! When traffic starts and stops, and the window between.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The instants of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timetable {
    /// Traffic starts; everything up to `open_ns` is warm-up.
    pub start_ns: u64,
    /// The window opens, ns of `CLOCK_MONOTONIC`.
    pub open_ns: u64,
    /// The window closes, ns of `CLOCK_MONOTONIC`.
    pub close_ns: u64,
    /// Traffic stops; later than `close_ns`, so that both ends are busy for the whole window.
    pub stop_ns: u64,
    /// Equal parts into which the window is cut.
    pub slices: u32,
    /// How far the other end's clock is behind that of the worker, ns: what its datagrams say of instants is brought to the
    /// worker's clock by it. 0 where both ends have one clock, or nobody compared them.
    #[serde(default)]
    pub other_behind_ns: i64,
    /// Round trips are not timed if they begin within this time after the window opens or before it closes, ns. At both instants the
    /// controller reads clocks on each CPU, which delays the round trips under way. These are two of seven hundred in a turn, and
    /// would be most of the slowest percent. Which ones are left out does not depend on how long they take.
    #[serde(default)]
    pub edge_ns: u64,
}

impl Timetable {
    /// How long the window is, ns.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        self.close_ns - self.open_ns
    }

    /// Is this instant in the window?
    #[must_use]
    pub(crate) fn has(&self, instant_ns: u64) -> bool {
        (self.open_ns..self.close_ns).contains(&instant_ns)
    }

    /// The instants at which a round trip begins that is timed, ns of `CLOCK_MONOTONIC`.
    pub(crate) fn timed(&self) -> Range<u64> {
        self.open_ns + self.edge_ns..self.close_ns.saturating_sub(self.edge_ns)
    }

    /// All of it later by so much.
    #[must_use]
    pub fn later_by(self, ns: u64) -> Self {
        self.ahead_by(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// With more traffic before and after the window: so both ends are busy during the window of either, though their clocks may be
    /// apart by so many ns.
    #[must_use]
    pub fn wider_by(self, ns: u64) -> Self {
        Self {
            open_ns: self.open_ns.saturating_add(ns),
            close_ns: self.close_ns.saturating_add(ns),
            stop_ns: self.stop_ns.saturating_add(ns.saturating_mul(2)),
            ..self
        }
    }

    /// Each of its instants by a clock that is so many ns ahead.
    #[must_use]
    pub(crate) fn ahead_by(self, ns: i64) -> Self {
        let theirs = |instant: u64| instant.saturating_add_signed(ns);
        Self {
            start_ns: theirs(self.start_ns),
            open_ns: theirs(self.open_ns),
            close_ns: theirs(self.close_ns),
            stop_ns: theirs(self.stop_ns),
            ..self
        }
    }

    /// How much later than planned somebody looked who did so at these instants when the window opened and closed, the
    /// greater of both, ns.
    #[must_use]
    pub fn lateness(&self, opened_ns: u64, closed_ns: u64) -> u64 {
        let opened = opened_ns.saturating_sub(self.open_ns);
        opened.max(closed_ns.saturating_sub(self.close_ns))
    }
}
