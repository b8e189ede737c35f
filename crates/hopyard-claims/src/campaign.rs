//! The runs that claims need: prepared all before the first is made, and gone on with where they were interrupted.

use std::path::PathBuf;
use std::time::Duration;

use super::demand::PlanDemand;
use super::kept::Error;
use crate::run::{self, Prepared};
use crate::store::{self, End};
use crate::units::ns;

/// A block may take this many times its estimate, on a slow machine or where windows are taken again. Without that, a plan that has
/// just about what 8 blocks take ends with 7, and decides nothing. On one machine labs took so long to build that blocks of short windows
/// took 1.4 times their estimate.
const RESERVE: f64 = 1.4;

/// A plan about to be run, or gone on with.
#[derive(Debug)]
pub struct Next {
    /// Where to.
    pub directory: PathBuf,
    /// What is to be done.
    pub prepared: Prepared,
    /// The time that it takes.
    pub wants: Wants,
}

/// The time that a plan takes, roughly.
#[derive(Debug, Clone, Copy)]
pub struct Wants {
    /// Less than this, and it decides nothing.
    pub least: Duration,
    pub most: Duration,
    /// Claims that are judged by it on this machine.
    pub claims: u32,
}

impl PlanDemand {
    /// Prepares its run in a directory; `None` where it was carried out already. `limit` is for a run that goes on: one
    /// that had come to the end of its time does so only with a new limit.
    ///
    /// # Errors
    /// This host cannot, or cannot go on with it.
    pub fn prepare(
        &self,
        directory: PathBuf,
        seed: u64,
        limit: Option<Duration>,
    ) -> Result<Option<Next>, Error> {
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
            wants: Wants {
                least: prepared.least_estimate(),
                most: prepared.estimate(),
                claims: self.claims,
            },
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

/// Shares a time among plans. Each first gets the least that it takes to decide anything, with a reserve if there is enough for all with
/// it, without one if there is enough without; the rest is shared by the number of claims that plans judge, and none gets more than it
/// wants, or its least with the reserve. If there is more time than all want, each gets more, because windows and turns that others
/// disturbed are taken again.
#[must_use]
pub fn shares(plans: &[Wants], time: Duration) -> Vec<Duration> {
    // Windows that are taken again take their time from a plan of a fixed number of blocks too.
    let with_reserve = |plan: &Wants| plan.most.max(plan.least.mul_f64(RESERVE));
    let most: Vec<Duration> = plans.iter().map(with_reserve).collect();
    let worth: Vec<u32> = plans.iter().map(|plan| plan.claims.max(1)).collect();
    let all: Duration = most.iter().sum();
    if all <= time {
        let more = time.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE);
        return most
            .iter()
            .map(|most| most.mul_f64(more.min(10.0)))
            .collect();
    }
    for reserve in [RESERVE, 1.0] {
        let least = plans
            .iter()
            .map(|plan| plan.least.mul_f64(reserve))
            .collect::<Vec<_>>();
        let Some(rest) = time.checked_sub(least.iter().sum()) else {
            continue;
        };
        let more: Vec<Duration> = most.iter().zip(&least).map(|(m, l)| *m - *l).collect();
        let more = spread(&more, &worth, rest);
        return least.iter().zip(more).map(|(l, m)| *l + m).collect();
    }
    spread(&most, &worth, time)
}

/// Spreads a time by worth; nobody has more than they want.
fn spread(wanted: &[Duration], worth: &[u32], time: Duration) -> Vec<Duration> {
    let mut shares: Vec<Option<Duration>> = vec![None; wanted.len()];
    loop {
        let given: Duration = shares.iter().flatten().sum();
        let left = time.saturating_sub(given);
        let open = |at: &usize| shares[*at].is_none();
        let of_all: u32 = (0..wanted.len()).filter(open).map(|at| worth[at]).sum();
        let share = |at: usize| left.mul_f64(f64::from(worth[at]) / f64::from(of_all));
        // Those that need less than their share have what they need.
        let sated: Vec<usize> = (0..wanted.len())
            .filter(open)
            .filter(|at| wanted[*at] <= share(*at))
            .collect();
        if sated.is_empty() {
            return (0..wanted.len())
                .map(|at| shares[at].unwrap_or_else(|| share(at)))
                .collect();
        }
        for at in sated {
            shares[at] = Some(wanted[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plans by the least and the most that they take, seconds, and the claims that they judge.
    fn of(plans: &[(u64, u64, u32)], time: u64) -> Vec<u64> {
        let wants = |(least, most, claims): &(u64, u64, u32)| Wants {
            least: Duration::from_secs(*least),
            most: Duration::from_secs(*most),
            claims: *claims,
        };
        let plans: Vec<_> = plans.iter().map(wants).collect();
        let shares = shares(&plans, Duration::from_secs(time));
        shares.iter().map(Duration::as_secs).collect()
    }

    #[test]
    fn time_goes_where_it_decides_most() {
        // Two of three want more than there is, and have it as 9 to 1.
        assert_eq!(
            of(&[(0, 100, 1), (0, 1000, 9), (0, 1000, 1)], 1100),
            [100, 900, 100]
        );
        assert_eq!(of(&[(0, 1000, 1), (0, 1000, 1)], 600), [300, 300]);
        // What the one with most claims does not take, the other has.
        assert_eq!(of(&[(0, 50, 10), (0, 1000, 1)], 600), [50, 550]);
        assert_eq!(of(&[(0, 10, 3), (0, 30, 0)], 80), [20, 60]);
        assert_eq!(of(&[(0, 1000, 0)], 0), [0]);
        assert_eq!(of(&[], 10), [0; 0]);
    }

    #[test]
    fn a_plan_has_what_it_takes_to_decide_anything() {
        // By the number of claims alone the first would have 60 of 660 seconds, too few for a verdict. It has its least and 0.4 times
        // that, and an eleventh of what is left.
        assert_eq!(of(&[(150, 300, 1), (200, 1000, 10)], 660), [225, 434]);
        // Enough for all without a reserve alone.
        assert_eq!(of(&[(150, 300, 1), (500, 1000, 10)], 661), [151, 510]);
        // A plan that wants its least alone has the reserve too, and no more.
        assert_eq!(of(&[(100, 100, 1), (200, 1000, 1)], 400), [140, 260]);
        assert_eq!(of(&[(100, 100, 9), (200, 1000, 1)], 1000), [140, 860]);
        // Not enough for all.
        assert_eq!(of(&[(150, 300, 1), (600, 1000, 10)], 660), [60, 600]);
    }
}
