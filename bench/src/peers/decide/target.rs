//! The targets: the ratio of decisions to each other method, and coverage that is not lower.

use serde::Serialize;

use super::tally::{Tally, Times, times};
use super::way::Way;

/// The least ratio of decisions per minute to the release before turns, with the hog and without it.
const UNDER_HOG: f64 = 5.0;
const QUIET: f64 = 2.0;

/// Whether a target is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The whole interval meets it, and no table failed but those that the hog kept the other way from measuring.
    Met,
    /// No part of the interval meets it.
    Missed,
    /// Part of the interval meets it; or all of it does, but tables failed.
    Open,
    /// There is no target.
    Stated,
}

/// Turns compared with another method.
#[derive(Debug, Serialize)]
pub(super) struct Against {
    pub(super) hog: bool,
    pub(super) other: Way,
    pub(super) times: Option<Times>,
    /// The target for the ratio.
    pub(super) at_least: Option<f64>,
    pub(super) speed: Outcome,
    /// Whether coverage is not lower.
    pub(super) coverage: Outcome,
}

/// Turns compared with every other method, with the hog and without it.
pub(super) fn all(tallies: &[Tally]) -> Vec<Against> {
    let turns = tallies.iter().filter(|tally| tally.way == Way::Turns);
    turns
        .flat_map(|turns| {
            let others = tallies
                .iter()
                .filter(|other| other.hog == turns.hog && other.way != Way::Turns);
            others.map(|other| against(turns, other))
        })
        .collect()
}

fn against(turns: &Tally, other: &Tally) -> Against {
    let times = times(turns, other);
    let at_least = (other.way == Way::Windows).then_some(if turns.hog { UNDER_HOG } else { QUIET });
    Against {
        hog: turns.hog,
        other: other.way,
        times,
        at_least,
        speed: at_least.map_or(Outcome::Stated, |least| {
            let is_whole = turns.failed == 0 && other.failed == other.failed_by_hog;
            speed(times, least, is_whole)
        }),
        coverage: coverage(turns, other),
    }
}

/// A table that failed counts as one that took time and decided nothing. That is what a disturbance does to the old release
/// and what the target is about. But where it fails without one too it was never measured, and no target is met.
fn speed(times: Option<Times>, least: f64, is_whole: bool) -> Outcome {
    match times {
        Some(times) if times.low >= least && is_whole => Outcome::Met,
        Some(times) if times.high.is_some_and(|high| high < least) => Outcome::Missed,
        _ => Outcome::Open,
    }
}

/// Missed only if the two intervals do not overlap: 1 of 1 does not prove a share of 100 %.
fn coverage(turns: &Tally, other: &Tally) -> Outcome {
    match (turns.covered.share(), other.covered.share()) {
        (Some(own), Some(other)) if own.value >= other.value => Outcome::Met,
        (Some(own), Some(other)) if own.high < other.low => Outcome::Missed,
        _ => Outcome::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::tests::{decided, failed};
    use super::*;

    fn outcome(hog: bool, turns: usize, windows: usize, of: usize) -> Outcome {
        let records = [
            decided(Way::Turns, hog, turns, of),
            decided(Way::Windows, hog, windows, of),
        ];
        let tallies = [Way::Turns, Way::Windows].map(|way| Tally::of(&records, way, hog));
        let all = all(&tallies);
        assert_eq!(all.len(), 1);
        all[0].speed
    }

    #[test]
    fn targets() {
        assert_eq!(outcome(true, 60, 0, 60), Outcome::Met);
        assert_eq!(outcome(true, 60, 60, 60), Outcome::Missed);
        assert_eq!(outcome(true, 60, 12, 60), Outcome::Open);
        assert_eq!(outcome(false, 60, 12, 60), Outcome::Met);
        assert_eq!(outcome(false, 0, 0, 60), Outcome::Open);
    }

    #[test]
    fn no_target_is_met_where_tables_failed() {
        let outcome = |failing: Way, without_hog: &[Way]| {
            let mut records = vec![
                decided(Way::Turns, true, 60, 60),
                decided(Way::Windows, true, 0, 60),
                failed(failing, true),
            ];
            records.extend(without_hog.iter().map(|&way| decided(way, false, 1, 2)));
            let tallies = [Way::Turns, Way::Windows].map(|way| Tally::of(&records, way, true));
            all(&tallies)[0].speed
        };
        assert_eq!(outcome(Way::Windows, &[]), Outcome::Open);
        assert_eq!(outcome(Way::Windows, &[Way::Turns]), Outcome::Open);
        assert_eq!(outcome(Way::Windows, &[Way::Windows]), Outcome::Met);
        assert_eq!(outcome(Way::Turns, &[Way::Turns]), Outcome::Open);
    }

    #[test]
    fn nothing_is_asked_for_against_other_tools() {
        let records = [
            decided(Way::Turns, true, 1, 60),
            decided(Way::Netperf, true, 60, 60),
        ];
        let tallies = [Way::Turns, Way::Netperf].map(|way| Tally::of(&records, way, true));
        assert_eq!(all(&tallies)[0].speed, Outcome::Stated);
    }

    #[test]
    fn coverage_is_missed_where_it_is_shown_to_be_lower() {
        use super::super::tally::Count;
        let tally = |way, hits, of| {
            let mut tally = Tally::of(&[], way, true);
            tally.covered = Count { hits, of };
            tally
        };
        let outcome =
            |own, other| coverage(&tally(Way::Turns, own, 40), &tally(Way::Windows, other, 40));
        assert_eq!(outcome(39, 39), Outcome::Met);
        assert_eq!(outcome(36, 38), Outcome::Open);
        assert_eq!(outcome(20, 39), Outcome::Missed);
        let single = coverage(&tally(Way::Turns, 35, 40), &tally(Way::Windows, 1, 1));
        assert_eq!(single, Outcome::Open);
    }
}
