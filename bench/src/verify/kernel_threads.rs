//! CPU time of kernel threads that the meter cannot tell from the load's, by their own clocks.

use std::collections::HashMap;

use hopyard::meter::kernel_thread_may_be_ours;
use hopyard_net::clock;

use crate::experiment::Failure;

/// pid → ns.
#[derive(Debug)]
pub(crate) struct KernelThreads(HashMap<i32, u64>);

impl KernelThreads {
    pub(crate) fn read() -> Result<Self, Failure> {
        let mut clocks = HashMap::new();
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
                continue;
            };
            // One that ends while we look has no clock any more.
            if kernel_thread_may_be_ours(pid)
                && let Ok(ns) = clock::process_cpu_ns(pid)
            {
                clocks.insert(pid, ns);
            }
        }
        Ok(Self(clocks))
    }

    /// ns used by all of them since an earlier reading.
    pub(crate) fn since(&self, start: &Self) -> f64 {
        let used =
            |(pid, now): (&i32, &u64)| now.saturating_sub(start.0.get(pid).copied().unwrap_or(0));
        self.0.iter().map(used).sum::<u64>() as f64
    }
}
