//! The thread that keeps the clock and the number of queues.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::pool::WorkerPool;
use super::scale::Scale;
use super::shared::Shared;
use super::thread::spawn;
use super::{QueueCount, Switch};
use crate::error::Result;

/// Interval of the manager's checks.
const PERIOD: Duration = Duration::from_millis(100);
/// Ports whose offloads it reads each time: every request takes a lock that the whole kernel shares.
const LOOKS: usize = 16;

/// The thread that keeps the clock and the number of queues.
pub(super) struct Manager {
    shared: Arc<Shared>,
    pool: Weak<Mutex<WorkerPool>>,
    scale: Option<Scale>,
}

impl Manager {
    pub(super) fn new(switch: &Switch, queues: QueueCount) -> Self {
        Self {
            shared: Arc::clone(&switch.shared),
            pool: Arc::downgrade(&switch.pool),
            scale: match queues {
                QueueCount::Fixed(_) => None,
                QueueCount::Auto { most } => Some(Scale::new(most)),
            },
        }
    }

    pub(super) fn start(mut self) -> Result<JoinHandle<()>> {
        spawn("tap manager", move || self.run())
    }

    fn run(&mut self) {
        let mut last_ns = self.shared.now_ns();
        while !self.shared.is_ending() {
            thread::park_timeout(PERIOD);
            self.shared.tick();
            let now_ns = self.shared.now_ns();
            let elapsed = Duration::from_nanos(now_ns - last_ns);
            let Some(pool) = self.pool.upgrade() else {
                continue;
            };
            if elapsed < PERIOD / 2 {
                continue;
            }
            let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
            pool.look_at_offloads(LOOKS);
            if let Some(scale) = &mut self.scale {
                pool.follow(scale, elapsed);
            }
            last_ns = now_ns;
        }
    }
}
