//! What would be done, for `hopyard fleet plan`.

use serde::Serialize;

use super::Plan;
use crate::schedule::Pair;

/// A plan in a few words, for `hopyard fleet plan`.
#[derive(Debug, Serialize)]
pub struct Preview<'a> {
    /// Name and version of the document.
    pub schema: &'static str,
    /// The plan.
    pub plan: &'a Plan,
    /// Number of pairs.
    pub pairs: usize,
    /// Names of client and server of each pair, by round.
    pub rounds: Vec<Vec<[&'a str; 2]>>,
    /// About how long it takes with the fewest blocks and with the most, s.
    pub takes_s: [f64; 2],
}

/// Name and version of [`Preview`].
pub(crate) const PLAN_SCHEMA: &str = "hopyard/fleet-plan/1";

impl Plan {
    /// What would be done.
    #[must_use]
    pub fn preview(&self) -> Preview<'_> {
        let name = |machine: u16| &self.endpoints[usize::from(machine)].name[..];
        let named = |round: Vec<Pair>| round.iter().map(|pair| pair.ends().map(name)).collect();
        let rounds: Vec<Vec<[&str; 2]>> = self.rounds().into_iter().map(named).collect();
        Preview {
            schema: PLAN_SCHEMA,
            plan: self,
            pairs: rounds.iter().map(Vec::len).sum(),
            rounds,
            takes_s: self.takes().map(|time| time.as_secs_f64()),
        }
    }
}
