//! A scheduling policy, for a while.

use hopyard_net::cpu::{Policy, schedule_current_thread};

/// While it exists, processes started by this thread have a scheduling policy. Where that is `SCHED_BATCH` or `SCHED_RR`, two ends on
/// one CPU run until they wait, and added work does not change who interrupts whom (docs/method.md, V5).
#[derive(Debug)]
pub struct Scheduled(());

impl Scheduled {
    /// Gives the calling thread the policy.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn new(policy: Policy) -> hopyard_net::Result<Self> {
        schedule_current_thread(policy)?;
        Ok(Self(()))
    }
}

impl Drop for Scheduled {
    fn drop(&mut self) {
        // This needs no more privilege than the change before.
        let _ = schedule_current_thread(Policy::Other);
    }
}
