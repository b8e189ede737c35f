//! What else used the machine while something was measured. Nothing here looks at what the load counted: whether a window is taken
//! again must not depend on its figures.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::model::{CpuUse, Disturbance, Measurement};

/// More use by other processes than this share of the machine is a disturbance.
const FOREIGN: f64 = 0.02;
/// So are more processes than this that others start in a second, or in a shorter window. The CPU time of those that also end in
/// the window counts as the load's: beside 60 of them, a load of 50 ms a second was seen as 160 ms.
const FORKS_PER_S: f64 = 3.0;
/// One window in this many may be taken again, so that a run on a machine that is never quiet takes not much longer.
const ONE_IN: u32 = 4;

/// The hypervisor or other processes, by the CPU clocks.
pub(super) fn by_clocks(cpu: &CpuUse) -> Option<Disturbance> {
    let machine_ns = cpu.elapsed_ns * f64::from(cpu.cpus);
    if cpu.has_much_steal() {
        Some(Disturbance::Steal)
    } else if cpu.foreign_ns > FOREIGN * machine_ns {
        Some(Disturbance::Foreign)
    } else {
        None
    }
}

/// Whether anything else disturbed a window of its own. What starts beside a guest may be the emulator's threads.
pub(super) fn disturbed(measured: &Measurement) -> bool {
    let others_start = measured.guest.is_none() && others_start(&measured.cpu);
    others_start || by_clocks(&measured.cpu).is_some()
}

/// Whether others started processes, of which the CPU time of those that also ended is not known.
pub(super) fn others_start(cpu: &CpuUse) -> bool {
    let seconds = (cpu.elapsed_ns / 1e9).max(1.0);
    let forks = u32::try_from(cpu.forks).unwrap_or(u32::MAX);
    f64::from(forks) > FORKS_PER_S * seconds
}

/// How many windows were taken, and how many of them again.
#[derive(Debug, Default)]
pub(super) struct RetakeBudget {
    taken: AtomicU32,
    retaken: AtomicU32,
}

impl RetakeBudget {
    pub(super) fn note_taken(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes one from the budget; false if it is used up.
    pub(super) fn try_spend(&self) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        let one_more = |retaken: u32| (retaken < taken / ONE_IN).then_some(retaken + 1);
        let counted = self
            .retaken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assess::testing::measured;
    use crate::model::GuestUsed;

    fn window(seconds: f64, steal_ns: f64, foreign_ns: f64, forks: u64) -> Measurement {
        let mut measured = measured(1);
        measured.cpu = CpuUse {
            elapsed_ns: seconds * 1e9,
            cpus: 2,
            steal_ns,
            foreign_ns,
            forks,
            ..measured.cpu
        };
        measured
    }

    #[test]
    fn steal_others_and_what_they_start_disturb_a_window() {
        assert!(!disturbed(&window(1.0, 1.9e7, 3.9e7, 3)));
        assert!(disturbed(&window(1.0, 2.1e7, 0.0, 0)));
        assert!(disturbed(&window(1.0, 0.0, 4.1e7, 0)));
        assert!(disturbed(&window(1.0, 0.0, 0.0, 4)));
        assert!(!disturbed(&window(10.0, 0.0, 0.0, 30)));
        assert!(!disturbed(&window(0.1, 0.0, 0.0, 3)));
        let mut guest = window(1.0, 0.0, 0.0, 40);
        guest.guest = Some(GuestUsed {
            kernel: "6.1".to_owned(),
            cpus: 1,
            emulated: true,
        });
        assert!(!disturbed(&guest));
    }

    #[test]
    fn one_window_in_four_may_be_taken_again() {
        let budget = RetakeBudget::default();
        assert!(!budget.try_spend());
        let mut allowed = 0;
        for _ in 0..40 {
            budget.note_taken();
            allowed += u32::from(budget.try_spend());
        }
        assert_eq!(allowed, 10);
    }
}
