//! Turns: the short windows of a sample, if cells take turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CpuUse;
use super::counted::{Counted, InvalidSample, plausible};

/// One short window of a cell, in a round in which every other cell of its group had one as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// The round, from 0, within the block. Turns of one round are milliseconds apart.
    pub round: u32,
    /// Length of the window as the receiver saw it, ns.
    pub window_ns: u64,
    /// What arrived (for request/response: what the client completed).
    pub received: Counted,
    /// What was given to the kernel in the same window.
    pub sent: Counted,
    /// CPU use of the whole machine in the window.
    pub cpu: CpuUse,
    /// What else used the CPUs meanwhile, if it was too much. It is judged by the CPU clocks and the lateness of the
    /// edges, never by what was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
}

/// What disturbed a turn.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Disturbance {
    /// The hypervisor took CPU time.
    Steal,
    /// Other processes used CPU time.
    Foreign,
    /// A real-time thread woke up late at an edge of the window.
    Late,
}

impl Disturbance {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Steal, Self::Foreign, Self::Late];

    /// The disturbance in words, as warnings print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Steal => "steal",
            Self::Foreign => "other processes",
            Self::Late => "late wake-ups",
        }
    }
}

/// Fewer undisturbed turns than this are not enough by themselves.
const ENOUGH: usize = 2;

impl Turn {
    /// Whether nothing disturbed it.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.disturbance.is_none()
    }

    /// Checks the counts of a stored turn against what a window can hold.
    pub(super) fn check(&self) -> Result<(), InvalidSample> {
        if self.window_ns == 0 {
            return Err(InvalidSample::NoTime("turns: window_ns"));
        }
        self.cpu.check()?;
        plausible(&[
            ("turns: window_ns", self.window_ns),
            ("turns: received", self.received.largest()),
            ("turns: sent", self.sent.largest()),
        ])
    }
}

/// The most turns of a cell for each wanted one: disturbed ones are repeated.
const ATTEMPTS: u32 = 3;
/// The most of those in one round.
const AT_ONCE: u32 = 2;

/// Whether a generation needs another round, after each cell has taken `taken` turns. It continues until each cell has
/// the wanted number of rounds with an undisturbed turn, or the attempts are used up. That depends on disturbances
/// alone.
#[must_use]
pub fn takes_another(taken: u32, wanted: u32, fewest_quiet: usize) -> bool {
    fewest_quiet < wanted as usize && taken < wanted.saturating_mul(ATTEMPTS)
}

/// Whether a disturbed turn is repeated at once, so that the other cells keep their round. It was attempt number
/// `attempt` of its cell in this round, from 1, and the cell has `taken` turns in the generation so far.
#[must_use]
pub fn takes_again(attempt: u32, taken: u32, wanted: u32) -> bool {
    attempt < AT_ONCE && taken < wanted.saturating_mul(ATTEMPTS)
}

/// The turns, or pairs of turns, that figures are made from: the undisturbed ones, or all if those are too few. Which
/// those are depends on disturbances alone.
#[must_use]
pub fn kept<T>(all: Vec<T>, is_quiet: impl Fn(&T) -> bool) -> Vec<T> {
    if are_enough(all.iter().filter(|turn| is_quiet(turn)).count(), all.len()) {
        all.into_iter().filter(is_quiet).collect()
    } else {
        all
    }
}

/// Whether there are enough undisturbed turns to make figures from them alone.
#[must_use]
pub fn has_quiet_turns(turns: &[Turn]) -> bool {
    let quiet = turns.iter().filter(|turn| turn.is_quiet()).count();
    are_enough(quiet, turns.len())
}

fn are_enough(quiet: usize, all: usize) -> bool {
    quiet >= ENOUGH && 8 * quiet >= all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_rounds_are_taken_again_up_to_a_limit() {
        assert!(takes_another(3, 4, 3), "as many rounds as are wanted");
        assert!(
            takes_another(6, 4, 3),
            "each was taken twice, and one is lacking"
        );
        assert!(!takes_another(4, 4, 4), "all were quiet");
        assert!(takes_another(11, 4, 3), "one more attempt");
        assert!(!takes_another(12, 4, 0), "no more attempts");
    }

    #[test]
    fn a_disturbed_turn_is_taken_again_at_once_while_there_are_attempts() {
        assert!(takes_again(1, 1, 4));
        assert!(!takes_again(2, 2, 4), "once in a round");
        assert!(takes_again(1, 11, 4));
        assert!(!takes_again(1, 12, 4), "no more attempts");
        assert!(!takes_again(1, 1, 0), "none is wanted");
    }

    #[test]
    fn disturbed_turns_count_only_where_too_few_others_are() {
        let of = |text: &str| kept(text.chars().collect(), |c| c.is_uppercase());
        assert_eq!(of("AbCdE"), ['A', 'C', 'E']);
        assert_eq!(of("Abcde"), ['A', 'b', 'c', 'd', 'e']);
        assert_eq!(of(""), [] as [char; 0]);
        // An eighth of 60 is 7.5.
        let some_quiet = |quiet: usize| of(&("A".repeat(quiet) + &"b".repeat(60 - quiet))).len();
        assert_eq!([some_quiet(7), some_quiet(8)], [60, 8]);
    }
}
