//! Receive packet steering: packets are processed on any CPU, chosen by their flow's hash.

use super::axis::Decides;
use super::descriptor::{Descriptor, word};
use crate::Switch;

pub(super) const RPS: Descriptor<Option<Switch>> = Descriptor {
    name: "rps",
    summary: "receive packet steering: a hash of a flow chooses which CPU works on its packets",
    values: "on, off (default off)",
    other: "on",
    of_devices: true,
    ..word(Decides::Lab)
};
