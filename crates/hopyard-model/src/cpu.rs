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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A load that used 300 ms of two CPUs in 200 ms, and nothing else.
    fn plain() -> CpuUse {
        CpuUse {
            elapsed_ns: 2e8,
            cpus: 2,
            busy_ns: 3e8,
            closure: 1.0,
            ..CpuUse::default()
        }
    }

    fn within(cpu: CpuUse, tolerance: f64) -> Option<f64> {
        cpu.net_ns(CpuTolerance(tolerance)).map(|ns| ns / 1e6)
    }

    #[test]
    fn a_figure_needs_bounds_that_are_close() {
        assert_eq!(within(plain(), 0.0), Some(300.0));
        let stolen = CpuUse {
            busy_ns: 2.9e8,
            steal_ns: 1e7,
            ..plain()
        };
        assert_eq!(within(stolen, 0.02), None);
        assert_eq!(within(stolen, 0.04), Some(295.0));
        let apart = CpuUse {
            busy_is_exact: true,
            baseline_ns: 1e7,
            baseline_most_ns: Some(2e7),
            ..stolen
        };
        assert_eq!(within(apart, 0.0), Some(280.0));
        let counted_early = CpuUse {
            workers_ns: Some(2.99e8),
            ..apart
        };
        assert_eq!(within(counted_early, 0.0), Some(280.0));
        // Uncertainty of the baseline is uncertainty of the load.
        let baseline = CpuUse {
            baseline_ns: 1e7,
            baseline_most_ns: Some(2e7),
            ..plain()
        };
        assert_eq!(within(baseline, 0.02), None);
        assert_eq!(within(baseline, 0.04), Some(285.0));
    }

    #[test]
    fn what_the_workers_used_is_the_least() {
        let of = |workers: f64, baseline: f64| CpuUse {
            workers_ns: Some(workers * 1e6),
            baseline_ns: baseline * 1e6,
            ..plain()
        };
        // A baseline that the workers cannot have left in this window.
        assert_eq!(within(of(295.0, 20.0), 0.02), Some(295.0));
        assert_eq!(within(of(250.0, 20.0), 0.02), Some(280.0));
        // Clocks read a moment apart, and readings that contradict each other.
        assert_eq!(within(of(302.0, 0.0), 0.02), Some(300.0));
        assert_eq!(within(of(310.0, 0.0), 0.02), None);
    }

    #[test]
    fn what_is_not_above_others_is_no_figure() {
        for foreign_ns in [3e8, 4e8] {
            let cpu = CpuUse {
                foreign_ns,
                ..plain()
            };
            assert_eq!(within(cpu, 0.02), None);
        }
    }

    #[test]
    fn two_machines_are_as_one_with_the_cpus_of_both() {
        // Read over half the time: in the other's window it is twice as much.
        let other = CpuUse {
            elapsed_ns: 1e8,
            cpus: 4,
            busy_ns: 1e8,
            steal_ns: 1e6,
            workers_ns: Some(5e7),
            closure: 0.7,
            ..plain()
        };
        let both = CpuUse {
            workers_ns: Some(1e8),
            baseline_ns: 1e6,
            baseline_most_ns: Some(3e6),
            ..plain()
        }
        .beside(other);
        assert_eq!((both.elapsed_ns, both.cpus), (2e8, 6));
        assert_eq!((both.busy_ns, both.steal_ns), (5e8, 2e6));
        assert_eq!(both.workers_ns, Some(2e8));
        assert_eq!((both.baseline_ns, both.baseline_most_ns), (1e6, Some(3e6)));
        assert!((both.closure - 0.8).abs() < 1e-9);
        assert!(!both.is_partial);
        // If one of the two is unknown, their sum is unknown.
        assert_eq!(plain().beside(other).workers_ns, None);
    }

    #[test]
    fn a_sample_of_an_older_version_reads() {
        let json = serde_json::to_value(plain()).unwrap();
        assert!(json.get("baseline_most_ns").is_none());
        assert_eq!(serde_json::from_value::<CpuUse>(json).unwrap(), plain());
    }

    proptest! {
        /// Any readings.
        #[test]
        fn no_figure_is_below_own_use_or_above_the_upper_bound(
            busy in -5e8..8e8f64,
            steal in 0.0..5e8f64,
            workers in prop::option::of(0.0..5e8f64),
            others in [0.0..4e8f64, 0.0..1e8f64],
            baseline in 0.0..2e8f64,
            unsure in prop::option::of(0.0..1e8f64),
            tolerance in 0.0..1.0f64,
        ) {
            let cpu = CpuUse {
                busy_ns: busy,
                steal_ns: steal,
                workers_ns: workers,
                foreign_ns: others[0],
                controller_ns: others[1],
                baseline_ns: baseline,
                baseline_most_ns: unsure.map(|more| baseline + more),
                ..plain()
            };
            if let Some(figure) = cpu.net_ns(CpuTolerance(tolerance)) {
                let own = workers.unwrap_or(0.0);
                let most = busy + steal - others[0] - others[1];
                prop_assert!(figure > 0.0 && figure <= most + 1e-3);
                prop_assert!(figure >= own.min(most) - 1e-3);
                prop_assert!(own <= most * (1.0 + tolerance) + 1e-3);
                let apart = steal + unsure.unwrap_or(0.0);
                prop_assert!(apart <= tolerance * figure + 1e-3);
            }
        }
    }
}
