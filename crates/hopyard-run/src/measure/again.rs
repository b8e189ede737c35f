//! Windows that are taken again, because the machine missed them or others disturbed them.

use std::time::Duration;

use super::Error;
use super::disturbance::{RetakeBudget, disturbed};
use crate::model::Measurement;

/// How often a window that the machine missed, or that others disturbed, is repeated.
const AGAIN: u32 = 2;

/// Takes a window of a given length. If the machine missed it, that says nothing about the path: it is repeated, each time twice as
/// long, since what keeps CPUs from a window may last.
pub(super) fn if_missed(
    window: Duration,
    take: impl Fn(Duration) -> Result<Measurement, Error>,
) -> Result<Measurement, Error> {
    let mut missed_windows = 0;
    loop {
        match take(window * (1 << missed_windows)) {
            Err(error) if error.is_missed() && missed_windows < AGAIN => missed_windows += 1,
            measured => {
                return measured.map(|measurement| Measurement {
                    missed_windows,
                    ..measurement
                });
            }
        }
    }
}

/// Takes a window as [`if_missed`], and repeats it at once if others disturbed it, as far as there is a budget for that. If a
/// repeated one fails, the one before counts: only the disturbance may decide which sample a cell has.
pub(super) fn if_disturbed(
    budget: &RetakeBudget,
    window: Duration,
    take: impl Fn(Duration) -> Result<Measurement, Error>,
) -> Result<Measurement, Error> {
    let mut measured = if_missed(window, &take)?;
    budget.note_taken();
    while measured.missed_windows < AGAIN && disturbed(&measured) && budget.try_spend() {
        let missed_windows = measured.missed_windows + 1;
        measured = match take(window) {
            Ok(again) => again,
            Err(error) if error.is_interrupt() => return Err(error),
            Err(_) => measured,
        };
        measured.missed_windows = missed_windows;
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::assess::testing::measured;

    const WINDOW: Duration = Duration::from_millis(200);

    /// What comes of a window if attempts at it have these results: how much arrived, and how many windows were repeated.
    fn taken(attempts: Vec<Result<Measurement, Error>>) -> Result<(u64, u32), Error> {
        let budget = RetakeBudget::default();
        for _ in 0..40 {
            budget.note_taken();
        }
        let attempts = RefCell::new(attempts.into_iter());
        let measured = if_disturbed(&budget, WINDOW, |_| attempts.borrow_mut().next().unwrap())?;
        assert!(attempts.borrow_mut().next().is_none());
        Ok((measured.received.bytes, measured.missed_windows))
    }

    fn disturbed_by_steal(bytes: u64) -> Result<Measurement, Error> {
        let mut disturbed = measured(bytes);
        disturbed.cpu.steal_ns = 1e8;
        Ok(disturbed)
    }

    fn nothing() -> Result<Measurement, Error> {
        Err(Error::Nothing {
            drops: 1,
            timeouts: 0,
            was_taken: false,
        })
    }

    fn missed() -> Result<Measurement, Error> {
        Err(Error::Missed("late".to_owned()))
    }

    #[test]
    fn a_failed_repetition_leaves_the_sample_before() {
        let of = |attempts| taken(attempts).unwrap();
        assert_eq!(of(vec![Ok(measured(1))]), (1, 0));
        assert_eq!(of(vec![disturbed_by_steal(1), Ok(measured(2))]), (2, 1));
        let twice = vec![
            disturbed_by_steal(1),
            disturbed_by_steal(2),
            disturbed_by_steal(3),
        ];
        assert_eq!(of(twice), (3, 2));
        assert_eq!(
            of(vec![disturbed_by_steal(1), nothing(), Ok(measured(3))]),
            (3, 2)
        );
        assert_eq!(of(vec![disturbed_by_steal(1), missed(), nothing()]), (1, 2));
        assert!(taken(vec![nothing()]).is_err());
    }

    #[test]
    fn an_interrupt_ends_repetitions() {
        let error = taken(vec![disturbed_by_steal(1), Err(Error::Interrupted)]).unwrap_err();
        assert!(error.is_interrupt());
    }

    #[test]
    fn a_missed_window_is_repeated_twice_as_long() {
        let lengths = RefCell::new(Vec::new());
        let take = |window| {
            lengths.borrow_mut().push(window);
            missed()
        };
        assert!(if_missed(WINDOW, take).unwrap_err().is_missed());
        assert_eq!(lengths.into_inner(), [WINDOW, 2 * WINDOW, 4 * WINDOW]);
    }
}
