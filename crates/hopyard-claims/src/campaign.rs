//! The runs that claims need: prepared all before the first is made, and gone on with where they were interrupted.

use std::path::PathBuf;
use std::time::Duration;

use super::demand::PlanDemand;
use super::kept::{Error, Place};
use crate::run::{self, Prepared};
use crate::store::{self, End};
use crate::units::ns;

/// A plan about to be run, or gone on with.
#[derive(Debug)]
pub struct Next {
    /// Where to.
    pub directory: PathBuf,
    /// What is to be done.
    pub prepared: Prepared,
    /// How long it takes at most, roughly.
    pub takes: Duration,
    /// Claims that are judged by it.
    pub claims: u32,
}

impl PlanDemand {
    /// Prepares it; `None` where it was carried out already. `limit` is for a run that goes on: one that had come to
    /// the end of its time does so only with a new limit.
    ///
    /// # Errors
    /// This host cannot, or cannot go on with it.
    pub fn prepare(
        &self,
        place: &Place,
        seed: u64,
        limit: Option<Duration>,
    ) -> Result<Option<Next>, Error> {
        let directory = place.of_plan(&self.plan.name);
        let begun = directory.join("run.json").exists();
        let prepared = if begun {
            let before = store::load(&directory)?;
            run::check_machine(&directory, &before.header.environment)?;
            match before.end {
                Some(End::Complete) => return Ok(None),
                Some(End::TimeLimit) if limit.is_none() => return Ok(None),
                _ => run::resume(&directory, limit, None, None)?,
            }
        } else {
            let mut prepared = run::prepare(&self.plan, seed)?;
            prepared.header.profile = self.profile;
            prepared.header.left_out.extend(self.left_out.clone());
            prepared
        };
        Ok(Some(Next {
            directory,
            takes: prepared.estimate(),
            claims: self.claims,
            prepared,
        }))
    }
}

impl Next {
    /// Limits it to so long, unless its plan does to less.
    pub fn limit_to(&mut self, share: Duration) {
        let limit = &mut self.prepared.header.time_limit_ns;
        let share = ns(share);
        *limit = Some(limit.map_or(share, |limit| limit.min(share)));
    }
}

/// The share of each plan in a time for all: by the number of claims that it judges, and of what a plan does not take the others have
/// more. Where there is more than all take, each has more than it takes, as blocks of which the hypervisor took time are measured twice.
#[must_use]
pub fn shares(plans: &[(Duration, u32)], time: Duration) -> Vec<Duration> {
    let all: Duration = plans.iter().map(|(takes, _)| *takes).sum();
    if all <= time {
        let more = time.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE);
        return plans
            .iter()
            .map(|(takes, _)| takes.mul_f64(more.min(10.0)))
            .collect();
    }
    let mut shares: Vec<Option<Duration>> = vec![None; plans.len()];
    loop {
        let given: Duration = shares.iter().flatten().sum();
        let left = time.saturating_sub(given);
        let open = |at: &usize| shares[*at].is_none();
        let worth = |at: usize| f64::from(plans[at].1.max(1));
        let of_all: f64 = (0..plans.len()).filter(open).map(worth).sum();
        let share = |at: usize| left.mul_f64(worth(at) / of_all);
        // Those that need less than their share have what they need.
        let sated: Vec<usize> = (0..plans.len())
            .filter(open)
            .filter(|at| plans[*at].0 <= share(*at))
            .collect();
        if sated.is_empty() {
            let rest: Vec<Duration> = (0..plans.len())
                .map(|at| shares[at].unwrap_or_else(|| share(at)))
                .collect();
            return rest;
        }
        for at in sated {
            shares[at] = Some(plans[at].0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(plans: &[(u64, u32)], time: u64) -> Vec<u64> {
        let seconds = |(takes, claims): &(u64, u32)| (Duration::from_secs(*takes), *claims);
        let plans: Vec<_> = plans.iter().map(seconds).collect();
        let shares = shares(&plans, Duration::from_secs(time));
        shares.iter().map(Duration::as_secs).collect()
    }

    #[test]
    fn time_goes_where_it_decides_most() {
        // Two of three want more than there is, and have it as 9 to 1.
        assert_eq!(of(&[(100, 1), (1000, 9), (1000, 1)], 1100), [100, 900, 100]);
        assert_eq!(of(&[(1000, 1), (1000, 1)], 600), [300, 300]);
        // What the one with most claims does not take, the other has.
        assert_eq!(of(&[(50, 10), (1000, 1)], 600), [50, 550]);
        assert_eq!(of(&[(10, 3), (30, 0)], 80), [20, 60]);
        assert_eq!(of(&[(1000, 0)], 0), [0]);
        assert_eq!(of(&[], 10), [0; 0]);
    }
}
