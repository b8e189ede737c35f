//! Queues of taps, and what the tap switch does with frames.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, Descriptor, number, one_of, shown_as};

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

const STEERINGS: [(&str, Steering); 4] = [
    ("kernel", Steering::Kernel),
    ("hash", Steering::Hash),
    ("cpu", Steering::Cpu),
    ("pinned", Steering::Pinned),
];

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

const JOINS: [(&str, Join); 3] = [
    ("off", Join::Off),
    ("packets", Join::Packets),
    ("stream", Join::Stream),
];

shown_as!(Steering: STEERINGS, Join: JOINS);

pub(super) struct Queues;

impl Descriptor for Queues {
    type Value = Option<u32>;
    const NAME: &'static str = "queues";
    const SUMMARY: &'static str = "queues of each multi-queue tap, with a thread of the switch for each unless `queue_threads` is set; of a guest's card; of a veth";
    const VALUES: &'static str = "1 to 256 (default 2; of a guest, one for each CPU; of a veth 1)";
    const OTHER: &'static str = "4";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;
    const COUNTS: bool = true;

    number!(1, 256);
}

pub(super) struct QueueThreads;

impl Descriptor for QueueThreads {
    type Value = Option<u32>;
    const NAME: &'static str = "queue_threads";
    const SUMMARY: &'static str =
        "threads of the tap switch that serve the queues, which are dealt out to them in turn";
    const VALUES: &'static str = "1 to the number of queues (default: a thread for each queue)";
    const OTHER: &'static str = "1";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;
    const COUNTS: bool = true;

    // The number of queues is another axis: whoever builds the switch compares the two.
    number!(1, 256);
}

pub(super) struct SteeringAxis;

impl Descriptor for SteeringAxis {
    type Value = Option<Steering>;
    const NAME: &'static str = "steering";
    const SUMMARY: &'static str =
        "who chooses the queue of a tap by which a frame leaves the kernel";
    const VALUES: &'static str = "kernel, hash, cpu, pinned (default hash)";
    const OTHER: &'static str = "cpu";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;

    one_of!(STEERINGS);
}

pub(super) struct QueueLength;

impl Descriptor for QueueLength {
    type Value = Option<u32>;
    const NAME: &'static str = "queue_length";
    const SUMMARY: &'static str =
        "frames that each queue of a multi-queue tap holds for the program that reads it";
    const VALUES: &'static str = "1 to 100000 (default: 4096, by the tap switch)";
    const OTHER: &'static str = "64";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;
    const COUNTS: bool = true;

    number!(1, 100_000);
}

pub(super) struct JoinAxis;

impl Descriptor for JoinAxis {
    type Value = Option<Join>;
    const NAME: &'static str = "join";
    const SUMMARY: &'static str = "which frames of a TCP flow the tap switch joins: none, as GRO does, or all that follow each other";
    const VALUES: &'static str = "off, packets, stream (default stream)";
    const OTHER: &'static str = "packets";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;

    one_of!(JOINS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_queues_are_one_at_least_and_no_more_than_a_tap_has_queues() {
        for (text, threads) in [("1", 1), ("256", 256)] {
            let value = QueueThreads::parse(text).unwrap();
            assert_eq!(value, Some(threads));
            assert_eq!(QueueThreads::print(&value).as_deref(), Some(text));
        }
        for wrong in ["0", "257"] {
            assert_eq!(
                QueueThreads::parse(wrong).unwrap_err().to_string(),
                format!("`{wrong}` is out of bounds: queue_threads goes from 1 to 256")
            );
        }
        for wrong in ["", "-1", "all"] {
            assert!(QueueThreads::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(QueueThreads::print(&None), None);
    }
}
