//! Can this host place and schedule the ends as asked?

use hopyard_net::{Cgroup, cpu};

use super::OnLab;
use crate::model::{self, Axes, Cpus, Scheduler};
use crate::{Error, Result};

pub(super) struct ClientCpus;

impl OnLab for ClientCpus {
    fn check(&self, axes: &Axes) -> Result<()> {
        let Some(model::ClientCpus::These(wanted)) = &axes.client_cpus else {
            return Ok(());
        };
        let allowed = Cpus(cpu::current_affinity()?);
        if wanted.0.iter().all(|cpu| allowed.0.contains(cpu)) {
            return Ok(());
        }
        let wanted = wanted.clone();
        Err(Error::NoSuchCpu { wanted, allowed })
    }
}

pub(super) struct Scheduling;

impl OnLab for Scheduling {
    fn check(&self, axes: &Axes) -> Result<()> {
        if axes.scheduler != Some(Scheduler::Groups) {
            return Ok(());
        }
        if axes.containers.is_none() {
            return Err(Error::OneProcess);
        }
        Ok(Cgroup::check_cpu_shares().map_err(|error| error.or("choose another scheduler"))?)
    }
}
