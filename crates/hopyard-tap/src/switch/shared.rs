//! Data that all workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::flows::{Flow, Flows};
use super::pinner::Pinner;
use super::storm::Bucket;
use super::table::{CAPACITY, Table};
use super::{Join, NewSwitch};
use crate::VnetHeaderSize;
use crate::error::{Error, Result};

/// The header before each frame, passed on unchanged.
pub(super) const HEADER: VnetHeaderSize = VnetHeaderSize::Mergeable;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) table: Table,
    pub(super) flows: Flows,
    /// Set if flows are pinned.
    pinner: Option<Arc<Pinner>>,
    ending: AtomicBool,
    began: Instant,
    /// Seconds since it began, kept by the manager: reading a clock for every frame costs too much.
    now_s: AtomicU32,
    /// How frames are joined.
    pub(super) join: Join,
    /// How long frames wait for a device that takes no more.
    pub(super) patience: Duration,
    /// By port: whether frames for it are joined.
    joins: Box<[AtomicBool]>,
    /// By port: limit of frames to several others.
    buckets: Box<[Bucket]>,
}

impl Shared {
    pub(super) fn new(new: &NewSwitch, pinner: Option<Arc<Pinner>>) -> Result<Self> {
        let rules = new.ports.iter().map(|port| &port.rules);
        let table = Table::new(CAPACITY, &rules).ok_or_else(|| {
            let why = "the addresses given to ports do not fit the table; give fewer";
            Error::invalid("start the tap switch", why)
        })?;
        Ok(Self {
            table,
            flows: Flows::new(),
            pinner,
            ending: AtomicBool::new(false),
            began: Instant::now(),
            now_s: AtomicU32::new(0),
            join: new.join,
            patience: new.patience,
            joins: (0..new.ports.len())
                .map(|_| AtomicBool::new(false))
                .collect(),
            buckets: rules.map(|rules| Bucket::new(rules.broadcasts)).collect(),
        })
    }

    /// Sets the number of attached queues.
    pub(super) fn set_queues(&self, count: usize) {
        if count > 1 {
            self.flows.watch();
        }
        if let Some(pinner) = &self.pinner {
            pinner.set_queues(count);
        }
    }

    /// Pins a flow, if flows are pinned and this one is not yet.
    pub(super) fn pin(&self, flow: Flow) {
        if let Some(queue) = self.pinner.as_ref().and_then(|pinner| pinner.pin(flow)) {
            self.flows.expect(flow, queue.into());
        }
    }

    /// Whether a port may send one more frame to several others.
    pub(super) fn may_flood(&self, from: usize) -> bool {
        self.buckets[from].take(|| self.now_ns())
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Relaxed)
    }

    pub(super) fn end(&self) {
        self.ending.store(true, Relaxed);
    }

    /// Whether frames for a port are joined.
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

    /// Seconds since it began, by the manager's last check.
    pub(super) fn now_s(&self) -> u32 {
        self.now_s.load(Relaxed)
    }

    /// Updates [`Shared::now_s`], and everything that depends on it.
    pub(super) fn tick(&self) {
        let now = u32::try_from(self.began.elapsed().as_secs()).unwrap_or(u32::MAX);
        if self.now_s.swap(now, Relaxed) != now {
            self.table.sweep(now);
        }
    }
}
