//! CPU use of a window by idle subtraction.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use hopyard_model::units::{float, ns};
use hopyard_model::{BusyCpus, CpuAccounting, CpuUse, TickSplit};
use hopyard_net::{Cgroup, clock, cpu};

use super::Error;
use super::awake::Awake;
use super::idle::{self, IdleClock};
use super::processes::{Clocks, PossiblyForeign};
use super::stat::{self, Stat};

/// The processes that make the load.
#[derive(Debug, Default, Clone, Copy)]
pub struct OwnProcesses<'a> {
    /// Their ids.
    pub pids: &'a [u32],
    /// Their cgroup, where the machine has cgroup v2.
    pub cgroup: Option<&'a Cgroup>,
}

/// Reads what the CPUs did.
#[derive(Debug, Clone)]
pub struct CpuMeter {
    cpus: Vec<usize>,
    accounting: CpuAccounting,
    reader: Reader,
    /// Keeps the CPUs awake for as long as this meter, or a copy of it, is there.
    awake: Option<Arc<Awake>>,
}

/// Whose CPU time is that of the process that reads?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// The controller's, which is told apart.
    Controller,
    /// The load's: a worker reads its own machine.
    Load,
}

/// Everything about CPU time at one instant.
#[derive(Debug, Clone)]
pub struct CpuReading {
    idle: Vec<IdleClock>,
    accounting: CpuAccounting,
    stat: Stat,
    foreign: Taken<Clocks>,
    controller_ns: u64,
    /// CPU time of the threads that keep CPUs awake.
    kept_ns: u64,
    workers: Taken<Option<Duration>>,
}

/// What was read, and when.
#[derive(Debug, Clone, Copy, Default)]
struct Taken<T> {
    what: T,
    /// The middle of the reading, `CLOCK_MONOTONIC`, ns.
    at_ns: u64,
}

impl<T> Taken<T> {
    fn by(read: impl FnOnce() -> Result<T, Error>) -> Result<Self, Error> {
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

impl CpuMeter {
    /// A meter for the CPUs that are online now.
    ///
    /// # Errors
    /// The list of CPUs cannot be read.
    pub fn new() -> Result<Self, Error> {
        Self::read_by(Reader::Controller)
    }

    /// The same for a process of the load: what it uses itself is the load's.
    ///
    /// # Errors
    /// As [`CpuMeter::new`].
    pub fn of_load() -> Result<Self, Error> {
        Self::read_by(Reader::Load)
    }

    fn read_by(reader: Reader) -> Result<Self, Error> {
        let cpus = cpu::online_cpus()?;
        let accounting = if idle::available(&cpus) {
            CpuAccounting::IdleClock
        } else {
            CpuAccounting::ProcStat
        };
        Ok(Self {
            cpus,
            accounting,
            reader,
            awake: None,
        })
    }

    /// Keeps the CPUs from halting for as long as this meter is there, and reads what they do then.
    ///
    /// # Errors
    /// There are no idle clocks here, or a thread cannot be started.
    pub fn keep_awake(&mut self) -> Result<(), Error> {
        if self.accounting == CpuAccounting::ProcStat {
            return Err(Error::NotAwake(
                "/proc/timer_list cannot be read, or some of them are out of reach (cpuset): run as root",
            ));
        }
        self.awake = Some(Awake::shared(&self.cpus)?);
        self.accounting = CpuAccounting::KeptAwake;
        Ok(())
    }

    /// The threads that keep CPUs awake, by their ids.
    #[must_use]
    pub fn keepers(&self) -> Vec<i32> {
        let awake = self.awake.as_ref();
        awake.map_or_else(Vec::new, |awake| awake.threads().collect())
    }

    /// The clock it reads.
    #[must_use]
    pub fn accounting(&self) -> CpuAccounting {
        self.accounting
    }

    /// The CPUs it watches.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// Moves the calling thread to where it is to wait for an edge of a window: the last CPU, which every load uses. On virtual
    /// machines an idle CPU may take half a millisecond to wake up: with both ends on the last CPU, a controller that waited on the
    /// first one was that late in 4 of 10 turns. Where it waits on the last one it never was; an end was in 1 of 8.
    pub fn stand_by(&self) {
        self.move_to(self.cpus.last());
    }

    /// Moves the calling thread to where it is to read what takes long: the first CPU.
    fn step_aside(&self) {
        self.move_to(self.cpus.first());
    }

    /// Where this thread may not run there, it reads where it is.
    fn move_to(&self, cpu: Option<&usize>) {
        if let Some(cpu) = cpu {
            let _ = cpu::move_current_thread(*cpu);
        }
    }

    /// Opens a window: the slow part first, the idle clocks last.
    ///
    /// # Errors
    /// The kernel's files cannot be read.
    pub fn open(&self, ours: OwnProcesses<'_>) -> Result<CpuReading, Error> {
        self.open_with(ours, || Clocks::foreign(&left_out(ours)))
    }

    /// Closes a window: the idle clocks first, so that reading the rest is not in it.
    ///
    /// # Errors
    /// The kernel's files cannot be read.
    pub fn close(&self, ours: OwnProcesses<'_>) -> Result<CpuReading, Error> {
        self.close_with(ours, || Clocks::foreign(&left_out(ours)))
    }

    /// [`CpuMeter::open`] for a short window: of the processes in `known`, those that are not ours are foreign.
    ///
    /// # Errors
    /// As there.
    pub fn open_among(
        &self,
        known: &PossiblyForeign,
        ours: OwnProcesses<'_>,
    ) -> Result<CpuReading, Error> {
        self.open_with(ours, || Ok(foreign_among(known, ours)))
    }

    /// [`CpuMeter::close`] for a short window.
    ///
    /// # Errors
    /// As there.
    pub fn close_among(
        &self,
        known: &PossiblyForeign,
        ours: OwnProcesses<'_>,
    ) -> Result<CpuReading, Error> {
        self.close_with(ours, || Ok(foreign_among(known, ours)))
    }

    fn open_with(
        &self,
        ours: OwnProcesses<'_>,
        foreign: impl FnOnce() -> Result<Clocks, Error>,
    ) -> Result<CpuReading, Error> {
        self.step_aside();
        let foreign = Taken::by(foreign)?;
        let workers = Taken::by(|| Ok(self.usage(ours)))?;
        let (idle, stat, controller_ns) = self.clocks()?;
        Ok(CpuReading {
            idle,
            accounting: self.accounting,
            stat,
            foreign,
            controller_ns,
            kept_ns: self.kept_ns(),
            workers,
        })
    }

    fn close_with(
        &self,
        ours: OwnProcesses<'_>,
        foreign: impl FnOnce() -> Result<Clocks, Error>,
    ) -> Result<CpuReading, Error> {
        let (idle, stat, controller_ns) = self.clocks()?;
        let workers = Taken::by(|| Ok(self.usage(ours)))?;
        let foreign = Taken::by(foreign)?;
        Ok(CpuReading {
            idle,
            accounting: self.accounting,
            stat,
            foreign,
            controller_ns,
            kept_ns: self.kept_ns(),
            workers,
        })
    }

    fn clocks(&self) -> Result<(Vec<IdleClock>, Stat, u64), Error> {
        let idle = match self.accounting {
            CpuAccounting::IdleClock | CpuAccounting::KeptAwake => {
                let free_ns = |cpu| self.awake.as_ref().map_or(0, |awake| awake.free_ns(cpu));
                idle::read_all(&self.cpus, free_ns)?
            }
            CpuAccounting::ProcStat => Vec::new(),
        };
        let at_ns = clock::monotonic_ns();
        let stat = Stat::read()?;
        let idle = if idle.is_empty() {
            coarse(stat, at_ns, self.cpus.len())
        } else {
            idle
        };
        let controller_ns = match self.reader {
            Reader::Controller => {
                // They run on while this reads.
                let before_ns = self.kept_ns();
                let own_ns = own_cpu_ns()?;
                own_ns.saturating_sub(u64::midpoint(before_ns, self.kept_ns()))
            }
            Reader::Load => 0,
        };
        Ok((idle, stat, controller_ns))
    }

    /// CPU time of the threads that keep CPUs awake.
    fn kept_ns(&self) -> u64 {
        self.awake.as_ref().map_or(0, |awake| awake.cpu_ns())
    }

    /// CPU time of the load's own processes. A cgroup that has gone (its last process died) has no usage: absent, not 0.
    fn usage(&self, ours: OwnProcesses<'_>) -> Option<Duration> {
        match self.reader {
            Reader::Controller => ours.cgroup.and_then(|group| group.usage().ok()),
            Reader::Load => {
                let clocks = left_out(ours)
                    .into_iter()
                    .map(|pid| clock::process_cpu_ns(pid).ok());
                clocks.sum::<Option<u64>>().map(Duration::from_nanos)
            }
        }
    }
}

/// The idle columns of /proc/stat as clocks: one share for each CPU, so that sums come out right.
fn coarse(stat: Stat, at_ns: u64, cpus: usize) -> Vec<IdleClock> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "uptime × CPUs in ns fits in 64 bits"
    )]
    #[expect(clippy::cast_sign_loss, reason = "a count of steps is not negative")]
    let idle_ns = stat::ns(stat.idle + stat.iowait) as u64 / cpus.max(1) as u64;
    (0..cpus)
        .map(|cpu| IdleClock {
            cpu,
            at_ns,
            idle_ns,
        })
        .collect()
}

fn left_out(ours: OwnProcesses<'_>) -> HashSet<i32> {
    let own = std::process::id();
    ours.pids
        .iter()
        .chain([&own])
        .filter_map(|pid| i32::try_from(*pid).ok())
        .collect()
}

fn foreign_among(known: &PossiblyForeign, ours: OwnProcesses<'_>) -> Clocks {
    let ours = left_out(ours);
    let pids = known.pids.iter().copied();
    Clocks::of_each(pids.filter(|pid| !ours.contains(pid)))
}

fn own_cpu_ns() -> Result<u64, Error> {
    clock::process_cpu_ns(std::process::id().cast_signed()).map_err(|source| Error::Read {
        file: "the own CPU clock".to_owned(),
        source,
    })
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

#[cfg(test)]
mod tests;
