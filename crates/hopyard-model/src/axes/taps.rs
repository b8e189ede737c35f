//! Queues of taps, and what the tap switch does with frames.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, shown_by_name};
use super::descriptor::{Descriptor, number, word};

/// Queue selection of the tap: what chooses the queue by which a frame leaves the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Steering {
    /// The kernel: a flow stays on the queue where its answers came in.
    Kernel,
    /// A hash of addresses, protocol and ports.
    Hash,
    /// The CPU that sends.
    Cpu,
    /// The tap switch: each flow stays on one queue, and new flows are assigned to the queues in turn.
    Pinned,
}

/// Which frames of a TCP flow the tap switch joins, if it finds them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Join {
    /// None.
    Off,
    /// Those that resegment into packets identical to the originals: the rules of GRO.
    Packets,
    /// All frames that follow each other in the stream.
    Stream,
}

shown_by_name!(Steering, Join);

pub(super) const QUEUES: Descriptor<Option<u32>> = Descriptor {
    name: "queues",
    summary: "queues of each multi-queue tap, with a thread of the switch for each unless `queue_threads` is set; of a guest's card; of a veth",
    values: "1 to 256 (default 2; of a guest, one for each CPU; of a veth 1)",
    other: "4",
    of_path: true,
    counts: true,
    ..number::<1, 256>(Decides::Lab)
};

pub(super) const QUEUE_THREADS: Descriptor<Option<u32>> = Descriptor {
    name: "queue_threads",
    summary: "threads of the tap switch that serve the queues, which are dealt out to them in turn",
    values: "1 to the number of queues (default: a thread for each queue)",
    other: "1",
    of_path: true,
    counts: true,
    // The number of queues is another axis: whoever builds the switch compares the two.
    ..number::<1, 256>(Decides::Lab)
};

pub(super) const STEERING: Descriptor<Option<Steering>> = Descriptor {
    name: "steering",
    summary: "who chooses the queue of a tap by which a frame leaves the kernel",
    values: "kernel, hash, cpu, pinned (default hash)",
    other: "cpu",
    of_path: true,
    ..word(Decides::Lab)
};

pub(super) const QUEUE_LENGTH: Descriptor<Option<u32>> = Descriptor {
    name: "queue_length",
    summary: "frames that each queue of a multi-queue tap holds for the program that reads it",
    values: "1 to 100000 (default: 4096, by the tap switch)",
    other: "64",
    of_path: true,
    counts: true,
    ..number::<1, 100_000>(Decides::Lab)
};

pub(super) const JOIN: Descriptor<Option<Join>> = Descriptor {
    name: "join",
    summary: "which frames of a TCP flow the tap switch joins: none, as GRO does, or all that follow each other",
    values: "off, packets, stream (default stream)",
    other: "packets",
    of_path: true,
    ..word(Decides::Lab)
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_queues_are_one_at_least_and_no_more_than_a_tap_has_queues() {
        for (text, threads) in [("1", 1), ("256", 256)] {
            let value = QUEUE_THREADS.read(text).unwrap();
            assert_eq!(value, Some(threads));
            assert_eq!((QUEUE_THREADS.print)(&value).as_deref(), Some(text));
        }
        for wrong in ["0", "257"] {
            assert_eq!(
                QUEUE_THREADS.read(wrong).unwrap_err().to_string(),
                format!("`{wrong}` is out of bounds: queue_threads goes from 1 to 256")
            );
        }
        for wrong in ["", "-1", "all"] {
            assert!(QUEUE_THREADS.read(wrong).is_err(), "{wrong}");
        }
        assert_eq!((QUEUE_THREADS.print)(&None), None);
    }
}
