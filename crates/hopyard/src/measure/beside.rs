//! What takes its time to be read, and so is read inside the window's edges instead of at them.

use hopyard_net::clock;

use super::Error;
use crate::lab::Lab;
use crate::meter::vcpus;
use crate::model::{Measurement, QueueChanges};

/// Readings of an instant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    at_ns: u64,
    queue_changes: Option<u64>,
    vcpus: Option<vcpus::Waited>,
}

impl Beside {
    pub(super) fn read(lab: &Lab, guests: &[u32]) -> Result<Self, Error> {
        Ok(Self {
            queue_changes: lab.queue_changes()?,
            vcpus: vcpus::waited(guests)?,
            at_ns: clock::monotonic_ns(),
        })
    }

    /// What came since an earlier reading.
    pub(super) fn since(self, start: Self) -> Passed {
        let count = |now: u64, then: u64| now.saturating_sub(then);
        let changes = self.queue_changes.zip(start.queue_changes);
        let waited = self.vcpus.zip(start.vcpus);
        Passed {
            span_ns: count(self.at_ns, start.at_ns),
            queue_changes: changes.map(|(now, then)| count(now, then)),
            waited: waited.map(|(now, then)| (count(now.ns, then.ns), now.vcpus)),
        }
    }
}

/// What came between two readings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passed {
    span_ns: u64,
    queue_changes: Option<u64>,
    /// ns of all together, and of how many.
    waited: Option<(u64, u32)>,
}

impl Passed {
    /// Writes them where they belong.
    pub(super) fn note(self, flows: u32, measurement: &mut Measurement) {
        measurement.queue_changes = self.queue_changes.map(|count| QueueChanges {
            count,
            flows,
            span_ns: self.span_ns,
        });
        measurement.guest_steal_ratio = self
            .waited
            .map(|(ns, vcpus)| ns as f64 / (self.span_ns as f64 * f64::from(vcpus)));
    }
}
