//! From answers to decided comparisons per minute, wrong decisions and coverage.

use hopyard::stats::{Verdict, binomial_interval};
use serde::Serialize;

use super::judge::Ratio;
use super::question::Truth;
use super::way::{Told, Way};

/// Confidence of every interval.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Two cells are equivalent within ± this, for hopyard and for [`super::judge`].
const MARGIN: f64 = 0.02;

/// One table of the run.
#[derive(Debug, Serialize)]
pub(super) struct Record {
    pub(super) question: &'static str,
    pub(super) way: Way,
    /// Whether the hog disturbed it.
    pub(super) hog: bool,
    pub(super) repetition: usize,
    pub(super) seconds: f64,
    /// Number of comparisons in the table.
    pub(super) comparisons: u64,
    /// Empty if the whole method failed. A comparison with a single cell that failed is not decided.
    pub(super) told: Vec<Told>,
    /// What was not measured, and why.
    pub(super) failed: Option<String>,
}

impl Record {
    /// Whether it failed because of the hog: the same method measures the same table without it.
    fn failed_by_hog(&self, all: &[Self]) -> bool {
        let is_control =
            |one: &&Self| !one.hog && (one.way, one.question) == (self.way, self.question);
        let mut controls = all.iter().filter(is_control).peekable();
        let is_controlled = controls.peek().is_some();
        self.hog
            && self.failed.is_some()
            && is_controlled
            && controls.all(|one| one.failed.is_none())
    }
}

/// A count of successes among tries, with the interval of their share.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Count {
    pub(super) hits: u64,
    pub(super) of: u64,
}

impl Count {
    fn add(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.of += 1;
    }

    pub(super) fn share(self) -> Option<Ratio> {
        let share = binomial_interval(self.hits, self.of, CONFIDENCE)?;
        Some(Ratio {
            value: share.value,
            low: share.low,
            high: share.high,
        })
    }
}

/// Results of a method's tables, with the hog or without it.
#[derive(Debug, Serialize)]
pub(super) struct Tally {
    pub(super) way: Way,
    pub(super) hog: bool,
    pub(super) tables: u64,
    /// Tables of which not all was measured.
    pub(super) failed: u64,
    /// Those of them which the same method measured without the hog.
    pub(super) failed_by_hog: u64,
    pub(super) minutes: f64,
    /// Decided comparisons of all.
    pub(super) decided: Count,
    /// Decided comparisons per minute.
    pub(super) per_minute: Option<Ratio>,
    /// Wrong decisions among those whose answer is known.
    pub(super) wrong: Count,
    /// Slowed cells that were called slower.
    pub(super) found: Count,
    /// Intervals that contain the known answer, among those that were given.
    pub(super) covered: Count,
}

impl Tally {
    pub(super) fn of(records: &[Record], way: Way, hog: bool) -> Self {
        let mut tally = Self {
            way,
            hog,
            tables: 0,
            failed: 0,
            failed_by_hog: 0,
            minutes: 0.0,
            decided: Count::default(),
            per_minute: None,
            wrong: Count::default(),
            found: Count::default(),
            covered: Count::default(),
        };
        for record in records.iter().filter(|r| r.way == way && r.hog == hog) {
            tally.tables += 1;
            tally.failed += u64::from(record.failed.is_some());
            tally.failed_by_hog += u64::from(record.failed_by_hog(records));
            tally.minutes += record.seconds / 60.0;
            tally.decided.of += record.comparisons;
            for told in &record.told {
                tally.add(told);
            }
        }
        tally.per_minute = tally.decided.share().map(|share| {
            let per_minute = |share| share * tally.decided.of as f64 / tally.minutes;
            Ratio {
                value: per_minute(share.value),
                low: per_minute(share.low),
                high: per_minute(share.high),
            }
        });
        tally
    }

    fn add(&mut self, told: &Told) {
        let is_decided = told.answer.verdict != Verdict::Inconclusive;
        self.decided.hits += u64::from(is_decided);
        let Some(truth) = told.truth else { return };
        if is_decided {
            self.wrong.add(!is_right(told, truth));
        }
        if told.is_slowed {
            let is_different = told.answer.verdict == Verdict::Different;
            self.found.add(is_different && is_right(told, truth));
        }
        if let Some(ratio) = told.answer.ratio {
            self.covered
                .add(ratio.low <= truth.high && truth.low <= ratio.high);
        }
    }
}

/// Whether a decision agrees with the known answer.
fn is_right(told: &Told, truth: Truth) -> bool {
    match told.answer.verdict {
        Verdict::Inconclusive => false,
        Verdict::Equivalent => truth.high >= 1.0 - MARGIN && truth.low <= 1.0 + MARGIN,
        Verdict::Different => told.answer.ratio.is_some_and(|ratio| {
            truth.high < 1.0 && ratio.value < 1.0 || truth.low > 1.0 && ratio.value > 1.0
        }),
    }
}

/// Ratio of decisions per minute of one method to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Times {
    /// None if the other decided nothing.
    pub(super) value: Option<f64>,
    pub(super) low: f64,
    /// None if there is no upper bound.
    pub(super) high: Option<f64>,
}

/// Given the number of decisions of both together, those of one are binomial (Przyborowski and Wilenski 1940).
/// Decisions of a table are not independent and at most as many as it has comparisons, so the interval is rather too
/// wide. None if neither decided anything.
pub(super) fn times(one: &Tally, other: &Tally) -> Option<Times> {
    let (a, b) = (one.decided.hits, other.decided.hits);
    let share = binomial_interval(a, a + b, CONFIDENCE)?;
    let odds = |share: f64| (share < 1.0).then(|| share / (1.0 - share));
    let per_time = other.minutes / one.minutes;
    let times = |share| odds(share).map(|odds| odds * per_time);
    Some(Times {
        value: times(share.value),
        low: times(share.low)?,
        high: times(share.high),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::judge::Answer;
    use super::super::question::Cell;
    use super::*;

    fn told(verdict: Verdict, ratio: (f64, f64), truth: Option<f64>) -> Told {
        Told {
            cell: Cell {
                path: "veth",
                size: 16,
            },
            is_slowed: truth.is_some_and(|truth| truth < 1.0),
            truth: truth.map(|truth| Truth {
                low: truth,
                high: truth,
            }),
            answer: Answer {
                verdict,
                ratio: Some(Ratio {
                    value: f64::midpoint(ratio.0, ratio.1),
                    low: ratio.0,
                    high: ratio.1,
                }),
            },
        }
    }

    pub(in super::super) fn record(way: Way, hog: bool, told: Vec<Told>) -> Record {
        Record {
            question: "tcp_rr_known",
            way,
            hog,
            repetition: 0,
            seconds: 30.0,
            comparisons: told.len() as u64,
            told,
            failed: None,
        }
    }

    /// A table that failed.
    pub(in super::super) fn failed(way: Way, hog: bool) -> Record {
        Record {
            told: Vec::new(),
            failed: Some("it does not start".to_owned()),
            ..decided(way, hog, 0, 2)
        }
    }

    /// A table with this many comparisons, of which some are decided, all rightly.
    pub(in super::super) fn decided(way: Way, hog: bool, hits: usize, of: usize) -> Record {
        let one = |n| {
            if n < hits {
                told(Verdict::Different, (0.94, 0.96), Some(0.95))
            } else {
                told(Verdict::Inconclusive, (0.5, 2.0), Some(0.95))
            }
        };
        record(way, hog, (0..of).map(one).collect())
    }

    #[test]
    fn right_wrong_found_covered() {
        use Verdict::{Different, Equivalent, Inconclusive};
        let all = vec![
            told(Different, (0.94, 0.96), Some(0.95)),
            told(Different, (1.01, 1.03), Some(0.95)),
            told(Different, (0.97, 0.99), Some(1.0)),
            told(Equivalent, (0.99, 1.01), Some(1.0)),
            told(Equivalent, (0.985, 1.01), Some(0.95)),
            told(Inconclusive, (0.5, 2.0), Some(0.95)),
            told(Different, (0.7, 0.8), None),
        ];
        let records = [
            record(Way::Turns, true, all),
            decided(Way::Windows, true, 3, 3),
        ];
        let tally = Tally::of(&records, Way::Turns, true);
        assert_eq!(tally.decided, Count { hits: 6, of: 7 });
        assert_eq!(tally.wrong, Count { hits: 3, of: 5 });
        assert_eq!(tally.found, Count { hits: 1, of: 4 });
        assert_eq!(tally.covered, Count { hits: 3, of: 6 });
        let per_minute = tally.per_minute.unwrap();
        assert!((per_minute.value - 12.0).abs() < 1e-9, "{per_minute:?}");
    }

    #[test]
    fn what_failed_took_time_and_decided_nothing() {
        let records = [
            failed(Way::Netperf, false),
            decided(Way::Netperf, false, 2, 2),
        ];
        let tally = Tally::of(&records, Way::Netperf, false);
        assert_eq!((tally.tables, tally.failed), (2, 1));
        assert_eq!(tally.decided, Count { hits: 2, of: 4 });
        assert!((tally.minutes - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_hog_made_it_fail_if_it_works_without() {
        let by_hog = |records: &[Record]| Tally::of(records, Way::Windows, true).failed_by_hog;
        let quiet = || decided(Way::Windows, false, 1, 2);
        let other_table = || Record {
            question: "tcp_rr_paths",
            ..quiet()
        };
        let hogged = || failed(Way::Windows, true);
        assert_eq!(by_hog(&[hogged(), quiet(), hogged()]), 2);
        assert_eq!(by_hog(&[hogged()]), 0);
        assert_eq!(by_hog(&[hogged(), other_table()]), 0);
        assert_eq!(by_hog(&[hogged(), decided(Way::Turns, false, 1, 2)]), 0);
        assert_eq!(by_hog(&[hogged(), quiet(), failed(Way::Windows, false)]), 0);
        let records = [failed(Way::Windows, false), quiet()];
        assert_eq!(Tally::of(&records, Way::Windows, false).failed_by_hog, 0);
    }

    #[test]
    fn times_as_many() {
        let tally = |hits, of| {
            let records = [decided(Way::Turns, true, hits, of)];
            Tally::of(&records, Way::Turns, true)
        };
        let ratio = times(&tally(40, 40), &tally(20, 40)).unwrap();
        assert!((ratio.value.unwrap() - 2.0).abs() < 1e-9);
        assert!(ratio.low > 1.1 && ratio.high.unwrap() < 3.7, "{ratio:?}");
        let none = times(&tally(40, 40), &tally(0, 40)).unwrap();
        assert_eq!((none.value, none.high), (None, None));
        assert!(none.low > 8.0, "{none:?}");
        assert_eq!(times(&tally(0, 4), &tally(0, 4)), None);
    }
}
