//! What a tap switch counted of the queues of its taps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::largest;

/// Frames that left a device by another queue than the frame of the same flow before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueChanges {
    /// Number of changes, both directions of all flows.
    pub count: u64,
    /// Flows of the load.
    pub flows: u32,
    /// Time over which they were counted, ns.
    pub span_ns: u64,
}

/// What a tap gave its switch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueFrames {
    /// Bytes, all queues together.
    pub bytes: u64,
    /// Frames of each queue, by number.
    pub frames: Vec<u64>,
}

impl QueueFrames {
    /// The difference to an earlier reading. A queue that was not there then had no frames.
    #[must_use]
    pub fn since(&self, start: &Self) -> Self {
        let before = start.frames.iter().copied().chain(std::iter::repeat(0));
        let frames = self.frames.iter().zip(before);
        Self {
            bytes: self.bytes.saturating_sub(start.bytes),
            frames: frames.map(|(now, then)| now.saturating_sub(then)).collect(),
        }
    }

    pub(crate) fn largest(&self) -> u64 {
        self.bytes.max(largest(&self.frames))
    }
}
