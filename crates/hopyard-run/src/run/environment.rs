//! What is stored of the machine that a run is made on.

use super::Error;
use crate::measure::{self, Sampler};
use crate::meter;
use crate::model::{Cpus, Environment, Placement, SplitCpus};
use crate::plan::Plan;

pub(super) fn of_run(plan: &Plan, sampler: &Sampler) -> Result<Environment, Error> {
    let mut environment = meter::environment::capture(&sampler.meter);
    environment.split_cpus = split_cpus()?;
    // Between endpoints that exist, workers read their own machines, and say themselves what they cannot see.
    if plan.endpoints.as_ref().is_some_and(|e| e.uplink.is_none()) {
        environment.others_hidden = None;
    }
    Ok(environment)
}

/// The CPUs of the two ends on this machine under the default placement.
fn split_cpus() -> Result<Option<SplitCpus>, Error> {
    let allowed = hopyard_net::cpu::current_affinity().map_err(measure::Error::from)?;
    let split = measure::places(Placement::Split, &allowed).ok();
    Ok(split.map(|split| SplitCpus {
        client: Cpus(split.client),
        server: Cpus(split.server),
    }))
}
