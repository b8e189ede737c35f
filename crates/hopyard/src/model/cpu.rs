//! CPU time of a window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sample::{Absurd, plausible, size};

/// CPU use of the whole machine over a window. All spans are CPU time summed over CPUs, ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuUse {
    /// Wall time of the window, ns.
    pub elapsed_ns: f64,
    /// CPUs that were online.
    pub cpus: u32,
    /// Busy: wall minus idle, iowait and steal, over all CPUs.
    pub busy_ns: f64,
    /// Taken by the hypervisor.
    pub steal_ns: f64,
    /// Of the processes of the load itself and of a switch that is one (scheduler time of their cgroup).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers_ns: Option<f64>,
    /// Of other people's processes.
    pub foreign_ns: f64,
    /// Of hopyard's controller.
    pub controller_ns: f64,
    /// What the machine uses with nothing running, for a window of this length.
    pub baseline_ns: f64,
    /// Sum of all columns of /proc/stat over elapsed × CPUs: 1 where the ticks add up.
    pub closure: f64,
    /// The tick-sampled split; worth something only where `closure` is near 1 over the whole run.
    pub split: TickSplit,
    /// Processes and threads started on the machine in the window (hopyard starts none there).
    pub forks: u64,
}

impl CpuUse {
    /// What the load cost: busy time without other people's processes, the controller and the
    /// quiet machine's own share.
    #[must_use]
    pub fn net_ns(&self) -> f64 {
        self.busy_ns - self.foreign_ns - self.controller_ns - self.baseline_ns
    }

    /// That of two windows of the same machine together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let elapsed_ns = self.elapsed_ns + other.elapsed_ns;
        let weighted =
            |of: fn(&Self) -> f64| of(&self) * self.elapsed_ns + of(&other) * other.elapsed_ns;
        Self {
            elapsed_ns,
            cpus: self.cpus.min(other.cpus),
            busy_ns: self.busy_ns + other.busy_ns,
            steal_ns: self.steal_ns + other.steal_ns,
            workers_ns: self
                .workers_ns
                .zip(other.workers_ns)
                .map(|(one, two)| one + two),
            foreign_ns: self.foreign_ns + other.foreign_ns,
            controller_ns: self.controller_ns + other.controller_ns,
            baseline_ns: self.baseline_ns + other.baseline_ns,
            closure: weighted(|cpu| cpu.closure) / elapsed_ns,
            split: TickSplit {
                user_ns: self.split.user_ns + other.split.user_ns,
                system_ns: self.split.system_ns + other.split.system_ns,
                irq_ns: self.split.irq_ns + other.split.irq_ns,
                softirq_ns: self.split.softirq_ns + other.split.softirq_ns,
            },
            forks: self.forks + other.forks,
        }
    }

    /// Can it be?
    pub(super) fn check(&self) -> Result<(), Absurd> {
        if self.cpus == 0 {
            return Err(Absurd::Cpus(self.cpus));
        }
        if self.elapsed_ns <= 0.0 {
            return Err(Absurd::Elapsed(self.elapsed_ns));
        }
        let spans = [
            self.elapsed_ns,
            self.busy_ns,
            self.steal_ns,
            self.foreign_ns,
            self.controller_ns,
            self.baseline_ns,
            self.closure,
        ];
        let split = self.split;
        let ticks = [
            split.user_ns,
            split.system_ns,
            split.irq_ns,
            split.softirq_ns,
        ];
        let all = spans.into_iter().chain(ticks).chain(self.workers_ns);
        let of_each = all.map(|ns| ns / f64::from(self.cpus));
        plausible(&[("cpu", size(of_each))])
    }
}

/// How full some CPUs were, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyCpus {
    /// How many.
    pub cpus: u32,
    /// Share of the window for which they were not idle. Time that a hypervisor took counts: they had none left.
    pub busy_ratio: f64,
}

impl BusyCpus {
    /// The mean share of windows of equal length; `None` of none.
    #[must_use]
    pub fn mean(all: impl Iterator<Item = Self>) -> Option<Self> {
        let (mut sum, mut count, mut cpus) = (0.0, 0.0, 0);
        for one in all {
            sum += one.busy_ratio;
            count += 1.0;
            cpus = one.cpus;
        }
        (count > 0.0).then(|| Self {
            cpus,
            busy_ratio: sum / count,
        })
    }
}

/// The tick-sampled columns of /proc/stat, ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TickSplit {
    /// user + nice.
    pub user_ns: f64,
    /// system.
    pub system_ns: f64,
    /// irq.
    pub irq_ns: f64,
    /// softirq.
    pub softirq_ns: f64,
}
