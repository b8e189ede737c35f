//! What the pairs of a relay tell of the relay itself: one that fails whatever it is given must neither draw all the work nor have
//! machines taken for lost that others reach.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::drive::{Answer, Ended};

/// Rests are of 2, 4, 8, … s, up to this exponent: about a pair a minute shows whether the relay can measure again.
const LONGEST_REST: u32 = 6;

/// How a relay has done so far.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Pairs in a row that failed, and when the last one did.
    failed: u32,
    failed_at: Option<Instant>,
    /// Machines that did not answer when it last asked them.
    silent: BTreeSet<u16>,
}

/// How bad a choice a relay is for a pair: first how many of its machines did not answer it, then the failures that it rests after,
/// then the pairs that it runs.
pub(super) type Cost = (usize, u32, usize);

impl Standing {
    /// A pair between these machines has ended at the relay.
    pub(super) fn note(&mut self, ends: [u16; 2], ended: &Ended, now: Instant) {
        let Some(outcome) = &ended.outcome else {
            return;
        };
        let is_measured = outcome.is_measured();
        if is_measured {
            self.failed = 0;
        } else {
            self.failed = self.failed.saturating_add(1);
            self.failed_at = Some(now);
        }
        for (machine, answer) in ends.into_iter().zip(&ended.answers) {
            match answer {
                Some(Answer::No(_)) if !is_measured => {
                    self.silent.insert(machine);
                }
                None if !is_measured => {}
                _ => {
                    self.silent.remove(&machine);
                }
            }
        }
    }

    pub(super) fn found_silent(&self, machine: u16) -> bool {
        self.silent.contains(&machine)
    }

    pub(super) fn cost(&self, ends: [u16; 2], running: usize, now: Instant) -> Cost {
        let silent = ends.into_iter().filter(|m| self.found_silent(*m)).count();
        let failed = if self.rests(now) { self.failed } else { 0 };
        (silent, failed, running)
    }

    /// Does it rest after pairs that failed?
    pub(super) fn rests(&self, now: Instant) -> bool {
        let rest = Duration::from_secs(1 << self.failed.min(LONGEST_REST));
        self.failed_at.is_some_and(|at| now < at + rest)
    }
}

/// Leaves out the answers "no" of machines that another relay may still reach.
pub(super) fn keep_what_all_say(
    answers: &mut [Option<Answer>; 2],
    ends: [u16; 2],
    relays: &[&Standing],
) {
    for (machine, answer) in ends.into_iter().zip(answers) {
        let is_no = matches!(answer, Some(Answer::No(_)));
        if is_no && !relays.iter().all(|relay| relay.found_silent(machine)) {
            *answer = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Outcome, State};

    const NO: Option<Answer> = Some(Answer::No(String::new()));

    fn ended(state: State, answers: [Option<Answer>; 2]) -> Ended {
        let outcome = Outcome {
            state,
            attempt: 1,
            began_ms: 0,
            took_ms: 1,
            cause: (state == State::Failed).then(|| "it broke".into()),
            figures: Vec::new(),
        };
        Ended {
            place: 0,
            outcome: Some(outcome),
            answers,
        }
    }

    fn failed(answers: [Option<Answer>; 2]) -> Ended {
        ended(State::Failed, answers)
    }

    #[test]
    fn a_relay_that_fails_is_spared_for_longer_each_time_until_it_measures() {
        let (mut relay, now) = (Standing::default(), Instant::now());
        let cost =
            |relay: &Standing, after| relay.cost([1, 2], 0, now + Duration::from_secs(after));
        assert_eq!(cost(&relay, 0), (0, 0, 0));
        for (failures, rest) in [(1, 2), (2, 4), (3, 8)] {
            relay.note([3, 4], &failed([Some(Answer::Yes), Some(Answer::Yes)]), now);
            assert_eq!(cost(&relay, rest - 1), (0, failures, 0));
            assert_eq!(cost(&relay, rest), (0, 0, 0));
        }
        for _ in 0..100 {
            relay.note([3, 4], &failed([None, None]), now);
        }
        assert_eq!(cost(&relay, 63).1, 103);
        assert_eq!(cost(&relay, 64).1, 0);
        relay.note([3, 4], &ended(State::Measured, [None, None]), now);
        assert_eq!(cost(&relay, 0), (0, 0, 0));
    }

    #[test]
    fn a_machine_that_one_relay_does_not_reach_is_left_to_the_others() {
        let (mut bad, mut good, now) = (Standing::default(), Standing::default(), Instant::now());
        bad.note([1, 2], &failed([NO, Some(Answer::Yes)]), now);
        good.note([1, 3], &failed([Some(Answer::Yes), NO]), now);
        let said = |bad: &Standing, good: &Standing| {
            let mut answers = [NO, NO];
            keep_what_all_say(&mut answers, [1, 3], &[bad, good]);
            answers
        };
        let later = now + Duration::from_secs(60);
        assert_eq!(bad.cost([1, 2], 0, later), (1, 0, 0));
        assert_eq!(good.cost([1, 2], 9, later), (0, 0, 9));
        assert_eq!(said(&bad, &good), [None, None]);
        bad.note([3, 2], &failed([NO, Some(Answer::Yes)]), now);
        assert_eq!(said(&bad, &good), [None, NO], "no relay reaches 3");
        // Its greeting counts, and so does a pair that was measured.
        good.note([3, 2], &failed([Some(Answer::Yes), Some(Answer::Yes)]), now);
        bad.note([1, 2], &ended(State::Measured, [None, None]), now);
        assert_eq!(bad.cost([1, 2], 0, now), (0, 0, 0));
        assert_eq!(said(&bad, &good), [None, None]);
    }
}
