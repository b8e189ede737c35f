//! What all workers have in common.

use std::io::PipeReader;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::flows::Flows;
use super::table::{CAPACITY, Table};
use super::{Join, NewSwitch};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) table: Table,
    pub(super) flows: Flows,
    /// Hangs up when the switch ends, which wakes whoever polls it.
    pub(super) end: PipeReader,
    ending: AtomicBool,
    began: Instant,
    /// Seconds since it began, kept by the manager: reading a clock for every frame is too dear.
    now_s: AtomicU32,
    /// How frames become one.
    pub(super) join: Join,
    /// How long they wait for a device that takes no more.
    pub(super) patience: Duration,
    /// By port: does it happen there?
    joins: Box<[AtomicBool]>,
}

impl Shared {
    pub(super) fn new(end: PipeReader, new: &NewSwitch) -> Self {
        Self {
            table: Table::new(CAPACITY),
            flows: Flows::new(),
            end,
            ending: AtomicBool::new(false),
            began: Instant::now(),
            now_s: AtomicU32::new(0),
            join: new.join,
            patience: new.patience,
            joins: (0..new.ports.len())
                .map(|_| AtomicBool::new(false))
                .collect(),
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Relaxed)
    }

    pub(super) fn end(&self) {
        self.ending.store(true, Relaxed);
    }

    /// Are frames for a port joined?
    pub(super) fn joins(&self, port: usize) -> bool {
        self.joins[port].load(Relaxed)
    }

    pub(super) fn set_joins(&self, port: usize, on: bool) {
        self.joins[port].store(on, Relaxed);
    }

    /// Nanoseconds since it began, never 0.
    pub(super) fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos())
            .unwrap_or(u64::MAX)
            .max(1)
    }

    /// Seconds since it began, as of the manager's last look.
    pub(super) fn now_s(&self) -> u32 {
        self.now_s.load(Relaxed)
    }

    /// Brings [`Shared::now_s`] up to date.
    pub(super) fn tick(&self) {
        let now = u32::try_from(self.began.elapsed().as_secs()).unwrap_or(u32::MAX);
        self.now_s.store(now, Relaxed);
    }
}
