//! CPU use of a window by idle subtraction.

mod reading;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use hopyard_model::CpuAccounting;
use hopyard_net::{Cgroup, clock, cpu};

use super::Error;
use super::awake::Awake;
use super::idle::{self, IdleClock};
use super::processes::{Clocks, PossiblyForeign};
use super::stat::{self, Stat};
use reading::Taken;

pub use reading::CpuReading;

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

#[cfg(test)]
mod tests;
