//! What the CPUs did between two instants.

use std::time::Duration;

use hopyard_model::units::{float, ns};
use hopyard_model::{BusyCpus, CpuAccounting, CpuUse, TickSplit};
use hopyard_net::clock;

use super::super::idle::IdleClock;
use super::super::processes::Clocks;
use super::super::stat::{self, Stat};
use super::Error;

/// Everything about CPU time at one instant.
#[derive(Debug, Clone)]
pub struct CpuReading {
    pub(super) idle: Vec<IdleClock>,
    pub(super) accounting: CpuAccounting,
    pub(super) stat: Stat,
    pub(super) foreign: Taken<Clocks>,
    pub(super) controller_ns: u64,
    /// CPU time of the threads that keep CPUs awake.
    pub(super) kept_ns: u64,
    pub(super) workers: Taken<Option<Duration>>,
}

/// What was read, and when.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken<T> {
    pub(super) what: T,
    /// The middle of the reading, `CLOCK_MONOTONIC`, ns.
    pub(super) at_ns: u64,
}

impl<T> Taken<T> {
    pub(super) fn by(read: impl FnOnce() -> Result<T, Error>) -> Result<Self, Error> {
        let began_ns = clock::monotonic_ns();
        let what = read()?;
        let at_ns = u64::midpoint(began_ns, clock::monotonic_ns());
        Ok(Self { what, at_ns })
    }

    /// CPU time used between two readings, brought to a window of another length: it may take a controller that waits for its turn
    /// longer to read the clocks of all processes than the window is long.
    fn over_window(&self, start: &Self, used_ns: f64, window_ns: f64) -> f64 {
        match self.at_ns.saturating_sub(start.at_ns) {
            0 => used_ns,
            span_ns => used_ns * window_ns / float(span_ns),
        }
    }
}

impl CpuReading {
    /// How full some CPUs were from `start` to this reading. `None` of no CPU, and where the clock tells of all CPUs
    /// together only.
    #[must_use]
    pub fn busy(&self, start: &Self, cpus: &[usize]) -> Option<BusyCpus> {
        if cpus.is_empty() || self.accounting == CpuAccounting::ProcStat {
            return None;
        }
        let (mut idle_ns, mut elapsed_ns) = (0, 0);
        for cpu in cpus {
            let of = |reading: &Self| reading.idle.iter().find(|clock| clock.cpu == *cpu).copied();
            let (begin, end) = (of(start)?, of(self)?);
            idle_ns += end.idle_ns.saturating_sub(begin.idle_ns);
            elapsed_ns += end.at_ns.saturating_sub(begin.at_ns);
        }
        (elapsed_ns > 0).then(|| BusyCpus {
            cpus: u32::try_from(cpus.len()).unwrap_or(u32::MAX),
            busy_ratio: 1.0 - (float(idle_ns) / float(elapsed_ns)).min(1.0),
        })
    }

    /// CPU use from `start` to this reading, without a baseline.
    #[must_use]
    pub fn since(&self, start: &Self) -> CpuUse {
        let mut busy_ns = 0.0;
        let mut elapsed_sum = 0.0;
        let mut cpus = 0u32;
        for end in &self.idle {
            let Some(begin) = start.idle.iter().find(|c| c.cpu == end.cpu) else {
                continue;
            };
            let elapsed = float(end.at_ns.saturating_sub(begin.at_ns));
            let idle = float(end.idle_ns.saturating_sub(begin.idle_ns));
            busy_ns += elapsed - idle;
            elapsed_sum += elapsed;
            cpus += 1;
        }
        let ticks = self.stat.since(start.stat);
        let steal_ns = stat::ns(ticks.steal);
        let elapsed_ns = elapsed_sum / f64::from(cpus.max(1));
        let workers = self.workers.what.zip(start.workers.what);
        let workers_ns = workers.map(|(end, begin)| {
            let used_ns = float(ns(end.saturating_sub(begin)));
            self.workers
                .over_window(&start.workers, used_ns, elapsed_ns)
        });
        let foreign_ns = float(self.foreign.what.since(&start.foreign.what));
        let kept_ns = float(self.kept_ns.saturating_sub(start.kept_ns));
        CpuUse {
            elapsed_ns,
            cpus,
            busy_ns: busy_ns - steal_ns,
            steal_ns,
            busy_is_exact: self.accounting == CpuAccounting::KeptAwake,
            workers_ns,
            foreign_ns: self
                .foreign
                .over_window(&start.foreign, foreign_ns, elapsed_ns),
            controller_ns: float(self.controller_ns.saturating_sub(start.controller_ns)),
            baseline_ns: 0.0,
            baseline_most_ns: None,
            closure: if elapsed_sum > 0.0 {
                stat::ns(ticks.total()) / elapsed_sum
            } else {
                1.0
            },
            split: TickSplit {
                user_ns: (stat::ns(ticks.user + ticks.nice) - kept_ns).max(0.0),
                system_ns: stat::ns(ticks.system),
                irq_ns: stat::ns(ticks.irq),
                softirq_ns: stat::ns(ticks.softirq),
            },
            forks: ticks.forks,
            is_partial: false,
        }
    }
}
