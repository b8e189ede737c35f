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
            prepared,
        }))
    }
}

impl Next {
    /// Limits it to its share of a budget that is for this and further plans, of which all take `all`: to more than it takes
    /// where there is more, as blocks of which the hypervisor took time are measured twice.
    pub fn share(&mut self, budget: Duration, all: Duration) {
        let share = self.takes.as_secs_f64() / all.as_secs_f64();
        let share = budget.mul_f64(share.min(1.0));
        let limit = &mut self.prepared.header.time_limit_ns;
        let share = ns(share);
        *limit = Some(limit.map_or(share, |limit| limit.min(share)));
    }
}
