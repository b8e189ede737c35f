//! What the idle machine uses by itself.

use std::time::{Duration, Instant};

use hopyard_net::clock;

use super::disturbance::{by_clocks, others_start};
use super::own_lab::{DUST, wait_for_netns_cleanup};
use super::{Error, Sampler, wait_until};
use crate::meter::OwnProcesses;
use crate::model::{CpuUse, Disturbance};
use crate::units::ns;

/// Length of a window in which the idle machine is read. It is long enough for work that the kernel does several times a second.
const QUIET: Duration = Duration::from_millis(300);
/// A reading has at most this many windows.
const MOST_WINDOWS: usize = 3;
/// Two windows agree if they differ by at most so many CPUs. This is a little more than 10 ms in a window, the step in which
/// `/proc/stat` counts on machines that have no finer clocks of idle CPUs.
const ALIKE_CORES: f64 = 0.035;
/// Or by at most this share of the machine: the kernel does more by itself on more CPUs.
const ALIKE_RATIO: f64 = 0.01;
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
pub struct QuietReading {
    /// What counts in the block that it was read for.
    pub cores: QuietCores,
    /// The last cores that two windows, or a window and an earlier reading, agreed on.
    agreed: Option<QuietCores>,
    /// Whether the hypervisor, other processes, the removal of namespaces or other work of the kernel disturbed it. Then it counts for
    /// one block alone: several blocks would have the same error, which no interval over blocks shows.
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

    /// What the idle machine uses, of two windows that agree.
    ///
    /// # Errors
    /// The meter fails, or the user wants to stop.
    pub fn quiet_cores(&self) -> Result<QuietCores, Error> {
        Ok(self.read_quiet(None)?.cores)
    }

    /// The same in a run that has an earlier reading: one window is enough if it agrees with that. If no two agree, the cores that did
    /// earlier count.
    ///
    /// # Errors
    /// As [`Sampler::quiet_cores`].
    pub fn read_quiet(&self, earlier: Option<QuietReading>) -> Result<QuietReading, Error> {
        let began = Instant::now();
        let known = earlier.and_then(|reading| reading.agreed);
        let is_clear = wait_for_netns_cleanup()?;
        let mut windows = Vec::new();
        let mut agreed = None;
        while agreed.is_none() && windows.len() < MOST_WINDOWS {
            let used = self.used_by_others()?;
            windows.push(used);
            agreed = agreeing(known, &windows);
            // They seldom end within a window, and the run has a time limit.
            if others_run(&used) {
                break;
            }
        }
        Ok(QuietReading {
            cores: agreed.unwrap_or_else(|| without_agreement(earlier, &windows)),
            agreed: agreed.or(known),
            is_disturbed: !is_clear || agreed.is_none(),
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

/// The last window, if it agrees with an earlier reading (`known`), or the mean of it and another window that it agrees with. Bursts of
/// the kernel's own work, for example after labs were removed, are seldom as long as two windows.
fn agreeing(known: Option<QuietCores>, windows: &[CpuUse]) -> Option<QuietCores> {
    let (last, before) = windows.split_last()?;
    if is_disturbed(last) {
        return None;
    }
    let alike = ALIKE_CORES.max(ALIKE_RATIO * f64::from(last.cpus));
    let last = QuietCores::of(last);
    let agrees = |other: &QuietCores| (other.least - last.least).abs() <= alike;
    if known.is_some_and(|known| agrees(&known)) {
        return Some(last);
    }
    let clear = before.iter().filter(|used| !is_disturbed(used));
    let other = clear.map(QuietCores::of).find(agrees)?;
    Some(QuietCores {
        least: f64::midpoint(last.least, other.least),
        most: f64::midpoint(last.most, other.most),
    })
}

/// Where no two windows agree: the cores that agreed earlier. If none ever did, the most precise window, earlier ones included.
fn without_agreement(earlier: Option<QuietReading>, windows: &[CpuUse]) -> QuietCores {
    let closest = closest(windows);
    earlier.map_or(closest, |earlier| {
        let agreed = earlier.agreed;
        agreed.unwrap_or_else(|| earlier.cores.closer(closest))
    })
}

/// Of the windows that nothing disturbed, if there are any, the most precise one, and of several the lowest.
fn closest(windows: &[CpuUse]) -> QuietCores {
    let order = |a: &&CpuUse, b: &&CpuUse| {
        let by_disturbance = is_disturbed(a).cmp(&is_disturbed(b));
        let (a, b) = (QuietCores::of(a), QuietCores::of(b));
        let by_span = a.span().total_cmp(&b.span());
        by_disturbance
            .then(by_span)
            .then(a.least.total_cmp(&b.least))
    };
    let window = windows.iter().min_by(order);
    window.map_or(QuietCores::from(0.0), QuietCores::of)
}

/// Whether something else used the machine, or the hypervisor hides what did.
fn is_disturbed(used: &CpuUse) -> bool {
    !QuietCores::of(used).is_close() || by_clocks(used).is_some() || others_start(used)
}

fn others_run(used: &CpuUse) -> bool {
    by_clocks(used) == Some(Disturbance::Foreign) || others_start(used)
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
            agreed: None,
            is_disturbed,
            took: QUIET,
            ended: Instant::now() - Duration::from_secs(age_s),
        };
        assert!(reading(false, 4).holds());
        assert!(!reading(false, 5).holds());
        assert!(!reading(true, 0).holds());
    }

    #[test]
    fn without_agreement_an_earlier_one_counts_else_the_most_precise_window() {
        let of = |cores: f64, agreed: Option<f64>| QuietReading {
            cores: QuietCores {
                least: cores,
                most: cores + 0.002,
            },
            agreed: agreed.map(QuietCores::from),
            is_disturbed: true,
            took: QUIET,
            ended: Instant::now(),
        };
        let exact = [window(0.3), window(0.2)];
        let stolen = [disturbances()[0]];
        let counts = |earlier, windows: &[CpuUse]| without_agreement(earlier, windows).least;
        assert_eq!(counts(None, &exact), 0.2);
        assert_eq!(counts(Some(of(0.05, Some(0.014))), &exact), 0.014);
        assert_eq!(counts(Some(of(0.05, None)), &exact), 0.2);
        assert_eq!(counts(Some(of(0.05, None)), &stolen), 0.05);
    }

    /// A window in which the machine used so much of a CPU.
    fn window(cores: f64) -> CpuUse {
        let elapsed_ns = 3e8;
        CpuUse {
            elapsed_ns,
            cpus: 2,
            busy_ns: cores * elapsed_ns,
            ..CpuUse::default()
        }
    }

    fn disturb(change: impl FnOnce(&mut CpuUse)) -> CpuUse {
        let mut used = window(0.01);
        change(&mut used);
        used
    }

    fn disturbances() -> [CpuUse; 3] {
        [
            disturb(|used| used.steal_ns = 1e7),
            disturb(|used| (used.foreign_ns, used.busy_ns) = (1.3e7, 1.6e7)),
            disturb(|used| used.forks = 4),
        ]
    }

    #[test]
    fn steal_other_processes_and_new_ones_disturb_a_window() {
        assert!(!is_disturbed(&window(0.01)));
        for used in disturbances() {
            assert!(is_disturbed(&used), "{used:?}");
        }
        assert_eq!(
            disturbances().map(|used| others_run(&used)),
            [false, true, true]
        );
    }

    #[test]
    fn a_burst_of_the_kernels_own_work_is_not_what_the_idle_machine_uses() {
        let agreed = |known: Option<f64>, cores: &[f64]| {
            let windows: Vec<_> = cores.iter().copied().map(window).collect();
            let agreed = agreeing(known.map(QuietCores::from), &windows);
            agreed.map(|cores| (cores.least * 1000.0).round())
        };
        assert_eq!(agreed(None, &[0.014]), None);
        assert_eq!(agreed(None, &[0.014, 0.02]), Some(17.0));
        assert_eq!(agreed(Some(0.014), &[0.02]), Some(20.0));
        assert_eq!(agreed(Some(0.014), &[0.46]), None);
        assert_eq!(agreed(Some(0.014), &[0.46, 0.02]), Some(20.0));
        assert_eq!(agreed(None, &[0.46, 0.014]), None);
        assert_eq!(agreed(None, &[0.46, 0.014, 0.02]), Some(17.0));
        // What the machine does all the time is part of it, also where it was less before.
        assert_eq!(agreed(Some(0.014), &[0.25, 0.26]), Some(255.0));
        // A step of coarse clocks is no difference.
        assert_eq!(agreed(None, &[0.0, 0.0334]), Some(17.0));
    }

    #[test]
    fn windows_that_something_disturbed_do_not_count_while_there_are_others() {
        let mut windows = disturbances().to_vec();
        assert_eq!(closest(&windows).least, 0.01);
        for cores in [0.2, 0.3] {
            windows.push(window(cores));
            assert_eq!(agreeing(None, &windows), None);
        }
        assert_eq!(closest(&windows), 0.2.into());
        windows.push(window(0.31));
        assert_eq!(agreeing(None, &windows), Some(0.305.into()));
        windows.extend(disturbances());
        assert_eq!(agreeing(Some(0.01.into()), &windows), None);
    }

    #[test]
    fn short_blocks_share_the_time_of_a_reading() {
        let [whole, half] = [5, 10].map(|s| Sampler::quiet_estimate(Duration::from_secs(s)));
        assert_eq!(whole, half);
        let short = Sampler::quiet_estimate(Duration::from_secs(1));
        assert_eq!(short, whole / 5);
    }
}
