//! What the idle machine uses by itself.

use std::time::{Duration, Instant};

use hopyard_net::clock;

use super::disturbance::{by_clocks, others_start};
use super::own_lab::{DUST, wait_for_netns_cleanup};
use super::{Error, Sampler, wait_until};
use crate::meter::OwnProcesses;
use crate::model::CpuUse;
use crate::units::ns;

/// The idle machine is read over this span.
const QUIET: Duration = Duration::from_millis(300);
/// In at most this many windows.
const QUIET_WINDOWS: u32 = 3;
/// A window whose bounds are this close is enough: as a cost it is 0.1 % of a CPU, less than turns can distinguish.
const CLOSE_CORES: f64 = 0.001;
/// A reading that nothing disturbed holds this long. Short blocks share one: read in each of them, it would take a third of their time.
const HOLDS: Duration = Duration::from_secs(5);

/// CPUs' worth of time that the idle machine uses, between two bounds, which are equal if the hypervisor took nothing
/// during the reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuietCores {
    /// Lower bound.
    pub least: f64,
    /// Upper bound.
    pub most: f64,
}

impl QuietCores {
    pub(super) fn of(used: &CpuUse) -> Self {
        let bounds = used.net();
        let cores = |ns: f64| (ns / used.elapsed_ns).max(0.0);
        Self {
            least: cores(bounds.least_ns),
            most: cores(bounds.most_ns),
        }
    }

    /// The distance between its bounds.
    fn span(self) -> f64 {
        self.most - self.least
    }

    fn is_close(self) -> bool {
        self.span() <= CLOSE_CORES
    }

    /// The more precise of two readings; `other` if they are equally precise.
    #[must_use]
    pub fn closer(self, other: Self) -> Self {
        if self.span() < other.span() {
            self
        } else {
            other
        }
    }

    /// Records the idle machine's share in a window.
    pub fn note_in(self, cpu: &mut CpuUse) {
        cpu.baseline_ns = self.least * cpu.elapsed_ns;
        let is_apart = self.most > self.least;
        cpu.baseline_most_ns = is_apart.then_some(self.most * cpu.elapsed_ns);
    }
}

/// What the idle machine uses, and how far that can be relied on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuietReading {
    pub(crate) cores: QuietCores,
    /// Whether the hypervisor, other processes or the removal of namespaces disturbed it. Then it counts for one block alone: several
    /// blocks would have the same error, which no interval over blocks shows.
    pub(crate) is_disturbed: bool,
    /// How long it took, and when it ended.
    pub(crate) took: Duration,
    ended: Instant,
}

impl QuietReading {
    /// Whether it still stands for the idle machine.
    pub(crate) fn holds(self) -> bool {
        !self.is_disturbed && self.ended.elapsed() < HOLDS
    }
}

/// A number that is known exactly.
impl From<f64> for QuietCores {
    fn from(cores: f64) -> Self {
        Self {
            least: cores,
            most: cores,
        }
    }
}

/// Shares of the machine's CPU time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleState {
    /// Used by other processes.
    pub foreign_ratio: f64,
    /// Taken by the hypervisor.
    pub steal_ratio: f64,
}

impl Sampler {
    /// How long a reading takes, roughly, in a block that measures for this long: several short blocks share one.
    #[must_use]
    pub(crate) fn quiet_estimate(measuring: Duration) -> Duration {
        let share = measuring.as_secs_f64() / HOLDS.as_secs_f64();
        (QUIET + DUST).mul_f64(share.min(1.0))
    }

    /// What the idle machine uses: the most precise reading of a few windows.
    ///
    /// # Errors
    /// The meter fails, or the user wants to stop.
    pub fn quiet_cores(&self) -> Result<QuietCores, Error> {
        Ok(self.read_quiet()?.cores)
    }

    /// The same, with what disturbed the last of these windows.
    ///
    /// # Errors
    /// As [`Sampler::quiet_cores`].
    pub(crate) fn read_quiet(&self) -> Result<QuietReading, Error> {
        let began = Instant::now();
        let is_clear = wait_for_netns_cleanup()?;
        let mut used = self.used_by_others()?;
        let mut cores = QuietCores::of(&used);
        for _ in 1..QUIET_WINDOWS {
            if cores.is_close() {
                break;
            }
            used = self.used_by_others()?;
            cores = cores.closer(QuietCores::of(&used));
        }
        Ok(QuietReading {
            cores,
            is_disturbed: !is_clear || is_disturbed(&used),
            took: began.elapsed(),
            ended: Instant::now(),
        })
    }

    /// CPU use in a window without a load.
    fn used_by_others(&self) -> Result<CpuUse, Error> {
        let opened = self.meter.open(OwnProcesses::default())?;
        wait_until(clock::monotonic_ns() + ns(QUIET))?;
        Ok(self.meter.close(OwnProcesses::default())?.since(&opened))
    }

    /// CPU use of the machine without a load.
    ///
    /// # Errors
    /// As [`Sampler::quiet_cores`].
    pub fn idle_state(&self) -> Result<IdleState, Error> {
        let used = self.used_by_others()?;
        let machine = used.elapsed_ns * f64::from(used.cpus);
        Ok(IdleState {
            foreign_ratio: used.foreign_ns / machine,
            steal_ratio: used.steal_ns / machine,
        })
    }
}

/// Whether something else used the machine, or the hypervisor hides what did.
fn is_disturbed(used: &CpuUse) -> bool {
    !QuietCores::of(used).is_close() || by_clocks(used).is_some() || others_start(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closer_reading_counts_and_a_new_one_where_both_are_exact() {
        let of = |least, most| QuietCores { least, most };
        let (near, far) = (of(0.002, 0.003), of(0.0, 0.03));
        assert_eq!(near.closer(far), near);
        assert_eq!(far.closer(near), near);
        assert_eq!(of(0.01, 0.01).closer(of(0.02, 0.02)), of(0.02, 0.02));
    }

    #[test]
    fn a_reading_that_was_not_disturbed_holds_for_some_blocks() {
        let reading = |is_disturbed, age_s| QuietReading {
            cores: QuietCores::from(0.004),
            is_disturbed,
            took: QUIET,
            ended: Instant::now() - Duration::from_secs(age_s),
        };
        assert!(reading(false, 4).holds());
        assert!(!reading(false, 5).holds());
        assert!(!reading(true, 0).holds());
    }

    #[test]
    fn steal_other_processes_and_new_ones_disturb_a_reading() {
        let idle = CpuUse {
            elapsed_ns: 3e8,
            cpus: 2,
            busy_ns: 1e6,
            ..CpuUse::default()
        };
        assert!(!is_disturbed(&idle));
        for change in [
            |used: &mut CpuUse| used.steal_ns = 1e7,
            |used: &mut CpuUse| (used.foreign_ns, used.busy_ns) = (1.3e7, 1.4e7),
            |used: &mut CpuUse| used.forks = 4,
        ] {
            let mut used = idle;
            change(&mut used);
            assert!(is_disturbed(&used), "{used:?}");
        }
    }

    #[test]
    fn short_blocks_share_the_time_of_a_reading() {
        let [whole, half] = [5, 10].map(|s| Sampler::quiet_estimate(Duration::from_secs(s)));
        assert_eq!(whole, half);
        let short = Sampler::quiet_estimate(Duration::from_secs(1));
        assert_eq!(short, whole / 5);
    }
}
