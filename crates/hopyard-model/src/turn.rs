//! Turns: the short windows that a sample is made of where cells take turns.

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
    /// What was handed to the kernel in the same window.
    pub sent: Counted,
    /// CPU use of the whole machine in the window.
    pub cpu: CpuUse,
    /// What else used the CPUs meanwhile, where it was too much. It is told by its own signs, never by what was counted.
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
    /// A thread that runs before all others woke up late at an edge of the window.
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
    /// Was nothing else at work?
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

/// Turns of a cell at most, for each that is wanted: disturbed ones are taken again.
const ATTEMPTS: u32 = 3;
/// And those of them that are taken in one round.
const AT_ONCE: u32 = 2;

/// Does a generation take another round, in which each cell has had so many turns? It does until each cell has as many rounds
/// with an undisturbed turn as are wanted, or the attempts are used up. That depends on disturbances alone.
#[must_use]
pub fn takes_another(taken: u32, wanted: u32, fewest_quiet: usize) -> bool {
    fewest_quiet < wanted as usize && taken < wanted.saturating_mul(ATTEMPTS)
}

/// Is a disturbed turn taken again at once, so that its round is not lost to the other cells? It is the first, second, …
/// `attempt` of its cell in this round, and one of `taken` turns of the generation so far.
#[must_use]
pub fn takes_again(attempt: u32, taken: u32, wanted: u32) -> bool {
    attempt < AT_ONCE && taken < wanted.saturating_mul(ATTEMPTS)
}

/// Of some turns, or pairs of them, those that figures are made of: the undisturbed ones, or all where too few are. Which
/// those are depends on disturbances alone.
#[must_use]
pub fn kept<T>(all: Vec<T>, is_quiet: impl Fn(&T) -> bool) -> Vec<T> {
    if are_enough(all.iter().filter(|turn| is_quiet(turn)).count(), all.len()) {
        all.into_iter().filter(is_quiet).collect()
    } else {
        all
    }
}

/// Are there undisturbed turns enough to make figures of them alone?
#[must_use]
pub fn has_quiet_turns(turns: &[Turn]) -> bool {
    let quiet = turns.iter().filter(|turn| turn.is_quiet()).count();
    are_enough(quiet, turns.len())
}

fn are_enough(quiet: usize, all: usize) -> bool {
    quiet >= ENOUGH.max(all / 8)
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
    }
}
