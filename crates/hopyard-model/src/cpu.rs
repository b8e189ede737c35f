//! CPU time of a window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::{InvalidSample, plausible, size};

/// CPU use of the whole machine over a window. All spans are CPU time summed over CPUs, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuUse {
    /// Wall time of the window, ns.
    pub elapsed_ns: f64,
    /// CPUs that were online.
    pub cpus: u32,
    /// Least busy time: wall minus idle, iowait and steal, over all CPUs. Idle and stolen time overlap (a CPU that is
    /// woken but not run is in both), so this may be too low, even negative. The upper bound is `busy_ns + steal_ns`.
    pub busy_ns: f64,
    /// Taken by the hypervisor from CPUs, busy or idle.
    pub steal_ns: f64,
    /// Whether no time is both idle and stolen, as of CPUs that do not halt: `busy_ns` is no bound then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub busy_is_exact: bool,
    /// CPU time of the processes of the load and of a switch that is a program (scheduler time of their cgroup).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers_ns: Option<f64>,
    /// CPU time of all other processes.
    pub foreign_ns: f64,
    /// CPU time of hopyard's controller, ns.
    pub controller_ns: f64,
    /// What the idle machine uses in a window of this length. If the hypervisor took time while it was read, this is
    /// the lower bound.
    pub baseline_ns: f64,
    /// The upper bound, if it is higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_most_ns: Option<f64>,
    /// Sum of all columns of /proc/stat over elapsed × CPUs: 1 if the ticks add up.
    pub closure: f64,
    /// The tick-sampled split; meaningful only if `closure` is near 1 over the whole run.
    pub split: TickSplit,
    /// Processes and threads started on the machine in the window (hopyard starts none there).
    pub forks: u64,
    /// Whether the load also ran on another machine whose CPU time could not be read. Then these figures are not used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
}

/// How close the two bounds of a sample's CPU time must be for a figure to be computed, as a share of that figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuTolerance(pub f64);

/// An amount of CPU time that is known between two bounds, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuBounds {
    /// Lower bound. May be negative: see [`CpuUse::busy_ns`].
    pub least_ns: f64,
    /// Upper bound.
    pub most_ns: f64,
}

impl CpuBounds {
    /// The middle between them.
    #[must_use]
    pub fn middle_ns(self) -> f64 {
        f64::midpoint(self.least_ns, self.most_ns)
    }
}

impl CpuUse {
    /// Whether the hypervisor took so much of the machine's time that a window is disturbed: more than 1 % (docs/method.md, "Blocks").
    /// That is less than the smallest step in which the kernel reports steal for a turn, on machines with fewer than 40 CPUs.
    #[must_use]
    pub fn has_much_steal(&self) -> bool {
        self.steal_ns > 0.01 * self.elapsed_ns * f64::from(self.cpus)
    }

    /// What the load cost: busy time minus other processes, the controller and the idle machine's own share.
    #[must_use]
    pub fn net(&self) -> CpuBounds {
        let left = self.busy_ns - self.foreign_ns - self.controller_ns;
        if self.busy_is_exact {
            let exact = left - self.baseline_ns;
            return CpuBounds {
                least_ns: exact,
                most_ns: exact,
            };
        }
        CpuBounds {
            least_ns: left - self.baseline_most_ns.unwrap_or(self.baseline_ns),
            most_ns: left + self.steal_ns - self.baseline_ns,
        }
    }

    /// What the load cost as one figure, ns: between the bounds, above 0, and at least the known use of the load's own
    /// processes. `None` if the bounds are further apart than `tolerance`, the readings contradict each other, or part
    /// of the load ran elsewhere.
    #[must_use]
    pub fn net_ns(&self, tolerance: CpuTolerance) -> Option<f64> {
        if self.is_partial {
            return None;
        }
        let CpuTolerance(tolerance) = tolerance;
        let bounds = self.net();
        if self.busy_is_exact {
            // The scheduler's clocks are not: where one CPU wakes another, they give the time until that one notices to who is woken.
            return (bounds.least_ns > 0.0).then_some(bounds.least_ns);
        }
        // The baseline was read in another window; in this one the idle machine may have used less beside the workers.
        let without_baseline = bounds.most_ns + self.baseline_ns;
        let own = self.workers_ns.unwrap_or(0.0);
        if own > without_baseline * (1.0 + tolerance) {
            return None;
        }
        let figure = bounds.middle_ns().max(own.min(without_baseline));
        // The scheduler's clocks may count stolen time as used (without PARAVIRT_TIME_ACCOUNTING). So the workers' use
        // raises the figure, but does not narrow the bounds.
        let is_close = bounds.most_ns - bounds.least_ns <= tolerance * figure;
        (figure > 0.0 && is_close).then_some(figure)
    }

    /// Two windows of the same machine combined.
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
            busy_is_exact: self.busy_is_exact && other.busy_is_exact,
            workers_ns: self
                .workers_ns
                .zip(other.workers_ns)
                .map(|(one, two)| one + two),
            foreign_ns: self.foreign_ns + other.foreign_ns,
            controller_ns: self.controller_ns + other.controller_ns,
            baseline_ns: self.baseline_ns + other.baseline_ns,
            baseline_most_ns: match (self.baseline_most_ns, other.baseline_most_ns) {
                (None, None) => None,
                (one, two) => {
                    Some(one.unwrap_or(self.baseline_ns) + two.unwrap_or(other.baseline_ns))
                }
            },
            closure: weighted(|cpu| cpu.closure) / elapsed_ns,
            split: TickSplit {
                user_ns: self.split.user_ns + other.split.user_ns,
                system_ns: self.split.system_ns + other.split.system_ns,
                irq_ns: self.split.irq_ns + other.split.irq_ns,
                softirq_ns: self.split.softirq_ns + other.split.softirq_ns,
            },
            forks: self.forks + other.forks,
            is_partial: self.is_partial || other.is_partial,
        }
    }

    /// Two machines over one window, each read locally, combined: as one machine with the CPUs of both, over this one's
    /// time.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        let stretch = self.elapsed_ns / other.elapsed_ns;
        let sum = |of: fn(&Self) -> f64| of(&self) + of(&other) * stretch;
        let (cpus, other_cpus) = (f64::from(self.cpus), f64::from(other.cpus));
        let is_apart = self.baseline_most_ns.is_some() || other.baseline_most_ns.is_some();
        let most = |cpu: &Self| cpu.baseline_most_ns.unwrap_or(cpu.baseline_ns);
        Self {
            elapsed_ns: self.elapsed_ns,
            cpus: self.cpus + other.cpus,
            busy_ns: sum(|cpu| cpu.busy_ns),
            steal_ns: sum(|cpu| cpu.steal_ns),
            busy_is_exact: self.busy_is_exact && other.busy_is_exact,
            workers_ns: self
                .workers_ns
                .zip(other.workers_ns)
                .map(|(one, two)| one + two * stretch),
            foreign_ns: sum(|cpu| cpu.foreign_ns),
            controller_ns: sum(|cpu| cpu.controller_ns),
            baseline_ns: sum(|cpu| cpu.baseline_ns),
            baseline_most_ns: is_apart.then(|| sum(most)),
            closure: (self.closure * cpus + other.closure * other_cpus) / (cpus + other_cpus),
            split: TickSplit {
                user_ns: sum(|cpu| cpu.split.user_ns),
                system_ns: sum(|cpu| cpu.split.system_ns),
                irq_ns: sum(|cpu| cpu.split.irq_ns),
                softirq_ns: sum(|cpu| cpu.split.softirq_ns),
            },
            forks: self.forks + other.forks,
            is_partial: self.is_partial || other.is_partial,
        }
    }

    /// Checks whether the values are possible.
    ///
    /// # Errors
    /// A window of no time, no CPU, or more time than that many CPUs have in any window.
    pub fn check(&self) -> Result<(), InvalidSample> {
        if self.cpus == 0 {
            return Err(InvalidSample::Cpus(self.cpus));
        }
        if self.elapsed_ns <= 0.0 {
            return Err(InvalidSample::Elapsed(self.elapsed_ns));
        }
        let spans = [
            self.elapsed_ns,
            self.busy_ns,
            self.steal_ns,
            self.foreign_ns,
            self.controller_ns,
            self.baseline_ns,
            self.baseline_most_ns.unwrap_or(0.0),
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

/// How busy a group of CPUs was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyCpus {
    /// Number of CPUs.
    pub cpus: u32,
    /// Share of the window for which they were not idle. Time taken by a hypervisor counts as busy: they had none left.
    pub busy_ratio: f64,
}

impl BusyCpus {
    /// The mean share of windows of equal length; `None` without windows.
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TickSplit {
    /// Columns user and nice, ns.
    pub user_ns: f64,
    /// Column system, ns.
    pub system_ns: f64,
    /// Column irq, ns.
    pub irq_ns: f64,
    /// Column softirq, ns.
    pub softirq_ns: f64,
}

#[cfg(test)]
mod tests;
