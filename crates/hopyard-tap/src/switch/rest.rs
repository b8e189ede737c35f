//! Idle time of a worker, from which the number of queues is decided.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug, Default)]
pub(super) struct Rest {
    /// Nanoseconds of all idle periods that ended.
    ended_ns: AtomicU64,
    /// Begin of the current idle period, nanoseconds of the switch's clock; 0 while there is work.
    began_ns: AtomicU64,
}

impl Rest {
    pub(super) fn begin(&self, now_ns: u64) {
        self.began_ns.store(now_ns, Relaxed);
    }

    pub(super) fn end(&self, began_ns: u64, now_ns: u64) {
        let rested = now_ns.saturating_sub(began_ns);
        self.ended_ns.fetch_add(rested, Relaxed);
        self.began_ns.store(0, Relaxed);
    }

    /// Nanoseconds idle up to `now_ns`.
    pub(super) fn until(&self, now_ns: u64) -> u64 {
        let open = match self.began_ns.load(Relaxed) {
            0 => 0,
            began => now_ns.saturating_sub(began),
        };
        self.ended_ns.load(Relaxed) + open
    }
}
