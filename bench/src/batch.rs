//! The scheduling policy `SCHED_BATCH`, for a while.

use hopyard_net::cpu::{Policy, schedule_current_thread};

/// While it exists, processes started by this thread do not interrupt others when they wake up. Two ends on one CPU
/// then run until they wait, and added work does not change who interrupts whom (docs/method.md, V5).
#[derive(Debug)]
pub struct Batch(());

impl Batch {
    /// Gives the calling thread the policy.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn new() -> hopyard_net::Result<Self> {
        schedule_current_thread(Policy::Batch)?;
        Ok(Self(()))
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // This needs no more privilege than the change before.
        let _ = schedule_current_thread(Policy::Other);
    }
}
