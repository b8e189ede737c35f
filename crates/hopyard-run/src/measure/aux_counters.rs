//! Counters that are slow to read, and so are read inside the window's edges instead of at them.

use hopyard_net::clock;

use super::Error;
use crate::lab::Lab;
use crate::lab::tap::QueueCounts;
use crate::meter::{backlog, vcpus};
use crate::model::TrackingCounts;

/// The counters at one instant.
#[derive(Debug, Clone)]
pub(super) struct AuxCounters {
    at_ns: u64,
    queues: Option<QueueCounts>,
    vcpus: Option<vcpus::Waited>,
    tracking: Option<TrackingCounts>,
    backlog_drops: Option<u64>,
}

impl AuxCounters {
    pub(super) fn read(lab: &Lab, guests: &[u32]) -> Result<Self, Error> {
        Ok(Self {
            queues: lab.queue_counts()?,
            vcpus: vcpus::waited(guests)?,
            tracking: lab.tracking_counts()?,
            backlog_drops: backlog::drops(),
            at_ns: clock::monotonic_ns(),
        })
    }

    /// The difference to an earlier reading.
    pub(super) fn since(&self, start: &Self) -> Passed {
        let count = |now: u64, then: u64| now.saturating_sub(then);
        let span_ns = count(self.at_ns, start.at_ns);
        let queues = self.queues.as_ref().zip(start.queues.as_ref());
        let waited = self.vcpus.zip(start.vcpus);
        let tracking = self.tracking.zip(start.tracking);
        let backlog = self.backlog_drops.zip(start.backlog_drops);
        Passed {
            span_ns,
            queues: queues.map(|(now, then)| now.since(then)),
            tracking: tracking.map(|(now, then)| now.since(then)),
            backlog_drops: backlog.map(|(now, then)| count(now, then)),
            guest_steal_ratio: waited.map(|(now, then)| {
                count(now.ns, then.ns) as f64 / (span_ns as f64 * f64::from(now.vcpus))
            }),
        }
    }
}

/// The difference between two readings.
#[derive(Debug, Clone)]
pub(super) struct Passed {
    pub(super) span_ns: u64,
    pub(super) queues: Option<QueueCounts>,
    /// Over all CPUs of guests.
    pub(super) guest_steal_ratio: Option<f64>,
    pub(super) tracking: Option<TrackingCounts>,
    pub(super) backlog_drops: Option<u64>,
}
